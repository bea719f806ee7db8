#include "coconet/hlo/hlo_lifted.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/hlo/hlo_operations.h"
#include "coconet/hlo/text/hlo_attributes.h"

namespace coconet {
namespace {

constexpr int64_t kMostOperations = 1 << 16;  // with calls inlined

absl::StatusOr<HloValue> LiftedAt(const HloModule& module, const HloComputation& computation,
                                  absl::Span<const HloValue> arguments, HloArrays& arrays,
                                  int depth, int64_t& operations) {
  if (arguments.size() != computation.parameters.size() || arguments.empty())
    return absl::InvalidArgumentError(absl::StrCat("computation ", computation.name, ": want ",
                                                   computation.parameters.size(),
                                                   " arguments, have ", arguments.size()));
  const std::vector<int64_t>& dims = arguments[0].shape.dims;
  std::vector<HloValue> values(computation.instructions.size());
  for (size_t p = 0; p < arguments.size(); ++p)
    values[static_cast<size_t>(computation.parameters[p])] = arguments[p];
  for (size_t i = 0; i < values.size(); ++i) {
    HloInstruction lifted = computation.instructions[i];
    if (lifted.opcode == "parameter") continue;
    if (++operations > kMostOperations)
      return UnsupportedHlo(
          lifted, absl::StrCat("in a reduction of more than ", kMostOperations, " operations"));
    if (lifted.opcode == "get-tuple-element") {
      ASSIGN_OR_RETURN(values[i], TupleElement(lifted, values));
      continue;
    }
    std::vector<HloValue> operands;
    for (int32_t operand : lifted.operands)
      operands.push_back(values[static_cast<size_t>(operand)]);
    if (lifted.opcode == "tuple") {
      values[i] = HloArrays::Tuple(std::move(operands));
      continue;
    }
    if (lifted.opcode == "call" || lifted.opcode == "fusion") {
      if (depth == kDeepestCall) return UnsupportedHlo(lifted, "nested too deep in a reduction");
      ASSIGN_OR_RETURN(const HloComputation* called, CalledBy(module, lifted));
      ASSIGN_OR_RETURN(values[i],
                       LiftedAt(module, *called, operands, arrays, depth + 1, operations));
      continue;
    }
    const bool is_constant = lifted.opcode == "constant";
    if ((!is_constant && !IsElementwiseHlo(lifted.opcode)) || lifted.shape.is_tuple() ||
        !lifted.shape.dims.empty())
      return UnsupportedHlo(lifted, "in a reduction");
    if (!is_constant) lifted.shape.dims = dims;
    ASSIGN_OR_RETURN(values[i], HloOperation(module, lifted, operands, arrays));
    if (is_constant) {
      HloShape shape = lifted.shape;
      shape.dims = dims;
      values[i] = HloArrays::Broadcast(values[i], {}, shape);
    }
  }
  return values[static_cast<size_t>(computation.root)];
}

}  // namespace

absl::StatusOr<std::vector<HloValue>> Lifted(const HloModule& module,
                                             const HloComputation& computation,
                                             absl::Span<const HloValue> arguments,
                                             HloArrays& arrays) {
  int64_t operations = 0;
  ASSIGN_OR_RETURN(HloValue root,
                   LiftedAt(module, computation, arguments, arrays, /*depth=*/0, operations));
  if (root.shape.is_tuple()) return std::move(root.elements);
  return std::vector<HloValue>{std::move(root)};
}

absl::StatusOr<const HloComputation*> ComputationOf(const HloModule& module,
                                                    const HloInstruction& instruction,
                                                    absl::string_view attribute) {
  ASSIGN_OR_RETURN(const std::vector<absl::string_view> names,
                   ComputationsOf(instruction, attribute));
  const HloComputation* called = names.size() == 1 ? module.FindComputation(names[0]) : nullptr;
  if (called == nullptr)
    return WrongHlo(instruction, absl::StrCat("want ", attribute, " to name a computation"));
  return called;
}

absl::StatusOr<const HloComputation*> CalledBy(const HloModule& module,
                                               const HloInstruction& instruction) {
  return ComputationOf(module, instruction, instruction.opcode == "call" ? "to_apply" : "calls");
}

absl::StatusOr<HloValue> TupleElement(const HloInstruction& instruction,
                                      absl::Span<const HloValue> values) {
  ASSIGN_OR_RETURN(const int64_t index, IntegerOf(instruction, "index"));
  const HloValue* tuple = instruction.operands.size() == 1
                              ? &values[static_cast<size_t>(instruction.operands[0])]
                              : nullptr;
  if (tuple == nullptr || index < 0 || index >= static_cast<int64_t>(tuple->elements.size()))
    return WrongHlo(instruction, absl::StrCat("want an element of a tuple, have index ", index));
  return tuple->elements[static_cast<size_t>(index)];
}

}  // namespace coconet
