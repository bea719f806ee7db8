#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/hlo/hlo_operations.h"
#include "coconet/hlo/text/hlo_attributes.h"

namespace coconet {
namespace {

/// How a gather or scatter names elements of an operand: XLA's GatherDimensionNumbers, or those of
/// a scatter, whose window dimensions are those of the updates.
struct RowNumbers {
  std::vector<int64_t> window_dims;  // of the result or updates
  std::vector<int64_t> collapsed;    // of the operand, which windows lack
  std::vector<int64_t> indexed;      // of the operand, by element of an index
  std::vector<int64_t> batching, indices_batching;
  int64_t vector_dim = 0;
};

/// The operand as rows that have one number each, and the numbers that the indices name.
struct NumberedRows {
  std::vector<int64_t> order;    // the operand's dimensions that are numbered, then the others
  size_t numbered = 0;           // how many are
  std::vector<int64_t> batch;    // extents of the indices without that of the vectors
  std::vector<int64_t> windows;  // the operand's dimensions along which there are windows, numbered
  HloValue numbers;              // [batch..., extent of windows...] of the rows, i32
  HloValue is_there;             // scatters: whether the window lies in the operand
};

bool Has(const std::vector<int64_t>& list, int64_t value) {
  return absl::c_linear_search(list, value);
}

/// A dimension of the operand that windows lack.
bool IsCollapsed(const RowNumbers& numbers, int64_t d) {
  return Has(numbers.collapsed, d) || Has(numbers.batching, d);
}
/// What windows lack is numbered, by 0 where no index says another.
bool IsNumbered(const RowNumbers& numbers, int64_t d) {
  return Has(numbers.indexed, d) || IsCollapsed(numbers, d);
}

/// Requires that the numbers fit the shapes. `sizes`: of windows, by dimension of the operand.
NumberedRows Numbered(const RowNumbers& numbers, const HloShape& operand, const HloValue& indices,
                      absl::Span<const int64_t> sizes, bool clamps, HloArrays& arrays) {
  NumberedRows rows;
  for (int64_t d = 0; d < indices.rank(); ++d) {
    if (d != numbers.vector_dim) rows.batch.push_back(indices.shape.dims[static_cast<size_t>(d)]);
  }
  const auto rank = static_cast<int64_t>(operand.dims.size());
  for (int64_t d = 0; d < rank; ++d) {
    if (IsNumbered(numbers, d)) rows.order.push_back(d);
  }
  rows.numbered = rows.order.size();
  for (int64_t d = 0; d < rank; ++d) {
    if (!Has(rows.order, d)) rows.order.push_back(d);
  }
  std::vector<int64_t> dims = rows.batch;
  for (size_t i = 0; i < rows.numbered; ++i) {
    const int64_t d = rows.order[i];
    if (IsCollapsed(numbers, d)) continue;
    rows.windows.push_back(d);
    dims.push_back(sizes[static_cast<size_t>(d)]);
  }
  const HloShape shape = HloShape::Of(HloType::kS32, dims);
  std::vector<int64_t> of_batch(rows.batch.size());
  std::iota(of_batch.begin(), of_batch.end(), 0);
  rows.numbers = HloArrays::Constant(0, shape);
  rows.is_there = HloArrays::Constant(1, HloShape::Of(HloType::kPred, dims));
  for (size_t i = 0; i < rows.numbered; ++i) {
    const int64_t d = rows.order[i], extent = operand.dims[static_cast<size_t>(d)];
    HloValue at;  // along d, [batch..., windows...]
    if (const auto batching = absl::c_find(numbers.batching, d);
        batching != numbers.batching.end()) {
      int64_t dim =
          numbers.indices_batching[static_cast<size_t>(batching - numbers.batching.begin())];
      if (dim > numbers.vector_dim) --dim;
      at = arrays.Iota(static_cast<int>(dim), shape);
    } else if (!Has(numbers.indexed, d)) {
      at = HloArrays::Constant(0, shape);
    } else {
      const int64_t element = absl::c_find(numbers.indexed, d) - numbers.indexed.begin();
      const int64_t size = sizes[static_cast<size_t>(d)];
      HloValue start = indices;
      if (numbers.vector_dim < indices.rank()) {
        start = arrays.Ranged(start, static_cast<int>(numbers.vector_dim), element, element + 1);
        start = arrays.Reshaped(start, HloShape::Of(start.shape.type, rows.batch));
      }
      start = arrays.Cast(start, HloType::kS32);
      if (clamps) {
        start = arrays.Clamped(start, extent - size);
      } else {
        const HloValue fits = arrays.Apply(
            Pw::kAnd, {arrays.Apply(Pw::kGe, start, 0),
                       arrays.Apply(Pw::kLe, start, static_cast<double>(extent - size))});
        rows.is_there = arrays.Apply(
            Pw::kAnd, {rows.is_there, HloArrays::Broadcast(fits, of_batch, rows.is_there.shape)});
      }
      at = HloArrays::Broadcast(start, of_batch, shape);
      if (const auto window = absl::c_find(rows.windows, d);
          window != rows.windows.end() && size > 1) {
        const auto dim =
            static_cast<int>(rows.batch.size()) + static_cast<int>(window - rows.windows.begin());
        at = arrays.Apply(Pw::kAdd, {at, arrays.Iota(dim, shape)});
      }
    }
    rows.numbers = arrays.Apply(Pw::kMul, rows.numbers, extent);
    rows.numbers = arrays.Apply(Pw::kAdd, {rows.numbers, at});
  }
  return rows;
}

/// `windowed`: a gather's result, or a scatter's updates.
absl::Status CheckNumbers(const HloInstruction& instruction, const RowNumbers& numbers,
                          const HloShape& operand, const HloShape& indices,
                          const HloShape& windowed) {
  const auto rank = static_cast<int64_t>(indices.dims.size());
  if (numbers.vector_dim < 0 || numbers.vector_dim > rank)
    return WrongHlo(instruction, "want index_vector_dim within the indices");
  const int64_t elements =
      numbers.vector_dim == rank ? 1 : indices.dims[static_cast<size_t>(numbers.vector_dim)];
  if (elements != static_cast<int64_t>(numbers.indexed.size()))
    return WrongHlo(instruction, "want a dimension for each element of an index");
  std::vector<int64_t> all = numbers.indexed;
  absl::c_copy(numbers.batching, std::back_inserter(all));
  RETURN_IF_ERROR(CheckDims(instruction, all, operand));
  all = numbers.collapsed;
  absl::c_copy(numbers.batching, std::back_inserter(all));
  RETURN_IF_ERROR(CheckDims(instruction, all, operand));
  RETURN_IF_ERROR(CheckDims(instruction, numbers.indices_batching, indices));
  if (numbers.batching.size() != numbers.indices_batching.size() ||
      Has(numbers.indices_batching, numbers.vector_dim))
    return WrongHlo(instruction, "want as many batching dimensions of the indices");
  for (size_t i = 0; i < numbers.batching.size(); ++i) {
    if (operand.dims[static_cast<size_t>(numbers.batching[i])] !=
        indices.dims[static_cast<size_t>(numbers.indices_batching[i])])
      return WrongHlo(instruction, "want batching dimensions of equal extents");
  }
  if (!IsInteger(DTypeOf(indices.type).value_or(DType::kF32)))
    return WrongHlo(instruction, "want indices of integers");
  int64_t numbered = 1;
  for (int64_t d = 0; d < static_cast<int64_t>(operand.dims.size()); ++d) {
    if (IsNumbered(numbers, d))
      numbered *= std::max<int64_t>(operand.dims[static_cast<size_t>(d)], 1);
  }
  if (numbered > std::numeric_limits<int32_t>::max())
    return UnsupportedHlo(instruction, "of more than 2^31 rows");
  RETURN_IF_ERROR(CheckDims(instruction, numbers.window_dims, windowed));
  const size_t kept = operand.dims.size() - numbers.collapsed.size() - numbers.batching.size();
  const size_t batch = indices.dims.size() - (numbers.vector_dim < rank ? 1 : 0);
  if (numbers.window_dims.size() != kept || windowed.dims.size() != kept + batch)
    return WrongHlo(instruction, "want a window dimension for each dimension of a window");
  return absl::OkStatus();
}

/// The operand as [rows, others...].
HloValue AsRows(const HloValue& a, const NumberedRows& rows, HloArrays& arrays) {
  HloShape permuted = HloShape::Of(a.shape.type), flat = HloShape::Of(a.shape.type, {1});
  for (size_t i = 0; i < rows.order.size(); ++i) {
    const int64_t extent = a.shape.dims[static_cast<size_t>(rows.order[i])];
    permuted.dims.push_back(extent);
    if (i < rows.numbered)
      flat.dims[0] *= extent;
    else
      flat.dims.push_back(extent);
  }
  return arrays.Reshaped(HloArrays::Transposed(a, rows.order, permuted), flat);
}

/// Where in [batch..., windows..., others...] each dimension of a gather's result, or of a
/// scatter's updates, is.
std::vector<int64_t> WindowOrder(const RowNumbers& numbers, const NumberedRows& rows, int64_t rank,
                                 int64_t operand_rank) {
  std::vector<int64_t> order(static_cast<size_t>(rank)), kept;
  for (int64_t d = 0; d < operand_rank; ++d) {
    if (!IsCollapsed(numbers, d)) kept.push_back(d);
  }
  const auto batch = static_cast<int64_t>(rows.batch.size());
  int64_t next_batch = 0;
  size_t next_window = 0;
  for (int64_t d = 0; d < rank; ++d) {
    if (!Has(numbers.window_dims, d)) {
      order[static_cast<size_t>(d)] = next_batch++;
      continue;
    }
    const int64_t dim = kept[next_window++];
    const auto window = absl::c_find(rows.windows, dim);
    int64_t place = batch;
    if (window != rows.windows.end()) {
      place += window - rows.windows.begin();
    } else {
      place += static_cast<int64_t>(rows.windows.size());
      for (size_t i = rows.numbered; rows.order[i] != dim; ++i) ++place;
    }
    order[static_cast<size_t>(d)] = place;
  }
  return order;
}

absl::StatusOr<HloValue> GatherRows(const HloModule&, const HloInstruction& instruction,
                                    absl::Span<const HloValue> operands, HloArrays& arrays) {
  if (operands.size() != 2) return WrongHlo(instruction, "want two operands");
  HloValue a = operands[0];
  const HloValue& indices = operands[1];
  RowNumbers numbers;
  ASSIGN_OR_RETURN(numbers.window_dims, IntegersOf(instruction, "offset_dims"));
  ASSIGN_OR_RETURN(numbers.collapsed, IntegersOf(instruction, "collapsed_slice_dims"));
  ASSIGN_OR_RETURN(numbers.indexed, IntegersOf(instruction, "start_index_map"));
  ASSIGN_OR_RETURN(numbers.batching, IntegersOf(instruction, "operand_batching_dims"));
  ASSIGN_OR_RETURN(numbers.indices_batching,
                   IntegersOf(instruction, "start_indices_batching_dims"));
  ASSIGN_OR_RETURN(numbers.vector_dim, IntegerOf(instruction, "index_vector_dim"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, IntegersOf(instruction, "slice_sizes"));
  RETURN_IF_ERROR(CheckNumbers(instruction, numbers, a.shape, indices.shape, instruction.shape));
  if (static_cast<int>(sizes.size()) != a.rank())
    return WrongHlo(instruction, "want a slice size for each dimension");
  for (int64_t d = 0; d < a.rank(); ++d) {
    const int64_t extent = a.shape.dims[static_cast<size_t>(d)],
                  size = sizes[static_cast<size_t>(d)];
    const bool is_one = IsCollapsed(numbers, d);
    if (size < 0 || size > extent || (is_one && size > 1))
      return WrongHlo(instruction, "want slice sizes within the operand, 1 where collapsed");
    if (is_one && size == 0) return WrongHlo(instruction, "want slices of one element");
    if (!Has(numbers.indexed, d) && !is_one) a = arrays.Ranged(a, static_cast<int>(d), 0, size);
  }
  const NumberedRows rows = Numbered(numbers, a.shape, indices, sizes, /*clamps=*/true, arrays);
  HloValue table = AsRows(a, rows, arrays);
  HloShape taken = HloShape::Of(a.shape.type, rows.numbers.shape.dims);
  taken.dims.insert(taken.dims.end(), table.shape.dims.begin() + 1, table.shape.dims.end());
  const HloValue found =
      HloArrays::Of(Gather(arrays.Whole(table), arrays.Whole(rows.numbers), 0), taken);
  const std::vector<int64_t> order =
      WindowOrder(numbers, rows, static_cast<int64_t>(instruction.shape.dims.size()), a.rank());
  HloShape shape = HloShape::Of(a.shape.type);
  for (int64_t place : order) {
    shape.dims.push_back(taken.dims[static_cast<size_t>(place)]);
  }
  return HloArrays::Transposed(found, order, shape);
}

absl::StatusOr<HloValue> ScatterRows(const HloModule& module, const HloInstruction& instruction,
                                     absl::Span<const HloValue> operands, HloArrays& arrays) {
  if (operands.size() != 3) return UnsupportedHlo(instruction, "of several operands");
  const absl::string_view combiner = CombinerOf(module, instruction);
  if (combiner != "add") {
    return NotCombined(instruction, combiner);
  }
  const HloValue &a = operands[0], &indices = operands[1], &updates = operands[2];
  RowNumbers numbers;
  ASSIGN_OR_RETURN(numbers.window_dims, IntegersOf(instruction, "update_window_dims"));
  ASSIGN_OR_RETURN(numbers.collapsed, IntegersOf(instruction, "inserted_window_dims"));
  ASSIGN_OR_RETURN(numbers.indexed, IntegersOf(instruction, "scatter_dims_to_operand_dims"));
  ASSIGN_OR_RETURN(numbers.batching, IntegersOf(instruction, "input_batching_dims"));
  ASSIGN_OR_RETURN(numbers.indices_batching,
                   IntegersOf(instruction, "scatter_indices_batching_dims"));
  ASSIGN_OR_RETURN(numbers.vector_dim, IntegerOf(instruction, "index_vector_dim"));
  RETURN_IF_ERROR(CheckNumbers(instruction, numbers, a.shape, indices.shape, updates.shape));
  if (updates.shape.type != a.shape.type)
    return WrongHlo(instruction, "want updates of the operand's type");
  std::vector<int64_t> sizes;
  std::vector<int64_t> windows = numbers.window_dims;
  absl::c_sort(windows);
  size_t next = 0;
  for (int64_t d = 0; d < a.rank(); ++d) {
    const bool is_one = IsCollapsed(numbers, d);
    sizes.push_back(is_one ? 1 : updates.shape.dims[static_cast<size_t>(windows[next++])]);
    const int64_t extent = a.shape.dims[static_cast<size_t>(d)];
    if (sizes.back() > extent)
      return WrongHlo(instruction, "want windows no larger than the operand");
    if (!IsNumbered(numbers, d) && sizes.back() != extent)
      return UnsupportedHlo(instruction, "of windows that are parts");
  }
  const NumberedRows rows = Numbered(numbers, a.shape, indices, sizes, /*clamps=*/false, arrays);
  const Tensor places = arrays.Whole(arrays.Apply(
      Pw::kSelect, {rows.is_there, rows.numbers, HloArrays::Constant(-1, rows.numbers.shape)}));
  // [batch..., windows..., others...] of the updates.
  const std::vector<int64_t> order = WindowOrder(numbers, rows, updates.rank(), a.rank());
  std::vector<int64_t> back(order.size());
  HloShape shape = HloShape::Of(updates.shape.type);
  for (size_t d = 0; d < order.size(); ++d) {
    back[static_cast<size_t>(order[d])] = static_cast<int64_t>(d);
  }
  for (int64_t d : back) shape.dims.push_back(updates.shape.dims[static_cast<size_t>(d)]);
  const HloValue moved = HloArrays::Transposed(updates, back, shape);
  const HloValue table = AsRows(a, rows, arrays);
  const DType dtype = *DTypeOf(a.shape.type);
  if (dtype != DType::kF32 && dtype != DType::kF16 && dtype != DType::kBF16)
    return UnsupportedHlo(instruction, absl::StrCat("of ", Name(a.shape.type)));
  const Shape table_shape(table.shape.dims.begin(), table.shape.dims.end());
  const Tensor sums = CallOf<ScatterAdd>({arrays.Whole(moved), places}, table_shape);
  const HloShape of_sums = HloShape::Of(HloType::kF32, table.shape.dims);
  // Added in f32 where that is wider, as the sums are.
  const HloValue result = arrays.Cast(
      arrays.Apply(Pw::kAdd, {arrays.Cast(table, HloType::kF32), HloArrays::Of(sums, of_sums)}),
      a.shape.type);
  // Back to the operand's dimensions.
  HloShape permuted = HloShape::Of(a.shape.type);
  std::vector<int64_t> restored(rows.order.size());
  for (size_t i = 0; i < rows.order.size(); ++i) {
    permuted.dims.push_back(a.shape.dims[static_cast<size_t>(rows.order[i])]);
    restored[static_cast<size_t>(rows.order[i])] = static_cast<int64_t>(i);
  }
  HloShape original = a.shape;
  original.minor_to_major.clear();
  return HloArrays::Transposed(arrays.Reshaped(result, permuted), restored, original);
}

}  // namespace

std::vector<HloRow> RowsByIndexHlo() { return {{"gather", GatherRows}, {"scatter", ScatterRows}}; }

}  // namespace coconet
