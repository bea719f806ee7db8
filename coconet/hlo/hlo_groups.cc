#include "coconet/hlo/hlo_groups.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/hlo/hlo_devices.h"
#include "coconet/hlo/hlo_operations.h"
#include "coconet/hlo/text/hlo_attributes.h"

namespace coconet {
namespace {

/// What replica_groups and source_target_pairs count.
enum class Counted : uint8_t {
  kRanks,
  kReplicasOfPartitions,  // all partitions of a replica are together
  kReplicas,              // of each partition; every partition is alone
  kPartitions,            // of each replica; every replica is alone
};

Counted CountedBy(int64_t partitions, const HloInstruction& instruction) {
  if (partitions == 1) return Counted::kRanks;
  if (instruction.Find("channel_id") == nullptr) return Counted::kReplicas;
  const absl::StatusOr<bool> is_global = FlagOf(instruction, "use_global_device_ids");
  if (is_global.ok() && *is_global) return Counted::kRanks;
  const absl::string_view opcode = instruction.opcode;
  const bool reduces = absl::StartsWith(opcode, "all-reduce") ||
                       absl::StartsWith(opcode, "all-gather") || opcode == "reduce-scatter";
  return reduces ? Counted::kReplicasOfPartitions : Counted::kPartitions;
}

using Groups = std::vector<std::vector<int64_t>>;

/// Numbers that `counted` says as those of ranks, of modules of several partitions.
Groups RanksOf(Counted counted, const Groups& groups, int64_t replicas, int64_t partitions) {
  Groups result;
  switch (counted) {
    case Counted::kRanks:
      return groups;
    case Counted::kReplicasOfPartitions:
      for (const auto& group : groups) {
        std::vector<int64_t>& ranks = result.emplace_back();
        for (int64_t replica : group) {
          for (int64_t p = 0; p < partitions; ++p) ranks.push_back(replica * partitions + p);
        }
      }
      return result;
    case Counted::kReplicas:
      for (int64_t p = 0; p < partitions; ++p) {
        for (const auto& group : groups) {
          std::vector<int64_t>& ranks = result.emplace_back();
          for (int64_t replica : group) ranks.push_back(replica * partitions + p);
        }
      }
      return result;
    case Counted::kPartitions:
      for (int64_t replica = 0; replica < replicas; ++replica) {
        for (const auto& group : groups) {
          std::vector<int64_t>& ranks = result.emplace_back();
          for (int64_t p : group) ranks.push_back(replica * partitions + p);
        }
      }
      return result;
  }
  CC_CHECK(false);
  return result;
}

std::vector<int64_t> FirstRanks(int64_t count) {
  std::vector<int64_t> ranks(static_cast<size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

constexpr char kOpen[] =
    "the module leaves open for how many ranks it is, and this needs their number; want "
    "replica_count or num_partitions in its header, --ranks, or ranks in HloImportOptions";

struct Devices {
  Counted by = Counted::kRanks;
  int64_t partitions = 1;
  int64_t counted = 1;  // from 0 on
  absl::string_view what = "devices", why;
};

absl::StatusOr<Devices> DevicesCounted(const HloModule& module, const HloInstruction& instruction,
                                       int64_t ranks) {
  ASSIGN_OR_RETURN(const HloHeader header, HeaderOf(module));
  Devices devices;
  devices.partitions = header.partitions.value_or(1);
  devices.by = CountedBy(devices.partitions, instruction);
  switch (devices.by) {
    case Counted::kRanks:
      devices.counted = ranks;
      return devices;
    case Counted::kReplicasOfPartitions:
    case Counted::kReplicas:
      devices.counted = ranks / devices.partitions;
      devices.what = "replicas";
      devices.why = ": without channel_id and use_global_device_ids they list replicas";
      return devices;
    case Counted::kPartitions:
      devices.counted = devices.partitions;
      devices.what = "partitions";
      devices.why = ": with channel_id they list partitions";
      return devices;
  }
  CC_CHECK(false);
  return devices;
}

}  // namespace

bool HloGroups::IsWorld() const { return groups.size() == 1 && groups[0] == FirstRanks(ranks); }

absl::StatusOr<HloGroups> RankGroupsOf(const HloModule& module, const HloInstruction& instruction,
                                       int64_t ranks) {
  HloGroups result;
  result.ranks = ranks;
  ASSIGN_OR_RETURN(const Devices devices, DevicesCounted(module, instruction, ranks));
  ASSIGN_OR_RETURN(Groups groups, GroupsOf(instruction));
  if (ranks == 0 && (!groups.empty() || !absl::StartsWith(instruction.opcode, "all-reduce")))
    return WrongHlo(instruction, kOpen);
  if (groups.empty()) groups.push_back(FirstRanks(devices.counted));
  std::vector<int64_t> all;
  for (const auto& group : groups) all.insert(all.end(), group.begin(), group.end());
  absl::c_sort(all);
  if (all != FirstRanks(devices.counted))
    return WrongHlo(instruction, absl::StrCat("want groups in which each of ", devices.counted, " ",
                                              devices.what, " is once, have ", all.size(),
                                              " in them", devices.why));
  for (const auto& group : groups) {
    if (group.size() != groups[0].size())
      return UnsupportedHlo(instruction, "in groups of different sizes");
  }
  result.groups = RanksOf(devices.by, groups, ranks / devices.partitions, devices.partitions);
  return result;
}

absl::StatusOr<std::vector<std::pair<int64_t, int64_t>>> RankPairsOf(
    const HloModule& module, const HloInstruction& instruction, int64_t ranks) {
  ASSIGN_OR_RETURN(const Devices devices, DevicesCounted(module, instruction, ranks));
  ASSIGN_OR_RETURN(const auto pairs, PairsOf(instruction));
  if (ranks == 0) return WrongHlo(instruction, kOpen);
  Groups counted;
  for (const auto& [source, target] : pairs) {
    if (std::max(source, target) >= devices.counted)
      return WrongHlo(instruction,
                      absl::StrCat("want pairs of ", devices.counted, " ", devices.what, ", have ",
                                   source, " and ", target, devices.why));
    counted.push_back({source, target});
  }
  std::vector<std::pair<int64_t, int64_t>> result;
  for (const auto& pair :
       RanksOf(devices.by, counted, ranks / devices.partitions, devices.partitions))
    result.emplace_back(pair[0], pair[1]);
  return result;
}

}  // namespace coconet
