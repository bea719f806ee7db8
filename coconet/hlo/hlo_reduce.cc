#include <cmath>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/hlo/hlo_operations.h"
#include "coconet/hlo/text/hlo_attributes.h"

namespace coconet {
namespace {

bool Is(const HloValue& value, double number) { return value.number == number; }

/// Of one array, from the initial value on.
absl::StatusOr<HloValue> ReduceOne(const HloInstruction& instruction, absl::string_view combiner,
                                   const HloValue& a, const HloValue& init,
                                   const std::vector<int64_t>& dims, const HloShape& shape,
                                   HloArrays& arrays) {
  const HloType type = a.shape.type;
  if (type == HloType::kPred) {
    // Whether some, or all, are true.
    const bool is_or = combiner == "or" || combiner == "maximum" || combiner == "add";
    const bool is_and = combiner == "and" || combiner == "minimum" || combiner == "multiply";
    if (!is_or && !is_and)
      return UnsupportedHlo(instruction, absl::StrCat("of pred by ", combiner));
    HloShape of_numbers = shape;
    of_numbers.type = HloType::kU8;
    const HloValue folded = arrays.Folded(is_or ? FoldKind::kMax : FoldKind::kMin,
                                          arrays.Cast(a, HloType::kU8), dims, of_numbers);
    const HloValue result = arrays.Cast(folded, HloType::kPred);
    if (Is(init, is_or ? 0 : 1)) return result;
    return arrays.Apply(is_or ? Pw::kOr : Pw::kAnd,
                        {result, HloArrays::Broadcast(init, {}, result.shape)});
  }
  const bool is_sum = combiner == "add", is_max = combiner == "maximum",
             is_min = combiner == "minimum";
  if (!is_sum && !is_max && !is_min) {
    return NotCombined(instruction, combiner);
  }
  HloValue folded = arrays.Folded(is_sum   ? FoldKind::kSum
                                  : is_max ? FoldKind::kMax
                                           : FoldKind::kMin,
                                  a, dims, shape);
  const bool is_float = IsFloat(*DTypeOf(type));
  const double neutral = is_sum   ? 0
                         : is_max ? (is_float ? -INFINITY : MinFinite(*DTypeOf(type)))
                                  : (is_float ? INFINITY : MaxFinite(*DTypeOf(type)));
  if (Is(init, neutral)) return folded;
  return arrays.Apply(is_sum   ? Pw::kAdd
                      : is_max ? Pw::kMax
                               : Pw::kMin,
                      {folded, HloArrays::Broadcast(init, {}, shape)});
}

absl::StatusOr<HloValue> Reduce(const HloModule& module, const HloInstruction& instruction,
                                absl::Span<const HloValue> operands, HloArrays& arrays) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> dims, IntegersOf(instruction, "dimensions"));
  if (operands.size() != 2) return UnsupportedHlo(instruction, "of several operands");
  const HloValue &a = operands[0], &init = operands[1];
  RETURN_IF_ERROR(CheckDims(instruction, dims, a.shape));
  if (!init.shape.dims.empty() || init.shape.type != a.shape.type)
    return WrongHlo(instruction, "want a scalar of the operand's type to begin with");
  HloShape shape = HloShape::Of(a.shape.type);
  for (int64_t d = 0; d < a.rank(); ++d) {
    if (!absl::c_linear_search(dims, d)) shape.dims.push_back(a.shape.dims[static_cast<size_t>(d)]);
  }
  return ReduceOne(instruction, CombinerOf(module, instruction), a, init, dims, shape, arrays);
}

}  // namespace

std::vector<HloRow> ReductionsHlo() { return {{"reduce", Reduce}}; }

}  // namespace coconet
