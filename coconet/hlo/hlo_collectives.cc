#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/hlo/hlo_attributes.h"
#include "coconet/hlo/hlo_operations.h"

namespace coconet {
namespace {

/// Unimplemented unless the groups are one of all devices.
absl::Status CheckGroups(const HloModule& module, const HloInstruction& instruction) {
  ASSIGN_OR_RETURN(const std::vector<std::vector<int64_t>> groups, GroupsOf(instruction));
  if (groups.empty()) return absl::OkStatus();
  int64_t devices = 0;
  for (const auto& group : groups) devices += static_cast<int64_t>(group.size());
  ASSIGN_OR_RETURN(const int64_t wanted, DevicesOf(module));
  if (wanted > 1 && devices != wanted)
    return WrongHlo(instruction, absl::StrCat("want groups of all ", wanted, " devices, have ",
                                              devices, " in them"));
  if (groups.size() == 1) return absl::OkStatus();
  return UnsupportedHlo(
      instruction, absl::StrCat("in ", groups.size(), " groups of ", groups[0].size(), " devices"));
}

/// Of the two numbers of a device one is the rank's, the other 0.
absl::StatusOr<HloValue> DeviceNumber(const HloModule& module, const HloInstruction& instruction,
                                      absl::Span<const HloValue>, HloArrays& arrays) {
  const absl::string_view* replicas = module.Find("replica_count");
  const bool has_partitions = replicas == nullptr || *replicas == "1";
  if (has_partitions != (instruction.opcode == "partition-id"))
    return HloArrays::Constant(0, instruction.shape);
  return arrays.Cast(HloArrays::Of(arrays.program().rank(DType::kU32), HloShape::Of(HloType::kU32)),
                     instruction.shape.type);
}

absl::StatusOr<HloValue> AllReduced(const HloModule& module, const HloInstruction& instruction,
                                    absl::Span<const HloValue> operands, HloArrays& arrays) {
  if (operands.size() != 1) return UnsupportedHlo(instruction, "of several operands");
  RETURN_IF_ERROR(CheckGroups(module, instruction));
  const absl::string_view combiner = CombinerOf(module, instruction);
  const bool is_sum = combiner == "add", is_max = combiner == "maximum";
  if (!is_sum && !is_max && combiner != "minimum") return NotCombined(instruction, combiner);
  if (operands[0].shape.type == HloType::kPred) return UnsupportedHlo(instruction, "of pred");
  const Tensor tensor = arrays.Whole(operands[0]);
  if (tensor.id() >= 0 && tensor.type().layout != Layout::Local()) {  // all ranks have the same
    return HloArrays::Of(is_sum ? tensor * arrays.program().world() : tensor, operands[0].shape);
  }
  const ReduceKind kind = is_sum ? ReduceKind::kSum : is_max ? ReduceKind::kMax : ReduceKind::kMin;
  return HloArrays::Of(AllReduce(kind, tensor), operands[0].shape);
}

/// The second half of a collective in two, of which the first computes the value.
absl::StatusOr<HloValue> Done(const HloModule&, const HloInstruction& instruction,
                              absl::Span<const HloValue> operands, HloArrays&) {
  if (operands.size() != 1) return WrongHlo(instruction, "want one operand");
  return operands[0];
}

}  // namespace

std::vector<HloRow> CollectivesHlo() {
  return {{"partition-id", DeviceNumber},
          {"replica-id", DeviceNumber},
          {"all-reduce", AllReduced},
          {"all-reduce-start", AllReduced},
          {"all-reduce-done", Done}};
}

}  // namespace coconet
