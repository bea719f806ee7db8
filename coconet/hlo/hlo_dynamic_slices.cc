#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/hlo/hlo_operations.h"
#include "coconet/hlo/text/hlo_attributes.h"

namespace coconet {
namespace {

/// An index as the nearest in [0, last].
int64_t Clamped(const Number& index, int64_t last) {
  return static_cast<int64_t>(std::clamp<absl::int128>(index.integer(), 0, last));
}

/// The rows of an array's dimension by index, a vector; zeros for indices that it has no row for.
HloValue Taken(const HloValue& a, int dim, const HloValue& indices, HloArrays& arrays) {
  HloShape shape = a.shape;
  shape.minor_to_major.clear();
  shape.dims[static_cast<size_t>(dim)] = indices.shape.dims[0];
  return HloArrays::Of(Gather(arrays.Whole(a), arrays.Whole(indices), dim), std::move(shape));
}

absl::Status CheckIndices(const HloInstruction& instruction, absl::Span<const HloValue> indices,
                          const HloShape& shape) {
  if (indices.size() != shape.dims.size())
    return WrongHlo(instruction, "want an index for each dimension");
  for (const HloValue& index : indices) {
    if (!index.shape.dims.empty() || !IsInteger(DTypeOf(index.shape.type).value_or(DType::kF32)))
      return WrongHlo(instruction, "want indices that are scalars of integers");
  }
  return absl::OkStatus();
}

absl::StatusOr<HloValue> DynamicSlice(const HloModule&, const HloInstruction& instruction,
                                      absl::Span<const HloValue> operands, HloArrays& arrays) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> sizes,
                   IntegersOf(instruction, "dynamic_slice_sizes"));
  if (operands.empty()) return WrongHlo(instruction, "want an operand");
  HloValue value = operands[0];
  RETURN_IF_ERROR(CheckIndices(instruction, operands.subspan(1), value.shape));
  if (sizes.size() != value.shape.dims.size())
    return WrongHlo(instruction, "want a size for each dimension");
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t extent = value.shape.dims[d], last = extent - sizes[d];
    if (sizes[d] < 0 || last < 0)
      return WrongHlo(instruction,
                      absl::StrCat("want sizes of at most ", extent, ", have ", sizes[d]));
    const HloValue& index = operands[d + 1];
    const int dim = static_cast<int>(d);
    if (last == 0) continue;
    if (index.number.has_value() || value.at[d] < 0) {
      const int64_t begin = Clamped(index.number.value_or(0), last);
      value = arrays.Ranged(value, dim, begin, begin + sizes[d]);
      continue;
    }
    const HloValue begin = arrays.Clamped(arrays.Cast(index, HloType::kS32), last);
    const HloShape line = HloShape::Of(HloType::kS32, {sizes[d]});
    value =
        Taken(value, dim,
              arrays.Apply(Pw::kAdd, {HloArrays::Broadcast(begin, {}, line), arrays.Iota(0, line)}),
              arrays);
  }
  return value;
}

/// `update` in place of what `a` has from `begin` on, in each dimension from `d` on.
HloValue Replaced(const HloValue& a, const HloValue& update, absl::Span<const int64_t> begin,
                  size_t d, HloArrays& arrays) {
  if (d == begin.size()) return update;
  const int dim = static_cast<int>(d);
  const int64_t extent = a.shape.dims[d], end = begin[d] + update.shape.dims[d];
  const HloValue middle =
      Replaced(arrays.Ranged(a, dim, begin[d], end), update, begin, d + 1, arrays);
  std::vector<HloValue> parts;
  if (begin[d] > 0) parts.push_back(arrays.Ranged(a, dim, 0, begin[d]));
  parts.push_back(middle);
  if (end < extent) parts.push_back(arrays.Ranged(a, dim, end, extent));
  return parts.size() == 1 ? middle : arrays.Joined(parts, dim, a.shape);
}

absl::StatusOr<HloValue> DynamicUpdateSlice(const HloModule&, const HloInstruction& instruction,
                                            absl::Span<const HloValue> operands,
                                            HloArrays& arrays) {
  if (operands.size() < 2 || operands[0].shape.type != operands[1].shape.type ||
      operands[0].rank() != operands[1].rank())
    return WrongHlo(instruction, "want an operand and an update of one type and rank");
  const HloValue &a = operands[0], &update = operands[1];
  const absl::Span<const HloValue> indices = operands.subspan(2);
  RETURN_IF_ERROR(CheckIndices(instruction, indices, a.shape));
  bool are_known = true;
  std::vector<int64_t> begin;
  for (size_t d = 0; d < indices.size(); ++d) {
    const int64_t last = a.shape.dims[d] - update.shape.dims[d];
    if (last < 0) return WrongHlo(instruction, "want an update no larger than the operand");
    are_known = are_known && (last == 0 || indices[d].number.has_value());
    begin.push_back(last == 0 || !are_known ? 0 : Clamped(*indices[d].number, last));
  }
  if (are_known) return Replaced(a, update, begin, 0, arrays);
  // The update's element for each of the operand's, and whether it has one.
  HloValue moved = update;
  HloValue inside = HloArrays::Constant(1, HloShape::Of(HloType::kPred, a.shape.dims));
  for (size_t d = 0; d < indices.size(); ++d) {
    const int64_t extent = a.shape.dims[d], size = update.shape.dims[d];
    if (size == extent) continue;
    const HloShape line = HloShape::Of(HloType::kS32, {extent});
    const HloValue first = arrays.Clamped(arrays.Cast(indices[d], HloType::kS32), extent - size);
    const HloValue from =
        arrays.Apply(Pw::kSub, {arrays.Iota(0, line), HloArrays::Broadcast(first, {}, line)});
    moved = Taken(moved, static_cast<int>(d), from, arrays);
    const HloValue has = arrays.Apply(
        Pw::kAnd,
        {arrays.Apply(Pw::kGe, from, 0), arrays.Apply(Pw::kLt, from, static_cast<double>(size))});
    const auto dim = static_cast<int64_t>(d);
    inside = arrays.Apply(Pw::kAnd, {inside, HloArrays::Broadcast(has, {&dim, 1}, inside.shape)});
  }
  return arrays.Apply(Pw::kSelect, {inside, moved, a});
}

}  // namespace

std::vector<HloRow> DynamicSlicesHlo() {
  return {{"dynamic-slice", DynamicSlice}, {"dynamic-update-slice", DynamicUpdateSlice}};
}

}  // namespace coconet
