#include "coconet/hlo/hlo_groups.h"

#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/hlo/hlo_operations.h"
#include "coconet/hlo/text/hlo_attributes.h"

namespace coconet {
namespace {

/// What replica_groups count.
enum class Counted : uint8_t {
  kRanks,
  kReplicasOfPartitions,  // of each partition; all partitions of a replica are together
  kReplicas,              // of each partition; every partition is alone
};

Counted CountedBy(const HloModule& module, const HloInstruction& instruction) {
  const absl::string_view* partitions = module.Find("num_partitions");
  if (partitions == nullptr || *partitions == "1") return Counted::kRanks;
  if (instruction.Find("channel_id") == nullptr) return Counted::kReplicas;
  const absl::StatusOr<bool> is_global = FlagOf(instruction, "use_global_device_ids");
  const bool is_exchange =
      instruction.opcode == "all-to-all" || instruction.opcode == "collective-broadcast";
  return is_exchange || (is_global.ok() && *is_global) ? Counted::kRanks
                                                       : Counted::kReplicasOfPartitions;
}

std::vector<int64_t> FirstRanks(int64_t count) {
  std::vector<int64_t> ranks(static_cast<size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

bool HloGroups::IsWorld() const { return groups.size() == 1 && groups[0] == FirstRanks(ranks); }

absl::StatusOr<HloGroups> RankGroupsOf(const HloModule& module, const HloInstruction& instruction,
                                       int64_t ranks) {
  HloGroups result;
  result.ranks = ranks;
  ASSIGN_OR_RETURN(std::vector<std::vector<int64_t>> groups, GroupsOf(instruction));
  const Counted counted = CountedBy(module, instruction);
  if (counted != Counted::kRanks) {
    const absl::string_view* replicas = module.Find("replica_count");
    if (replicas != nullptr && *replicas != "1")
      return UnsupportedHlo(instruction, "over replicas of several partitions");
    if (!groups.empty() && groups != std::vector<std::vector<int64_t>>{{0}})
      return WrongHlo(instruction,
                      "want replica_groups={} or {{0}}, have others: without channel_id and "
                      "use_global_device_ids they list replicas, and the module has one replica");
    groups.clear();
    if (counted == Counted::kReplicas) {
      for (int64_t rank = 0; rank < result.ranks; ++rank) groups.push_back({rank});
    }
  }
  if (groups.empty()) groups.push_back(FirstRanks(result.ranks));
  std::vector<int64_t> all;
  for (const auto& group : groups) all.insert(all.end(), group.begin(), group.end());
  absl::c_sort(all);
  if (all != FirstRanks(result.ranks))
    return WrongHlo(instruction, absl::StrCat("want groups in which each of ", result.ranks,
                                              " devices is once, have ", all.size(), " in them"));
  for (const auto& group : groups) {
    if (group.size() != groups[0].size())
      return UnsupportedHlo(instruction, "in groups of different sizes");
  }
  result.groups = std::move(groups);
  return result;
}

}  // namespace coconet
