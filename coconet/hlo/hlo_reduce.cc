#include <cmath>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/hlo/hlo_lifted.h"
#include "coconet/hlo/hlo_operations.h"
#include "coconet/hlo/text/hlo_attributes.h"
#include "coconet/ir/op_table.h"

namespace coconet {
namespace {

bool Is(const HloValue& value, const Number& number) {
  return value.number.has_value() && *value.number == number;
}

/// Reduces one array, starting from the initial value; pred by `or` or `and`.
HloValue ReduceOne(ReduceKind kind, const HloValue& a, const HloValue& init,
                   const std::vector<int64_t>& dims, const HloShape& shape, HloArrays& arrays) {
  const bool is_sum = kind == ReduceKind::kSum, is_max = kind == ReduceKind::kMax;
  const FoldKind fold = WithinRank(kind);
  if (a.shape.type == HloType::kPred) {
    HloShape of_numbers = shape;
    of_numbers.type = HloType::kU8;
    const HloValue folded = arrays.Folded(fold, arrays.Cast(a, HloType::kU8), dims, of_numbers);
    const HloValue result = arrays.Cast(folded, HloType::kPred);
    if (Is(init, is_max ? 0 : 1)) return result;
    return arrays.Apply(is_max ? Pw::kOr : Pw::kAnd,
                        {result, HloArrays::Broadcast(init, {}, result.shape)});
  }
  const DType dtype = *DTypeOf(a.shape.type);
  const HloValue folded = arrays.Folded(fold, a, dims, shape);
  const Number neutral = is_sum ? Number(0) : is_max ? Least(dtype) : Greatest(dtype);
  if (Is(init, neutral)) return folded;
  return arrays.Apply(is_sum   ? Pw::kAdd
                      : is_max ? Pw::kMax
                               : Pw::kMin,
                      {folded, HloArrays::Broadcast(init, {}, shape)});
}

/// By any computation of several arrays, which may take elements in any order: halves of each
/// dimension are combined until one element is left.
absl::StatusOr<HloValue> ReduceByHalves(const HloModule& module, const HloInstruction& instruction,
                                        absl::Span<const HloValue> operands,
                                        const std::vector<int64_t>& dims, HloArrays& arrays) {
  const size_t count = operands.size() / 2;
  ASSIGN_OR_RETURN(const HloComputation* computation,
                   ComputationOf(module, instruction, "to_apply"));
  std::vector<HloValue> values(operands.begin(), operands.begin() + static_cast<ptrdiff_t>(count));
  const auto combined =
      [&](std::vector<HloValue> a,
          const std::vector<HloValue>& b) -> absl::StatusOr<std::vector<HloValue>> {
    a.insert(a.end(), b.begin(), b.end());
    ASSIGN_OR_RETURN(std::vector<HloValue> results, Lifted(module, *computation, a, arrays));
    if (results.size() == count) return results;
    return WrongHlo(instruction, absl::StrCat("want a computation of ", count, " results"));
  };
  HloShape left = values[0].shape;
  for (int64_t d : dims) {
    const int dim = static_cast<int>(d);
    const auto part = [&](int64_t begin, int64_t end) {
      std::vector<HloValue> parts;
      for (const HloValue& value : values) parts.push_back(arrays.Ranged(value, dim, begin, end));
      return parts;
    };
    int64_t& extent = left.dims[static_cast<size_t>(d)];
    if (extent == 0) return UnsupportedHlo(instruction, "of nothing");
    while (extent > 1) {
      const int64_t half = extent / 2;
      ASSIGN_OR_RETURN(std::vector<HloValue> halves, combined(part(0, half), part(half, 2 * half)));
      if (extent % 2 != 0) {
        const std::vector<HloValue> last = part(2 * half, extent);
        for (size_t i = 0; i < count; ++i) {
          HloShape joined = halves[i].shape;
          joined.dims[static_cast<size_t>(d)] = half + 1;
          const std::vector<HloValue> both = {halves[i], last[i]};
          halves[i] = arrays.Joined(both, dim, joined);
        }
      }
      values = std::move(halves);
      extent = half + extent % 2;
    }
  }
  std::vector<HloValue> from;
  for (size_t i = 0; i < count; ++i) {
    HloShape shape = HloShape::Of(values[i].shape.type);
    for (int64_t d = 0; d < values[i].rank(); ++d) {
      if (!absl::c_linear_search(dims, d))
        shape.dims.push_back(values[i].shape.dims[static_cast<size_t>(d)]);
    }
    values[i] = arrays.Reshaped(values[i], shape);
    from.push_back(HloArrays::Broadcast(operands[count + i], {}, shape));
  }
  ASSIGN_OR_RETURN(values, combined(std::move(from), values));
  return instruction.shape.is_tuple() ? HloArrays::Tuple(std::move(values)) : values[0];
}

absl::StatusOr<HloValue> Reduce(const HloModule& module, const HloInstruction& instruction,
                                absl::Span<const HloValue> operands, HloArrays& arrays) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> dims, IntegersOf(instruction, "dimensions"));
  const size_t count = operands.size() / 2;
  if (operands.empty() || operands.size() % 2 != 0)
    return WrongHlo(instruction, "want as many initial values as arrays");
  RETURN_IF_ERROR(CheckDims(instruction, dims, operands[0].shape));
  for (size_t i = 0; i < count; ++i) {
    const HloValue &a = operands[i], &init = operands[count + i];
    if (a.shape.dims != operands[0].shape.dims || !init.shape.dims.empty() ||
        init.shape.type != a.shape.type)
      return WrongHlo(instruction, "want a scalar of the operand's type to begin with");
  }
  const HloValue &a = operands[0], &init = operands[count];
  const absl::string_view combiner = CombinerOf(module, instruction);
  if (count > 1 || instruction.shape.is_tuple() ||
      !ReduceKindOf(combiner, a.shape.type).has_value())
    return ReduceByHalves(module, instruction, operands, dims, arrays);
  HloShape shape = HloShape::Of(a.shape.type);
  for (int64_t d = 0; d < a.rank(); ++d) {
    if (!absl::c_linear_search(dims, d)) shape.dims.push_back(a.shape.dims[static_cast<size_t>(d)]);
  }
  return ReduceOne(*ReduceKindOf(combiner, a.shape.type), a, init, dims, shape, arrays);
}

}  // namespace

std::vector<HloRow> ReductionsHlo() { return {{"reduce", Reduce}}; }

}  // namespace coconet
