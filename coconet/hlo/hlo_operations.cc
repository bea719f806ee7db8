#include "coconet/hlo/hlo_operations.h"

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/hlo/text/hlo_attributes.h"

namespace coconet {
namespace {

const absl::flat_hash_map<absl::string_view, HloRow>& Rows() {
  static const auto& rows = *[] {
    auto* const all = new absl::flat_hash_map<absl::string_view, HloRow>();
    for (const std::vector<HloRow>& some :
         {ElementwiseHlo(), ShapesHlo(), DotHlo(), ReductionsHlo(), RowsByIndexHlo(),
          DynamicSlicesHlo(), CollectivesHlo(), WindowsHlo()}) {
      for (const HloRow& row : some) all->emplace(row.opcode, row);
    }
    return all;
  }();
  return rows;
}

}  // namespace

bool KnowsHlo(absl::string_view opcode) { return Rows().contains(opcode); }

absl::StatusOr<HloValue> HloOperation(const HloModule& module, const HloInstruction& instruction,
                                      absl::Span<const HloValue> operands, HloArrays& arrays) {
  const auto row = Rows().find(instruction.opcode);
  if (row == Rows().end()) return UnsupportedHlo(instruction);
  for (const HloValue& operand : operands) {
    if (operand.shape.is_tuple() && row->second.of_tuples) continue;
    if (operand.shape.is_tuple()) return UnsupportedHlo(instruction, "of tuples");
    if (!DTypeOf(operand.shape.type).has_value())
      return UnsupportedHlo(instruction, absl::StrCat("of ", Name(operand.shape.type)));
  }
  if (!instruction.shape.is_tuple() && !DTypeOf(instruction.shape.type).has_value())
    return UnsupportedHlo(instruction, absl::StrCat("to ", Name(instruction.shape.type)));
  return row->second.value(module, instruction, operands, arrays);
}

bool IsElementwiseHlo(absl::string_view opcode) {
  static const auto& opcodes = *[] {
    auto* const all = new absl::flat_hash_set<absl::string_view>();
    for (const HloRow& row : ElementwiseHlo()) all->insert(row.opcode);
    return all;
  }();
  return opcodes.contains(opcode);
}

absl::string_view CombinerOf(const HloModule& module, const HloInstruction& instruction,
                             absl::string_view attribute) {
  const absl::StatusOr<std::vector<absl::string_view>> names =
      ComputationsOf(instruction, attribute);
  const HloComputation* combiner =
      names.ok() && names->size() == 1 ? module.FindComputation((*names)[0]) : nullptr;
  if (combiner == nullptr || combiner->parameters.size() != 2) return "";
  const HloInstruction& root = combiner->Root();
  if (root.operands.size() != 2) return "";
  const bool of_both =
      (root.operands[0] == combiner->parameters[0] &&
       root.operands[1] == combiner->parameters[1]) ||
      (root.operands[1] == combiner->parameters[0] && root.operands[0] == combiner->parameters[1]);
  return of_both ? root.opcode : "";
}

std::optional<ReduceKind> ReduceKindOf(absl::string_view combiner, HloType type) {
  const bool is_pred = type == HloType::kPred;
  if (combiner == "maximum" || (is_pred && (combiner == "or" || combiner == "add")))
    return ReduceKind::kMax;
  if (combiner == "minimum" || (is_pred && (combiner == "and" || combiner == "multiply")))
    return ReduceKind::kMin;
  if (combiner == "add") return ReduceKind::kSum;
  return std::nullopt;
}

absl::Status UnsupportedHlo(const HloInstruction& instruction, absl::string_view what) {
  return absl::UnimplementedError(absl::StrCat(instruction.opcode, what.empty() ? "" : " ", what));
}

absl::Status NotCombined(const HloInstruction& instruction, absl::string_view combiner) {
  return UnsupportedHlo(
      instruction, absl::StrCat("by ", combiner.empty() ? "a computation of its own" : combiner));
}

absl::Status WrongHlo(const HloInstruction& instruction, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(Where(instruction), ": ", what));
}

absl::Status CheckDims(const HloInstruction& instruction, absl::Span<const int64_t> dims,
                       const HloShape& shape) {
  std::vector<int64_t> sorted(dims.begin(), dims.end());
  absl::c_sort(sorted);
  const bool ok = absl::c_adjacent_find(sorted) == sorted.end() &&
                  (sorted.empty() || (sorted.front() >= 0 &&
                                      sorted.back() < static_cast<int64_t>(shape.dims.size())));
  if (ok) return absl::OkStatus();
  return WrongHlo(instruction, absl::StrCat("want dimensions of ", Text(shape), ", each once"));
}

}  // namespace coconet
