#include "coconet/hlo/hlo_devices.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "coconet/base/status.h"
#include "coconet/hlo/text/hlo_attributes.h"

namespace coconet {
namespace {

constexpr int64_t kMostDevices = 1 << 20;

absl::StatusOr<std::optional<int64_t>> CountIn(const HloModule& module, absl::string_view name) {
  const absl::string_view* text = module.Find(name);
  if (text == nullptr) return std::nullopt;
  int64_t count = 0;
  if (!absl::SimpleAtoi(*text, &count) || count < 1 || count > kMostDevices)
    return absl::InvalidArgumentError(
        absl::StrCat("HloModule: want a number of devices as ", name, ", have ", *text));
  return count;
}

/// The devices of xla.sdy.meshes={mesh = #sdy.mesh<["x"=2, "y"=4]>}, which may be escaped; none if
/// the module has no such attribute.
absl::StatusOr<std::optional<int64_t>> DevicesOfMesh(const HloModule& module) {
  constexpr absl::string_view kMesh = "sdy.mesh<[";
  const absl::string_view* attributes = module.Find("frontend_attributes");
  const size_t begin = attributes == nullptr ? absl::string_view::npos : attributes->find(kMesh);
  if (begin == absl::string_view::npos) return std::nullopt;
  int64_t devices = 1;
  absl::string_view axes = attributes->substr(begin + kMesh.size());
  axes = axes.substr(0, axes.find(']'));
  for (absl::string_view axis : absl::StrSplit(axes, ',', absl::SkipWhitespace())) {
    int64_t size = 0;
    const size_t equals = axis.rfind('=');
    if (equals == absl::string_view::npos || !absl::SimpleAtoi(axis.substr(equals + 1), &size) ||
        size < 1 || size > kMostDevices / devices)
      return absl::InvalidArgumentError(
          absl::StrCat("HloModule: want a mesh of axes with sizes, have ", axes));
    devices *= size;
  }
  return devices;
}

/// How many times `whole` is as long as `part` along the dimension of a collective; 0 where the
/// shapes do not tell.
int64_t TimesAlong(const HloShape& whole, const HloShape& part, size_t dim) {
  if (whole.is_tuple() || dim >= whole.dims.size() || dim >= part.dims.size()) return 0;
  const int64_t of_whole = whole.dims[dim], of_part = part.dims[dim];
  return of_part > 0 && of_whole % of_part == 0 ? of_whole / of_part : 0;
}

/// The ranks of a collective of all that its shapes tell; 0 where they do not.
int64_t RanksInShapes(const HloComputation& computation, const HloInstruction& instruction) {
  const absl::string_view opcode = instruction.opcode;
  const absl::StatusOr<std::vector<int64_t>> dims = IntegersOf(instruction, "dimensions");
  const bool has_dim = dims.ok() && dims->size() == 1 && (*dims)[0] >= 0;
  if (opcode == "all-to-all" && !has_dim) return static_cast<int64_t>(instruction.operands.size());
  const bool gathers = absl::StartsWith(opcode, "all-gather");
  if (!has_dim || (!gathers && opcode != "reduce-scatter")) return 0;
  const HloShape* results = &instruction.shape;
  if (absl::EndsWith(opcode, "-start") && results->elements.size() > 1)
    results = &results->elements[1];
  for (size_t i = 0; i < instruction.operands.size(); ++i) {
    const HloShape& operand =
        computation.instructions[static_cast<size_t>(instruction.operands[i])].shape;
    if (results->is_tuple() && i >= results->elements.size()) return 0;
    const HloShape& result = results->is_tuple() ? results->elements[i] : *results;
    const auto dim = static_cast<size_t>((*dims)[0]);
    const int64_t times =
        gathers ? TimesAlong(result, operand, dim) : TimesAlong(operand, result, dim);
    if (times > 0) return times;
  }
  return 0;
}

/// What the collectives of a module tell, one after the other.
class Told {
 public:
  absl::Status Read(const HloModule& module) {
    for (const HloComputation& computation : module.computations) {
      for (const HloInstruction& instruction : computation.instructions)
        RETURN_IF_ERROR(Read(computation, instruction));
    }
    if (ranks_ > 0 && least_ > ranks_) return Differs(*of_least_, least_);
    return absl::OkStatus();
  }

  bool is_any() const { return ranks_ == 0 && least_ == 0 && !has_ids_ && !has_all_; }
  /// 0: they leave it open.
  int64_t ranks() const { return ranks_; }
  /// The least number of devices that the source-target pairs need.
  int64_t least() const { return least_; }
  std::string By() const { return Where(ranks_ > 0 ? *of_ranks_ : *of_least_); }

 private:
  absl::Status Read(const HloComputation& computation, const HloInstruction& instruction) {
    const absl::string_view opcode = instruction.opcode;
    has_ids_ = has_ids_ || opcode == "partition-id" || opcode == "replica-id";
    if (!IsCollective(opcode)) return absl::OkStatus();
    if (instruction.Find("source_target_pairs") != nullptr) {
      ASSIGN_OR_RETURN(const auto pairs, PairsOf(instruction));
      for (const auto& [source, target] : pairs) {
        if (std::max(source, target) < least_) continue;
        least_ = std::max(source, target) + 1;
        of_least_ = &instruction;
      }
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const std::vector<std::vector<int64_t>> groups, GroupsOf(instruction));
    int64_t ranks = 0;
    for (const std::vector<int64_t>& group : groups) {
      for (int64_t device : group) ranks = std::max(ranks, device + 1);
    }
    if (groups.empty()) {
      has_all_ = true;
      ranks = RanksInShapes(computation, instruction);
    }
    if (ranks == 0) return absl::OkStatus();
    if (ranks_ > 0 && ranks != ranks_) return Differs(instruction, ranks);
    if (ranks_ == 0) of_ranks_ = &instruction;
    ranks_ = ranks;
    return absl::OkStatus();
  }

  absl::Status Differs(const HloInstruction& instruction, int64_t ranks) const {
    return absl::InvalidArgumentError(absl::StrCat(Where(instruction), ": it is for ", ranks,
                                                   " devices, want ", ranks_, ", as ",
                                                   Where(*of_ranks_)));
  }

  int64_t ranks_ = 0, least_ = 0;
  bool has_ids_ = false, has_all_ = false;
  const HloInstruction *of_ranks_ = nullptr, *of_least_ = nullptr;
};

absl::StatusOr<HloDevices> LoweredFor(int64_t ranks, absl::string_view by, int64_t world) {
  if (world == 0 || world == ranks) return HloDevices{ranks, false};
  return absl::InvalidArgumentError(absl::StrCat("the module was lowered for ", ranks,
                                                 ranks == 1 ? " device" : " devices", " (", by,
                                                 "), have ", world, " ranks"));
}

}  // namespace

bool IsCollective(absl::string_view opcode) {
  if (absl::EndsWith(opcode, "-done")) return false;
  return absl::StartsWith(opcode, "all-reduce") || absl::StartsWith(opcode, "all-gather") ||
         absl::StartsWith(opcode, "collective-") || absl::EndsWith(opcode, "all-to-all") ||
         opcode == "reduce-scatter";
}

absl::StatusOr<HloHeader> HeaderOf(const HloModule& module) {
  HloHeader header;
  ASSIGN_OR_RETURN(header.replicas, CountIn(module, "replica_count"));
  ASSIGN_OR_RETURN(header.partitions, CountIn(module, "num_partitions"));
  if (header.replicas.value_or(1) > kMostDevices / header.partitions.value_or(1))
    return absl::InvalidArgumentError(
        absl::StrCat("HloModule: want at most ", kMostDevices, " devices"));
  return header;
}

absl::StatusOr<HloDevices> DevicesOf(const HloModule& module, int64_t world) {
  ASSIGN_OR_RETURN(const HloHeader header, HeaderOf(module));
  const int64_t partitions = header.partitions.value_or(1);
  if (partitions > 1 || header.replicas.value_or(1) > 1) {
    std::string by = "HloModule:";
    if (partitions > 1) absl::StrAppend(&by, " num_partitions=", partitions);
    if (header.replicas.has_value()) absl::StrAppend(&by, " replica_count=", *header.replicas);
    return LoweredFor(header.replicas.value_or(1) * partitions, by, world);
  }
  ASSIGN_OR_RETURN(const std::optional<int64_t> of_mesh, DevicesOfMesh(module));
  if (of_mesh.value_or(1) > 1) return LoweredFor(*of_mesh, "HloModule: its mesh", world);
  Told told;
  RETURN_IF_ERROR(told.Read(module));
  if (told.is_any()) return HloDevices{1, true};
  if (header.replicas.has_value())  // one
    return LoweredFor(1, "HloModule: replica_count=1", world);
  if (told.ranks() > 0) return LoweredFor(told.ranks(), told.By(), world);
  if (world > 0 && world < told.least()) return LoweredFor(told.least(), told.By(), world);
  return HloDevices{world > 0 ? world : told.least(), false};
}

}  // namespace coconet
