#include "coconet/hlo/hlo_lifted.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/hlo/hlo_operations.h"
#include "coconet/hlo/text/hlo_attributes.h"

namespace coconet {
namespace {

constexpr int kDeepestCall = 64;

absl::StatusOr<std::vector<HloValue>> LiftedAt(const HloModule& module,
                                               const HloComputation& computation,
                                               absl::Span<const HloValue> arguments,
                                               HloArrays& arrays, int depth) {
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
    if (lifted.opcode == "tuple") {
      values[i].shape = lifted.shape;
      for (int32_t operand : lifted.operands)
        values[i].elements.push_back(values[static_cast<size_t>(operand)]);
      continue;
    }
    if (lifted.opcode == "get-tuple-element" && lifted.operands.size() == 1) {
      ASSIGN_OR_RETURN(const int64_t number, IntegerOf(lifted, "index"));
      const HloValue& tuple = values[static_cast<size_t>(lifted.operands[0])];
      if (number < 0 || number >= static_cast<int64_t>(tuple.elements.size()))
        return WrongHlo(lifted, "want the number of an element of a tuple");
      values[i] = tuple.elements[static_cast<size_t>(number)];
      continue;
    }
    if (lifted.opcode == "call" || lifted.opcode == "fusion") {
      if (depth == kDeepestCall) return UnsupportedHlo(lifted, "nested too deep in a reduction");
      ASSIGN_OR_RETURN(
          const HloComputation* called,
          ComputationOf(module, lifted, lifted.opcode == "call" ? "to_apply" : "calls"));
      std::vector<HloValue> given;
      for (int32_t operand : lifted.operands) given.push_back(values[static_cast<size_t>(operand)]);
      ASSIGN_OR_RETURN(std::vector<HloValue> results,
                       LiftedAt(module, *called, given, arrays, depth + 1));
      if (lifted.shape.is_tuple()) {
        values[i].shape = lifted.shape;
        values[i].elements = std::move(results);
      } else if (results.size() == 1) {
        values[i] = std::move(results[0]);
      } else {
        return WrongHlo(lifted, "want a computation of one result");
      }
      continue;
    }
    const bool is_constant = lifted.opcode == "constant";
    if ((!is_constant && !IsElementwiseHlo(lifted.opcode)) || lifted.shape.is_tuple() ||
        !lifted.shape.dims.empty())
      return UnsupportedHlo(lifted, "in a reduction");
    std::vector<HloValue> operands;
    for (int32_t operand : lifted.operands)
      operands.push_back(values[static_cast<size_t>(operand)]);
    if (!is_constant) lifted.shape.dims = dims;
    ASSIGN_OR_RETURN(values[i], HloOperation(module, lifted, operands, arrays));
    if (is_constant) {
      HloShape shape = lifted.shape;
      shape.dims = dims;
      values[i] = HloArrays::Broadcast(values[i], {}, shape);
    }
  }
  const HloValue& root = values[static_cast<size_t>(computation.root)];
  return root.shape.is_tuple() ? root.elements : std::vector<HloValue>{root};
}

}  // namespace

absl::StatusOr<std::vector<HloValue>> Lifted(const HloModule& module,
                                             const HloComputation& computation,
                                             absl::Span<const HloValue> arguments,
                                             HloArrays& arrays) {
  return LiftedAt(module, computation, arguments, arrays, /*depth=*/0);
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

}  // namespace coconet
