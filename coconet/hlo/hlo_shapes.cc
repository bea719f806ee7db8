#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/hlo/hlo_operations.h"
#include "coconet/hlo/hlo_shapes.h"
#include "coconet/hlo/text/hlo_attributes.h"

namespace coconet {
namespace {

using Operands = absl::Span<const HloValue>;

absl::StatusOr<HloValue> HloBroadcast(const HloModule&, const HloInstruction& instruction,
                                      Operands operands, HloArrays&) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> dims, IntegersOf(instruction, "dimensions"));
  if (operands.size() != 1 || static_cast<int>(dims.size()) != operands[0].rank())
    return WrongHlo(instruction, "want as many dimensions as the operand has");
  RETURN_IF_ERROR(CheckDims(instruction, dims, instruction.shape));
  for (size_t d = 0; d < dims.size(); ++d) {
    if (operands[0].shape.dims[d] != instruction.shape.dims[static_cast<size_t>(dims[d])])
      return WrongHlo(instruction, "want extents that the operand has");
  }
  HloShape shape = instruction.shape;
  shape.type = operands[0].shape.type;
  return HloArrays::Broadcast(operands[0], dims, shape);
}

absl::Status CheckElements(const HloInstruction& instruction, Operands operands) {
  if (operands.size() != 1 ||
      operands[0].shape.elements_count() != instruction.shape.elements_count() ||
      operands[0].shape.type != instruction.shape.type)
    return WrongHlo(instruction, "want one operand of the same type and number of elements");
  return absl::OkStatus();
}

absl::StatusOr<HloValue> HloReshape(const HloModule&, const HloInstruction& instruction,
                                    Operands operands, HloArrays& arrays) {
  RETURN_IF_ERROR(CheckElements(instruction, operands));
  return arrays.Reshaped(operands[0], instruction.shape);
}

/// The dimensions in the order in which they lie in memory, the slowest first.
std::vector<int64_t> MajorToMinor(const HloShape& shape) {
  std::vector<int64_t> order;
  for (size_t d = 0; d < shape.dims.size(); ++d) {
    order.push_back(shape.minor_to_major.empty() ? static_cast<int64_t>(d)
                                                 : shape.minor_to_major[shape.dims.size() - 1 - d]);
  }
  return order;
}

HloShape Permuted(const HloShape& shape, absl::Span<const int64_t> order) {
  HloShape result;
  result.type = shape.type;
  for (int64_t d : order) result.dims.push_back(shape.dims[static_cast<size_t>(d)]);
  return result;
}

/// The same bytes in memory as another array.
absl::StatusOr<HloValue> Bitcast(const HloModule&, const HloInstruction& instruction,
                                 Operands operands, HloArrays& arrays) {
  RETURN_IF_ERROR(CheckElements(instruction, operands));
  const HloShape &from = operands[0].shape, &to = instruction.shape;
  const std::vector<int64_t> order = MajorToMinor(from), of_result = MajorToMinor(to);
  const HloValue laid = HloArrays::Transposed(operands[0], order, Permuted(from, order));
  const HloValue shaped = arrays.Reshaped(laid, Permuted(to, of_result));
  std::vector<int64_t> back(of_result.size());
  for (size_t d = 0; d < back.size(); ++d)
    back[static_cast<size_t>(of_result[d])] = static_cast<int64_t>(d);
  return HloArrays::Transposed(shaped, back, to);
}

absl::StatusOr<HloValue> HloTranspose(const HloModule&, const HloInstruction& instruction,
                                      Operands operands, HloArrays&) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> order, IntegersOf(instruction, "dimensions"));
  if (operands.size() != 1 || static_cast<int>(order.size()) != operands[0].rank())
    return WrongHlo(instruction, "want each dimension once");
  RETURN_IF_ERROR(CheckDims(instruction, order, operands[0].shape));
  return HloArrays::Transposed(operands[0], order, Permuted(operands[0].shape, order));
}

absl::StatusOr<HloValue> HloReverse(const HloModule&, const HloInstruction& instruction,
                                    Operands operands, HloArrays& arrays) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> dims, IntegersOf(instruction, "dimensions"));
  if (operands.size() != 1) return WrongHlo(instruction, "want one operand");
  RETURN_IF_ERROR(CheckDims(instruction, dims, operands[0].shape));
  return arrays.Reversed(operands[0], dims);
}

absl::StatusOr<HloValue> Slice(const HloModule&, const HloInstruction& instruction,
                               Operands operands, HloArrays& arrays) {
  ASSIGN_OR_RETURN(const std::vector<HloRange> ranges, SliceOf(instruction));
  if (operands.size() != 1 || static_cast<int>(ranges.size()) != operands[0].rank())
    return WrongHlo(instruction, "want a range for each dimension");
  HloValue value = operands[0];
  for (size_t d = 0; d < ranges.size(); ++d) {
    const HloRange& range = ranges[d];
    if (range.begin < 0 || range.end < range.begin || range.end > value.shape.dims[d] ||
        range.step < 1)
      return WrongHlo(instruction, absl::StrCat("want a range within [0, ", value.shape.dims[d],
                                                "), have [", range.begin, ", ", range.end, ")"));
    value = arrays.Ranged(value, static_cast<int>(d), range.begin, range.end);
    value = Strided(value, static_cast<int>(d), range.step, arrays);
  }
  return value;
}

absl::StatusOr<HloValue> Concatenate(const HloModule&, const HloInstruction& instruction,
                                     Operands operands, HloArrays& arrays) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> dims, IntegersOf(instruction, "dimensions"));
  if (operands.empty() || dims.size() != 1) return WrongHlo(instruction, "want one dimension");
  RETURN_IF_ERROR(CheckDims(instruction, dims, operands[0].shape));
  HloShape shape = operands[0].shape;
  shape.minor_to_major.clear();
  const auto d = static_cast<size_t>(dims[0]);
  shape.dims[d] = 0;
  for (const HloValue& operand : operands) {
    HloShape other = operand.shape;
    if (other.dims.size() == shape.dims.size()) {
      shape.dims[d] += other.dims[d];
      other.dims[d] = operands[0].shape.dims[d];
    }
    if (!(other == operands[0].shape))
      return WrongHlo(instruction, "want operands that differ in that dimension only");
  }
  return arrays.Joined(operands, static_cast<int>(d), shape);
}

absl::StatusOr<HloValue> Pad(const HloModule&, const HloInstruction& instruction, Operands operands,
                             HloArrays& arrays) {
  ASSIGN_OR_RETURN(const std::vector<HloPadding> paddings, PaddingOf(instruction));
  if (operands.size() != 2) return WrongHlo(instruction, "want an array and a scalar");
  return Padded(instruction, operands[0], operands[1], paddings, arrays);
}

absl::StatusOr<HloValue> HloIota(const HloModule&, const HloInstruction& instruction,
                                 Operands operands, HloArrays& arrays) {
  ASSIGN_OR_RETURN(const int64_t dim, IntegerOf(instruction, "iota_dimension"));
  if (!operands.empty()) return WrongHlo(instruction, "want no operands");
  RETURN_IF_ERROR(CheckDims(instruction, {&dim, 1}, instruction.shape));
  if (!DTypeOf(instruction.shape.type).has_value() || instruction.shape.type == HloType::kPred)
    return UnsupportedHlo(instruction, absl::StrCat("of ", Name(instruction.shape.type)));
  return arrays.Iota(static_cast<int>(dim), instruction.shape);
}

/// An element of a literal; none where it is no number of the type.
std::optional<Number> NumberOf(absl::string_view text, DType dtype) {
  if (text == "true" || text == "false") return static_cast<int>(text == "true");
  double real = 0;
  int64_t integer = 0;
  uint64_t large = 0;
  if (IsFloat(dtype)) {
    if (!absl::SimpleAtod(text, &real)) return std::nullopt;
    return CheckHolds(dtype, real).ok() ? std::optional<Number>(real) : std::nullopt;
  }
  Number number;
  if (absl::SimpleAtoi(text, &integer)) {
    number = integer;
  } else if (absl::SimpleAtoi(text, &large)) {
    number = large;
  } else {
    return std::nullopt;
  }
  return Stored(dtype, number) == number ? std::optional<Number>(number) : std::nullopt;
}

absl::StatusOr<HloValue> Constant(const HloModule&, const HloInstruction& instruction, Operands,
                                  HloArrays& arrays) {
  const std::optional<DType> dtype = DTypeOf(instruction.shape.type);
  if (!dtype.has_value())
    return UnsupportedHlo(instruction, absl::StrCat("of ", Name(instruction.shape.type)));
  // What has so many numbers is data, and should be a parameter.
  constexpr int64_t kMost = 1 << 16;
  if (instruction.shape.elements_count() > kMost)
    return UnsupportedHlo(instruction, absl::StrCat("of more than ", kMost, " numbers"));
  ASSIGN_OR_RETURN(const std::vector<absl::string_view> texts, LiteralOf(instruction));
  std::vector<Number> numbers;
  for (absl::string_view text : texts) {
    const std::optional<Number> number = NumberOf(text, *dtype);
    if (!number.has_value())
      return WrongHlo(instruction, absl::StrCat("want numbers of ", Name(instruction.shape.type),
                                                ", have '", text, "'"));
    numbers.push_back(*number);
  }
  return arrays.Literal(numbers, instruction.shape);
}

}  // namespace

HloValue Strided(const HloValue& a, int dim, int64_t step, HloArrays& arrays) {
  const auto d = static_cast<size_t>(dim);
  const int64_t extent = a.shape.dims[d], count = (extent + step - 1) / step;
  if (step == 1 || extent == 0) return a;
  if (a.at[d] < 0) return arrays.Ranged(a, dim, 0, count);
  // Rows of `step` elements, of which the first counts; the last row is filled up.
  HloShape padded = a.shape, rows = a.shape, taken = a.shape;
  padded.dims[d] = count * step;
  HloValue whole = a;
  if (count * step > extent) {
    HloShape more = a.shape;
    more.dims[d] = count * step - extent;
    const std::vector<HloValue> parts = {a, HloArrays::Constant(0, more)};
    whole = arrays.Joined(parts, dim, padded);
  }
  rows.dims[d] = count;
  rows.dims.insert(rows.dims.begin() + dim + 1, step);
  taken.dims[d] = count;
  return arrays.Reshaped(arrays.Ranged(arrays.Reshaped(whole, rows), dim + 1, 0, 1), taken);
}

absl::StatusOr<HloValue> Padded(const HloInstruction& instruction, const HloValue& a,
                                const HloValue& filler, absl::Span<const HloPadding> paddings,
                                HloArrays& arrays) {
  if (static_cast<int>(paddings.size()) != a.rank() || !filler.shape.dims.empty() ||
      filler.shape.type != a.shape.type)
    return WrongHlo(instruction, "want a padding for each dimension, and a scalar");
  HloValue value = a;
  const auto filled = [&](const HloShape& like, size_t d, int64_t extent) {
    HloShape shape = like;
    shape.dims[d] = extent;
    return HloArrays::Broadcast(filler, {}, shape);
  };
  for (size_t d = 0; d < paddings.size(); ++d) {
    const HloPadding& padding = paddings[d];
    const int dim = static_cast<int>(d);
    const int64_t extent = value.shape.dims[d];
    const auto is_large = [](int64_t n) { return n > kMostHloElements || n < -kMostHloElements; };
    const bool too_large = is_large(padding.before) || is_large(padding.after) ||
                           padding.between > kMostHloElements / std::max<int64_t>(extent, 1);
    const int64_t between = extent > 0 && !too_large ? extent + (extent - 1) * padding.between : 0;
    if (too_large || is_large(between) || between + padding.before + padding.after < 0)
      return WrongHlo(instruction, "want extents that are neither negative nor too large");
    if (padding.between > 0 && extent > 1) {
      // Each element with what follows it, without what follows the last.
      HloShape column = value.shape, rows = value.shape, line = value.shape;
      column.dims.insert(column.dims.begin() + dim + 1, 1);
      rows = column;
      rows.dims[d + 1] = 1 + padding.between;
      line.dims[d] = extent * (1 + padding.between);
      const std::vector<HloValue> parts = {arrays.Reshaped(value, column),
                                           filled(column, d + 1, padding.between)};
      value = arrays.Reshaped(arrays.Joined(parts, dim + 1, rows), line);
      value = arrays.Ranged(value, dim, 0, between);
    }
    const int64_t begin = std::max<int64_t>(-padding.before, 0);
    const int64_t end = std::max(between + std::min<int64_t>(padding.after, 0), begin);
    if (begin > between) return UnsupportedHlo(instruction, "that leaves nothing");
    value = arrays.Ranged(value, dim, begin, std::min(end, between));
    std::vector<HloValue> parts;
    if (padding.before > 0) parts.push_back(filled(value.shape, d, padding.before));
    parts.push_back(value);
    if (padding.after > 0) parts.push_back(filled(value.shape, d, padding.after));
    if (parts.size() == 1) continue;
    HloShape joined = value.shape;
    joined.dims[d] = between + padding.before + padding.after;
    value = arrays.Joined(parts, dim, joined);
  }
  return value;
}

std::vector<HloRow> ShapesHlo() {
  return {{"broadcast", HloBroadcast},
          {"reshape", HloReshape},
          {"bitcast", Bitcast},
          {"transpose", HloTranspose},
          {"reverse", HloReverse},
          {"slice", Slice},
          {"pad", Pad},
          {"concatenate", Concatenate},
          {"iota", HloIota},
          {"constant", Constant}};
}

}  // namespace coconet
