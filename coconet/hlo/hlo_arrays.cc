#include "coconet/hlo/hlo_arrays.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/base/casts.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

Shape ShapeOf(const HloShape& shape) { return Shape(shape.dims.begin(), shape.dims.end()); }

bool SameBits(const Number& a, const Number& b) {
  if (a.is_integer() || b.is_integer()) return a == b;
  return absl::bit_cast<uint64_t>(a.real()) == absl::bit_cast<uint64_t>(b.real());
}

HloShape WithType(HloShape shape, HloType type) {
  shape.type = type;
  return shape;
}

std::vector<int> Identity(int rank) {
  std::vector<int> at(static_cast<size_t>(rank));
  std::iota(at.begin(), at.end(), 0);
  return at;
}

int MappedDims(const HloValue& a) {
  return static_cast<int>(absl::c_count_if(a.at, [](int d) { return d >= 0; }));
}

/// Whether the array's tensor broadcasts, as it is, to one of `rank` dimensions that has the
/// array's at `at`.
bool Fits(const HloValue& a, absl::Span<const int> at, int rank) {
  const int own = static_cast<int>(a.tensor.type().shape.size());
  if (own > rank) return false;
  for (size_t d = 0; d < at.size(); ++d) {
    if (a.at[d] >= 0 && a.at[d] + rank - own != at[d]) return false;
  }
  return true;
}

}  // namespace

std::optional<DType> DTypeOf(HloType type) {
  switch (type) {
    case HloType::kPred:
      return DType::kBool;
    case HloType::kS8:
      return DType::kI8;
    case HloType::kS16:
      return DType::kI16;
    case HloType::kS32:
      return DType::kI32;
    case HloType::kS64:
      return DType::kI64;
    case HloType::kU8:
      return DType::kU8;
    case HloType::kU16:
      return DType::kU16;
    case HloType::kU32:
      return DType::kU32;
    case HloType::kU64:
      return DType::kU64;
    case HloType::kF8E4M3FN:
      return DType::kF8E4M3;
    case HloType::kF8E5M2:
      return DType::kF8E5M2;
    case HloType::kF16:
      return DType::kF16;
    case HloType::kBF16:
      return DType::kBF16;
    case HloType::kF32:
      return DType::kF32;
    case HloType::kF64:
      return DType::kF64;
    default:
      return std::nullopt;
  }
}

HloType IntegerOfBits(int bits, bool is_signed) {
  switch (bits) {
    case 8:
      return is_signed ? HloType::kS8 : HloType::kU8;
    case 16:
      return is_signed ? HloType::kS16 : HloType::kU16;
    case 32:
      return is_signed ? HloType::kS32 : HloType::kU32;
    default:
      return is_signed ? HloType::kS64 : HloType::kU64;
  }
}

Number CountAs(DType dtype, int64_t count) {
  return IsFloat(dtype) ? Number(static_cast<double>(count)) : Wrapped(dtype, count);
}

HloValue HloArrays::Constant(const Number& number, HloShape shape) {
  HloValue value;
  value.at.assign(shape.dims.size(), -1);
  const std::optional<DType> dtype = DTypeOf(shape.type);
  value.number = dtype.has_value() ? Stored(*dtype, number) : number;
  value.shape = std::move(shape);
  return value;
}

HloValue HloArrays::Tuple(std::vector<HloValue> elements) {
  HloValue tuple;
  for (const HloValue& element : elements) tuple.shape.elements.push_back(element.shape);
  tuple.elements = std::move(elements);
  return tuple;
}

HloValue HloArrays::Of(Tensor tensor, HloShape shape) {
  HloValue value;
  value.tensor = tensor;
  value.at = Identity(static_cast<int>(shape.dims.size()));
  value.shape = std::move(shape);
  return value;
}

Tensor HloArrays::Typed(const HloValue& a) {
  if (!a.number.has_value()) return a.tensor;
  const DType dtype = *DTypeOf(a.shape.type);
  if (!a.number->is_nan()) return program_.Constant(*a.number, dtype);
  const Tensor infinity = program_.Constant(INFINITY, dtype);
  return infinity - infinity;  // the language has no name for a NaN
}

Tensor HloArrays::At(const HloValue& a, absl::Span<const int> at, int rank) {
  Tensor tensor = Typed(a);
  if (tensor.id() < 0 || a.number.has_value()) return tensor;
  const Shape from = tensor.type().shape;
  // The array's dimensions that the tensor has, in the order that is wanted; the rest has 1.
  std::vector<std::pair<int, int>> wanted;  // at, the tensor's dimension
  for (size_t d = 0; d < at.size(); ++d) {
    if (a.at[d] >= 0) wanted.emplace_back(at[d], a.at[d]);
  }
  absl::c_sort(wanted);
  const bool is_sorted =
      absl::c_is_sorted(wanted, [](const auto& x, const auto& y) { return x.second < y.second; });
  if (!is_sorted) {
    std::vector<int> order;
    for (int d = 0; d < static_cast<int>(from.size()); ++d) {
      if (absl::c_none_of(wanted, [&](const auto& w) { return w.second == d; })) order.push_back(d);
    }
    for (const auto& w : wanted) order.push_back(w.second);
    tensor = Transpose(tensor, order);
    if (tensor.id() < 0) return tensor;
  }
  Shape to(static_cast<size_t>(rank), Dim(1));
  for (const auto& [place, dim] : wanted) to[static_cast<size_t>(place)] = from[dim];
  return tensor.type().shape == to ? tensor : Reshape(tensor, to);
}

Tensor HloArrays::Aligned(const HloValue& a) {
  if (a.number.has_value()) {
    const Shape ones(a.shape.dims.size(), Dim(1));
    return ones.empty() ? Typed(a) : Reshape(Typed(a), ones);
  }
  return At(a, Identity(a.rank()), a.rank());
}

Tensor HloArrays::Whole(const HloValue& a) {
  const Shape shape = ShapeOf(a.shape);
  const Tensor tensor = a.number.has_value() ? Typed(a) : Aligned(a);
  if (tensor.id() < 0 || tensor.type().shape == shape) return tensor;
  return Expand(tensor, shape);
}

HloValue HloArrays::Apply(Pw fn, const HloValue& a, const Number& number) {
  return Apply(fn, {a, Constant(number, a.shape)});
}

HloValue HloArrays::Apply(Pw fn, absl::Span<const HloValue> operands) {
  const HloType type =
      Info(fn).result == PwResult::kBool ? HloType::kPred : operands.back().shape.type;
  HloShape shape;
  for (const HloValue& operand : operands) {
    if (operand.shape.dims.size() >= shape.dims.size()) shape.dims = operand.shape.dims;
  }
  shape.type = type;
  if (absl::c_all_of(operands, [](const HloValue& v) { return v.number.has_value(); })) {
    std::vector<Number> numbers;
    for (const HloValue& operand : operands) numbers.push_back(*operand.number);
    const DType of = *DTypeOf(operands.back().shape.type);
    return Constant(EvalPointwise(fn, of, numbers.data()), shape);
  }
  // As one of the operands has its dimensions, if the others broadcast to that as they are.
  const auto has_dims = [&](const HloValue& v) { return v.at.size() == shape.dims.size(); };
  const HloValue* most = nullptr;
  for (const HloValue& operand : operands) {
    if (operand.number.has_value() || !has_dims(operand)) continue;
    if (most == nullptr || MappedDims(operand) > MappedDims(*most)) most = &operand;
  }
  std::vector<int> at = Identity(static_cast<int>(shape.dims.size()));
  auto rank = static_cast<int>(at.size());
  if (most != nullptr && most->tensor.id() >= 0) {
    const auto own = static_cast<int>(most->tensor.type().shape.size());
    const bool all_fit = absl::c_all_of(operands, [&](const HloValue& v) {
      return v.number.has_value() || !has_dims(v) || v.tensor.id() < 0 || Fits(v, most->at, own);
    });
    if (all_fit) at = most->at, rank = own;
  }
  HloValue result;
  result.at.assign(shape.dims.size(), -1);
  std::vector<Tensor> tensors;
  for (const HloValue& operand : operands) {
    if (operand.number.has_value() || !has_dims(operand)) {
      tensors.push_back(Typed(operand));  // a scalar
      continue;
    }
    const bool fits = operand.tensor.id() < 0 || Fits(operand, at, rank);
    tensors.push_back(fits ? operand.tensor : At(operand, at, rank));
    for (size_t d = 0; d < at.size(); ++d) {
      if (operand.at[d] >= 0) result.at[d] = at[d];
    }
  }
  result.tensor = Elementwise(fn, std::move(tensors));
  result.shape = std::move(shape);
  if (result.tensor.id() < 0) return result;
  // The tensor may have fewer dimensions, where the others are not there in any operand.
  const int missing = rank - static_cast<int>(result.tensor.type().shape.size());
  for (int& d : result.at) {
    if (d >= 0) d -= missing;
  }
  return result;
}

HloValue HloArrays::Select(const HloValue& holds, const HloValue& a, const HloValue& b) {
  if (holds.number.has_value()) return *holds.number == 0 ? b : a;
  if (a.shape.type != HloType::kPred) return Apply(Pw::kSelect, {holds, a, b});
  return Cast(Apply(Pw::kSelect, {holds, Cast(a, HloType::kU8), Cast(b, HloType::kU8)}),
              HloType::kPred);
}

HloValue HloArrays::Clamped(const HloValue& indices, int64_t most) {
  return Apply(Pw::kMin, Apply(Pw::kMax, indices, 0), most);
}

HloValue HloArrays::Cast(const HloValue& a, HloType type) {
  if (a.shape.type == type) return a;
  HloValue result = a;
  result.shape.type = type;
  if (a.number.has_value()) {
    result.number = Stored(*DTypeOf(type), *a.number);
  } else {
    result.tensor = CastTo(*DTypeOf(type), a.tensor);
  }
  return result;
}

HloValue HloArrays::BitCast(const HloValue& a, HloType type) {
  if (a.shape.type == type) return a;
  HloValue result = a;
  result.shape.type = type;
  if (a.number.has_value()) {
    result.number = BitCastElement(*DTypeOf(a.shape.type), *DTypeOf(type), *a.number);
  } else {
    result.tensor = BitCastTo(*DTypeOf(type), a.tensor);
  }
  return result;
}

HloValue HloArrays::Transposed(const HloValue& a, absl::Span<const int64_t> order, HloShape shape) {
  HloValue result = a;
  result.shape = std::move(shape);
  for (size_t d = 0; d < order.size(); ++d) result.at[d] = a.at[static_cast<size_t>(order[d])];
  return result;
}

HloValue HloArrays::Broadcast(const HloValue& a, absl::Span<const int64_t> dims, HloShape shape) {
  HloValue result = a;
  result.at.assign(shape.dims.size(), -1);
  for (size_t d = 0; d < dims.size(); ++d) result.at[static_cast<size_t>(dims[d])] = a.at[d];
  result.shape = std::move(shape);
  return result;
}

HloValue HloArrays::Reshaped(const HloValue& a, HloShape shape) {
  if (a.number.has_value()) return Constant(*a.number, std::move(shape));
  // Where extents of 1 come and go, the tensor stays.
  HloValue result = a;
  result.at.assign(shape.dims.size(), -1);
  size_t from = 0;
  bool same = true;
  for (size_t d = 0; same && d < shape.dims.size(); ++d) {
    if (shape.dims[d] == 1) continue;
    while (from < a.at.size() && a.shape.dims[from] == 1) ++from;
    same = from < a.at.size() && a.shape.dims[from] == shape.dims[d];
    if (same) result.at[d] = a.at[from++];
  }
  while (from < a.at.size() && a.shape.dims[from] == 1) ++from;
  result.shape = shape;
  if (same && from == a.at.size()) return result;
  const Tensor tensor = Reshape(Whole(a), ShapeOf(shape));
  return Of(tensor, std::move(shape));
}

const std::vector<HloValue>* HloArrays::PartsAlong(const HloValue& a, int dim) const {
  if (a.number.has_value() || a.tensor.id() < 0 || a.at != Identity(a.rank())) return nullptr;
  const auto join = joins_.find(a.tensor.id());
  return join == joins_.end() || join->second.dim != dim ? nullptr : &join->second.parts;
}

HloValue HloArrays::Ranged(const HloValue& a, int dim, int64_t begin, int64_t end) {
  const auto d = static_cast<size_t>(dim);
  HloValue result = a;
  int64_t& extent = result.shape.dims[d];
  if (begin == 0 && end == extent) return a;
  extent = end - begin;
  if (const std::vector<HloValue>* parts = PartsAlong(a, dim); parts != nullptr && begin < end) {
    std::vector<HloValue> within;
    int64_t before = 0;  // elements of the parts so far
    for (const HloValue& part : *parts) {
      const int64_t of_part = part.shape.dims[d];
      const int64_t first = std::max(begin - before, int64_t{0}),
                    last = std::min(end - before, of_part);
      if (first < last) within.push_back(Ranged(part, dim, first, last));
      before += of_part;
    }
    return within.size() == 1 ? within[0] : Joined(within, dim, result.shape);
  }
  const int at = a.at[d];
  if (at >= 0 && a.tensor.id() >= 0) result.tensor = SubTensor(a.tensor, at, begin, end);
  return result;
}

HloValue HloArrays::Joined(absl::Span<const HloValue> parts, int dim, HloShape shape) {
  const auto d = static_cast<size_t>(dim);
  std::vector<HloValue> flat;
  const auto add = [&](const HloValue& part) {
    if (part.shape.dims[d] == 0) return;
    const bool continues = !flat.empty() && part.number.has_value() &&
                           flat.back().number.has_value() &&
                           SameBits(*part.number, *flat.back().number);
    if (continues) {
      flat.back().shape.dims[d] += part.shape.dims[d];
    } else {
      flat.push_back(part);
    }
  };
  for (const HloValue& part : parts) {
    if (const std::vector<HloValue>* inner = PartsAlong(part, dim); inner != nullptr) {
      for (const HloValue& of_part : *inner) add(of_part);
    } else {
      add(part);
    }
  }
  if (flat.empty()) return Constant(0, std::move(shape));
  if (flat.size() == 1 && flat[0].number.has_value())
    return Constant(*flat[0].number, std::move(shape));
  std::vector<Tensor> tensors;
  for (const HloValue& part : flat) tensors.push_back(Whole(part));
  // A Concat takes so many at once.
  while (tensors.size() > 1) {
    std::vector<Tensor> joined;
    for (size_t i = 0; i < tensors.size(); i += kMostJoined) {
      const size_t end = std::min(tensors.size(), i + kMostJoined);
      joined.push_back(CallOf<Concat>({tensors.begin() + static_cast<ptrdiff_t>(i),
                                       tensors.begin() + static_cast<ptrdiff_t>(end)},
                                      dim));
    }
    tensors = std::move(joined);
  }
  if (flat.size() > 1 && tensors[0].id() >= 0)
    joins_.try_emplace(tensors[0].id(), Join{dim, std::move(flat)});
  return Of(tensors[0], std::move(shape));
}

HloValue HloArrays::Reversed(const HloValue& a, absl::Span<const int64_t> dims) {
  HloValue result = a;
  std::vector<int> turned;
  for (int64_t d : dims) {
    if (const int at = a.at[static_cast<size_t>(d)]; at >= 0) turned.push_back(at);
  }
  absl::c_sort(turned);
  if (!turned.empty()) result.tensor = Reverse(a.tensor, std::move(turned));
  return result;
}

HloValue HloArrays::Iota(int dim, HloShape shape) {
  const auto d = static_cast<size_t>(dim);
  HloValue result;
  result.at.assign(shape.dims.size(), -1);
  result.at[d] = 0;
  result.shape = shape;
  result.shape.type = HloType::kS32;
  const Tensor along = Expand(program_.Constant(0, DType::kI32), {shape.dims[d]});
  result.tensor = coconet::Iota(DType::kI32, along, 0);
  return Convert(result, shape.type);
}

HloValue HloArrays::Convert(const HloValue& a, HloType type) {
  const DType from = *DTypeOf(a.shape.type), to = *DTypeOf(type);
  if (!IsInteger(from) || !IsInteger(to) || from == to) return Cast(a, type);
  if (a.number.has_value())
    return Constant(Wrapped(to, a.number->integer()), WithType(a.shape, type));
  if (SizeOf(to) > SizeOf(from)) {
    if (IsSigned(to) || !IsSigned(from)) return Cast(a, type);
    return BitCast(Cast(a, IntegerOfBits(BitsOf(type), /*is_signed=*/true)), type);
  }
  if (SizeOf(to) == SizeOf(from)) return BitCast(a, type);
  // The low bits are an unsigned number that no cast saturates.
  const HloType low_type = IntegerOfBits(BitsOf(type), /*is_signed=*/false);
  const HloValue low =
      Apply(Pw::kBitAnd, BitCast(a, IntegerOfBits(BitsOf(a.shape.type), /*is_signed=*/false)),
            Greatest(*DTypeOf(low_type)));
  return BitCast(Cast(low, low_type), type);
}

HloValue HloArrays::Literal(absl::Span<const Number> elements, HloShape shape) {
  if (elements.empty()) return Constant(0, std::move(shape));
  const Number first = elements[0];
  const auto is_first = [&](const Number& e) {
    return SameBits(e, first) || (e.is_nan() && first.is_nan());
  };
  if (absl::c_all_of(elements, is_first)) return Constant(first, std::move(shape));
  const DType dtype = *DTypeOf(shape.type);
  const auto count = static_cast<int64_t>(elements.size());
  // Integers at equal distances, which wrap around, need no list.
  bool is_even = IsInteger(dtype) && count <= INT32_MAX;
  const Number step = is_even ? Wrapped(dtype, elements[1].integer() - first.integer()) : Number(0);
  for (size_t i = 0; is_even && i < elements.size(); ++i)
    is_even = elements[i] == Wrapped(dtype, first.integer() + step.integer() * absl::int128(i));
  if (is_even) {
    HloShape line = HloShape::Of(shape.type, {count});
    const HloValue steps = Apply(Pw::kMul, Iota(0, line), step);
    return Reshaped(Apply(Pw::kAdd, steps, first), std::move(shape));
  }
  std::vector<HloValue> parts;
  for (size_t i = 0; i < elements.size();) {  // runs of equal numbers
    size_t end = i + 1;
    while (end < elements.size() && SameBits(elements[end], elements[i])) ++end;
    parts.push_back(
        Constant(elements[i], HloShape::Of(shape.type, {static_cast<int64_t>(end - i)})));
    i = end;
  }
  return Reshaped(Joined(parts, 0, HloShape::Of(shape.type, {count})), std::move(shape));
}

HloValue HloArrays::Folded(FoldKind kind, const HloValue& a, absl::Span<const int64_t> dims,
                           HloShape shape) {
  int64_t repeats = 1;  // equal elements that are folded
  std::vector<int> folded;
  HloValue result;
  for (size_t d = 0; d < a.at.size(); ++d) {
    if (!absl::c_linear_search(dims, static_cast<int64_t>(d))) {
      result.at.push_back(a.at[d]);
    } else if (a.at[d] >= 0) {
      folded.push_back(a.at[d]);
    } else {
      repeats *= a.shape.dims[d];
    }
  }
  result.shape = std::move(shape);
  const DType dtype = *DTypeOf(a.shape.type);
  if (a.number.has_value() && repeats > 0) {
    if (kind != FoldKind::kSum) return Constant(*a.number, result.shape);
    return Apply(Pw::kMul, Constant(*a.number, result.shape), CountAs(dtype, repeats));
  }
  if (repeats == 0 || a.number.has_value()) {  // of nothing
    const Number nothing = kind == FoldKind::kSum   ? Number(0)
                           : kind == FoldKind::kMax ? Least(dtype)
                                                    : Greatest(dtype);
    return Constant(nothing, result.shape);
  }
  result.tensor = a.tensor;
  if (!folded.empty()) {
    result.tensor = CallOf<Fold>({a.tensor}, kind, folded);
    if (result.tensor.id() >= 0 && result.tensor.type().shape.empty())
      result.at.assign(result.at.size(), -1);
  }
  if (kind == FoldKind::kSum && repeats > 1)
    return Apply(Pw::kMul, result, CountAs(dtype, repeats));
  return result;
}

}  // namespace coconet
