#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/hlo/hlo_operations.h"
#include "coconet/hlo/text/hlo_attributes.h"

namespace coconet {
namespace {

/// One operand of a dot as matrices: [batch..., rows, columns].
struct Matrices {
  Tensor tensor = 0;
  bool transposed = false;         // its last two dimensions
  std::vector<int64_t> free_dims;  // extents of the dimensions that are neither batch nor summed
};

int64_t ProductOf(const HloShape& shape, absl::Span<const int64_t> dims) {
  int64_t product = 1;
  for (int64_t d : dims) product *= shape.dims[static_cast<size_t>(d)];
  return product;
}

/// The operand with its batch dimensions first, then the free ones as one and the summed ones as
/// one, in the order that it has them if all of either kind are together. `is_first`: the summed
/// ones are columns, else rows.
Matrices AsMatrices(const HloValue& a, absl::Span<const int64_t> batch,
                    absl::Span<const int64_t> summed, bool is_first, HloArrays& arrays) {
  Matrices m;
  std::vector<int64_t> free;
  for (int64_t d = 0; d < a.rank(); ++d) {
    if (!absl::c_linear_search(batch, d) && !absl::c_linear_search(summed, d)) free.push_back(d);
  }
  for (int64_t d : free) m.free_dims.push_back(a.shape.dims[static_cast<size_t>(d)]);
  // Rows before columns, unless the operand has them the other way round: a library reads both.
  const std::vector<int64_t> columns = is_first ? std::vector<int64_t>(summed.begin(), summed.end())
                                                : free,
                             rows = is_first ? free
                                             : std::vector<int64_t>(summed.begin(), summed.end());
  m.transposed = !rows.empty() && !columns.empty() && columns.front() < rows.front();
  std::vector<int64_t> order(batch.begin(), batch.end());
  absl::c_copy(m.transposed ? columns : rows, std::back_inserter(order));
  absl::c_copy(m.transposed ? rows : columns, std::back_inserter(order));
  HloShape permuted = HloShape::Of(a.shape.type);
  for (int64_t d : order) permuted.dims.push_back(a.shape.dims[static_cast<size_t>(d)]);
  HloShape matrices = HloShape::Of(a.shape.type);
  for (int64_t d : batch) matrices.dims.push_back(a.shape.dims[static_cast<size_t>(d)]);
  const int64_t row_count = ProductOf(a.shape, rows), column_count = ProductOf(a.shape, columns);
  matrices.dims.push_back(m.transposed ? column_count : row_count);
  matrices.dims.push_back(m.transposed ? row_count : column_count);
  m.tensor = arrays.Whole(
      arrays.Reshaped(HloArrays::Transposed(a, order, std::move(permuted)), std::move(matrices)));
  return m;
}

absl::StatusOr<HloValue> Dot(const HloModule&, const HloInstruction& instruction,
                             absl::Span<const HloValue> operands, HloArrays& arrays) {
  if (operands.size() != 2) return WrongHlo(instruction, "want two operands");
  const HloValue &a = operands[0], &b = operands[1];
  ASSIGN_OR_RETURN(const std::vector<int64_t> batch_a, IntegersOf(instruction, "lhs_batch_dims"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> batch_b, IntegersOf(instruction, "rhs_batch_dims"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> summed_a,
                   IntegersOf(instruction, "lhs_contracting_dims"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> summed_b,
                   IntegersOf(instruction, "rhs_contracting_dims"));
  for (const auto& [batch, summed, operand] :
       {std::tuple(&batch_a, &summed_a, &a), std::tuple(&batch_b, &summed_b, &b)}) {
    std::vector<int64_t> all = *batch;
    absl::c_copy(*summed, std::back_inserter(all));
    RETURN_IF_ERROR(CheckDims(instruction, all, operand->shape));
  }
  const auto extents = [](const HloValue& v, const std::vector<int64_t>& dims) {
    std::vector<int64_t> found;
    for (int64_t d : dims) found.push_back(v.shape.dims[static_cast<size_t>(d)]);
    return found;
  };
  if (extents(a, batch_a) != extents(b, batch_b) || extents(a, summed_a) != extents(b, summed_b))
    return WrongHlo(instruction, "want equal extents of batch and of contracting dimensions");
  const std::optional<DType> to = DTypeOf(instruction.shape.type);
  if (!to.has_value())
    return UnsupportedHlo(instruction, absl::StrCat("to ", Name(instruction.shape.type)));
  // Operands of other types are converted to the result's, which holds them, as XLA does. Products
  // of 8-bit floats are summed in f32, whatever the result's type.
  const auto is_float8 = [](const HloValue& v) { return IsFloat8(*DTypeOf(v.shape.type)); };
  const bool of_floats8 =
      is_float8(a) && is_float8(b) && (IsNarrowFloat(*to) || *to == DType::kF32);
  const HloType type = of_floats8 || IsFloat8(*to) ? HloType::kF32 : instruction.shape.type;
  const auto operand = [&](const HloValue& v) { return of_floats8 ? v : arrays.Cast(v, type); };
  const bool by_library =
      *to == DType::kF32 || *to == DType::kF16 || *to == DType::kBF16 || IsFloat8(*to);
  if (type == HloType::kPred) return UnsupportedHlo(instruction, "of pred");
  const Matrices left = AsMatrices(operand(a), batch_a, summed_a, true, arrays),
                 right = AsMatrices(operand(b), batch_b, summed_b, false, arrays);
  HloShape shape = HloShape::Of(type);
  absl::c_copy(extents(a, batch_a), std::back_inserter(shape.dims));
  const auto lead = static_cast<int>(shape.dims.size());
  HloShape matrices = shape;
  int64_t rows = 1, columns = 1;
  for (int64_t extent : left.free_dims) rows *= extent;
  for (int64_t extent : right.free_dims) columns *= extent;
  matrices.dims.push_back(rows);
  matrices.dims.push_back(columns);
  absl::c_copy(left.free_dims, std::back_inserter(shape.dims));
  absl::c_copy(right.free_dims, std::back_inserter(shape.dims));
  Tensor product = 0;
  if (by_library) {
    product = MatMul(left.tensor, right.tensor, left.transposed, right.transposed);
  } else {
    // [..., rows, 1, summed] times [..., 1, columns, summed], summed.
    const auto turned = [&](const Matrices& m, bool swaps, int at) {
      if (m.tensor.id() < 0) return m.tensor;
      Tensor t = m.tensor;
      if (swaps) {
        std::vector<int> order(static_cast<size_t>(lead) + 2);
        for (size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int>(d);
        std::swap(order[order.size() - 1], order[order.size() - 2]);
        t = Transpose(t, order);
      }
      if (t.id() < 0) return t;
      Shape with_one = t.type().shape;
      with_one.insert(with_one.begin() + lead + at, Dim(1));
      return Reshape(t, with_one);
    };
    const Tensor terms = turned(left, left.transposed, 1) * turned(right, !right.transposed, 0);
    const Tensor sums = Sum(terms, {lead + 2});
    const Shape flat(matrices.dims.begin(), matrices.dims.end());
    product = Reshape(sums, flat);
  }
  return arrays.Cast(arrays.Reshaped(HloArrays::Of(product, matrices), shape),
                     instruction.shape.type);
}

}  // namespace

std::vector<HloRow> DotHlo() { return {{"dot", Dot}}; }

}  // namespace coconet
