#pragma once

// Typed loads and stores, elementwise functions and loops, on the packs of the prelude.

namespace coconet {

// ---- Storage types; computation is in Compute<T>

struct f16 {
  unsigned short bits;
};
struct bf16 {
  unsigned short bits;
};
struct f8e4m3 {
  unsigned char bits;
};
struct f8e5m2 {
  unsigned char bits;
};
struct boolean {
  unsigned char byte;
};  // bool: 0 or 1
using i8 = signed char;
using i16 = short;
using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned;
using i32 = int;
using i64 = long long;
using f32 = float;
using f64 = double;

template <class A, class B>
constexpr bool kSame = false;
template <class A>
constexpr bool kSame<A, A> = true;

template <bool kCondition, class A, class B>
struct EitherType {
  using Type = A;
};
template <class A, class B>
struct EitherType<false, A, B> {
  using Type = B;
};
/// A if the condition holds, else B.
template <bool kCondition, class A, class B>
using Either = typename EitherType<kCondition, A, B>::Type;

template <class T>
constexpr bool kHalf = kSame<T, f16> || kSame<T, bf16>;
template <class T>
constexpr bool kFloat8 = kSame<T, f8e4m3> || kSame<T, f8e5m2>;
/// bool, and integers of fewer than 32 bits.
template <class T>
constexpr bool kNarrow =
    kSame<T, boolean> || kSame<T, i8> || kSame<T, i16> || kSame<T, u8> || kSame<T, u16>;
template <class T>
using Compute = Either<kHalf<T> || kFloat8<T>, float, Either<kNarrow<T>, int, T>>;
/// The type of a value's lanes in memory.
template <class T>
using Raw =
    Either<kHalf<T>, unsigned short, Either<kFloat8<T> || kSame<T, boolean>, unsigned char, T>>;

template <class T, int V>
CC_DEVICE Pack<Compute<T>, V> FromRaw(Pack<Raw<T>, V> x) {
  if constexpr (kSame<T, f16>)
    return FromF16(x);
  else if constexpr (kSame<T, bf16>)
    return FromBF16(x);
  else if constexpr (kSame<T, f8e4m3>)
    return FromE4M3(x);
  else if constexpr (kSame<T, f8e5m2>)
    return FromE5M2(x);
  else if constexpr (kNarrow<T>)
    return ConvertLanes<int>(x);
  else
    return x;
}
template <int V, class T>
CC_DEVICE Pack<Compute<T>, V> Load(const T* p) {
  return FromRaw<T, V>(LoadLanes<V>(reinterpret_cast<const Raw<T>*>(p)));
}
/// The same at any address of a T.
template <int V, class T>
CC_DEVICE Pack<Compute<T>, V> LoadAnywhere(const T* p) {
  return FromRaw<T, V>(LoadLanesAnywhere<V>(reinterpret_cast<const Raw<T>*>(p)));
}

/// One element, within a loop over packs.
template <class T>
CC_DEVICE Compute<T> LoadOne(const T* p) {
  return Get(FromRaw<T, 1>(LoadLane(reinterpret_cast<const Raw<T>*>(p))), 0);
}

/// V elements of memory that are on their way: Fetch issues the loads, in the order of the text;
/// ValueOf returns the values. On hosts ValueOf loads.
template <class T, int V>
struct Fetched {
  LanesAhead<Raw<T>, V> lanes;
};
template <int V, class T>
CC_DEVICE Fetched<T, V> Fetch(const T* p) {
  return {FetchLanes<V>(reinterpret_cast<const Raw<T>*>(p))};
}
template <class T, int V>
CC_DEVICE Pack<Compute<T>, V> ValueOf(const Fetched<T, V>& x) {
  return FromRaw<T, V>(Arrived(x.lanes));
}

/// Store policies: through the cache, or streaming past it.
constexpr bool kCached = false, kStreamed = true;

template <bool kStream, int V, class T>
CC_DEVICE void StoreRaw(T* p, Pack<T, V> x) {
  if constexpr (kStream && V > 1)
    StoreLanesStream<V>(p, x);
  else
    StoreLanes<V>(p, x);
}
/// Rounds to nearest, ties to even, if T is narrower than Compute<T>.
template <class T, int V>
CC_DEVICE Pack<Raw<T>, V> ToRaw(Pack<Compute<T>, V> x) {
  if constexpr (kSame<T, f16>)
    return ToF16(x);
  else if constexpr (kSame<T, bf16>)
    return ToBF16(x);
  else if constexpr (kSame<T, f8e4m3>)
    return ToE4M3(x);
  else if constexpr (kSame<T, f8e5m2>)
    return ToE5M2(x);
  else if constexpr (kNarrow<T>)
    return ConvertLanes<Raw<T>>(x);
  else
    return x;
}
template <bool kStream, int V, class T>
CC_DEVICE void Store(T* p, Pack<Compute<T>, V> x) {
  StoreRaw<kStream>(reinterpret_cast<Raw<T>*>(p), ToRaw<T, V>(x));
}

/// Whether numbers of type T are integers, and whether some are negative.
template <class T>
constexpr bool kInteger = T(0.5) == T(0);
template <class T>
constexpr bool kSigned = T(-1) < T(0);
template <class T>
constexpr T kGreatest = T((u64(1) << (8 * sizeof(T) - kSigned<T>)) - 1);
template <>
inline constexpr u64 kGreatest<u64> = ~u64(0);
template <class T>
constexpr T kLeast = kSigned<T> ? T(-kGreatest<T> - 1) : T(0);

/// Truncates towards zero and saturates; NaN becomes 0.
template <class To, class From>
CC_DEVICE To Saturated(From x) {
  if constexpr (kInteger<From>) {
    if (x < From(0)) return kSigned<To> && i64(x) >= i64(kLeast<To>) ? To(x) : kLeast<To>;
    return u64(x) > u64(kGreatest<To>) ? kGreatest<To> : To(x);
  } else {
    // The greatest plus one is a power of two, so it is exact in every floating-point type; the
    // greatest may not be.
    return x != x                                       ? To(0)
           : x >= From(kGreatest<To> / 2 + 1) * From(2) ? kGreatest<To>
           : x < From(kLeast<To>)                       ? kLeast<To>
                                                        : To(x);
  }
}

/// x as a float if it is one; else the one of its two neighbours whose last bit is odd. Rounding
/// that to 16 or 8 bits rounds x once.
CC_DEVICE float RoundedToOdd(double x) {
  const float nearest = float(x);
  const u32 bits = __builtin_bit_cast(u32, nearest);
  const double magnitude = x < 0 ? -x : x, of_nearest = nearest < 0 ? -nearest : nearest;
  if (of_nearest == magnitude || x != x) return nearest;
  return __builtin_bit_cast(float, (bits - (of_nearest > magnitude)) | 1);
}
template <class Integer>
CC_DEVICE float RoundedToOdd(Integer x) {
  float scale = 1;
  CC_UNROLL for (int bits = 24; bits < int(8 * sizeof(Integer)); bits += 8) {
    const Integer most = Integer(1) << 24;
    const bool is_exact = x <= most && (!kSigned<Integer> || x >= Integer(0) - most);
    scale *= is_exact ? 1 : 256;
    x = is_exact ? x : Integer(x >> 8) | Integer((x & 255) != 0);
  }
  return float(x) * scale;
}
template <int V, class From>
CC_DEVICE Pack<float, V> FloatsToNarrow(Pack<From, V> x) {
  if constexpr (kInteger<From> ? sizeof(From) >= 4 : sizeof(From) == 8) {
    Pack<float, V> r;
    CC_UNROLL for (int i = 0; i < V; ++i) Put<float, V>(r, i, RoundedToOdd(Get(x, i)));
    return r;
  } else {
    return ConvertLanes<float>(x);
  }
}

/// The value after a conversion to type To.
template <class To, int V, class From>
CC_DEVICE Pack<Compute<To>, V> CastTo(Pack<From, V> x) {
  if constexpr (kSame<To, f16>) {
    return FromF16(ToF16(FloatsToNarrow<V>(x)));
  } else if constexpr (kSame<To, bf16>) {
    return FromBF16(ToBF16(FloatsToNarrow<V>(x)));
  } else if constexpr (kSame<To, f8e4m3>) {
    return FromE4M3(ToE4M3(FloatsToNarrow<V>(x)));
  } else if constexpr (kSame<To, f8e5m2>) {
    return FromE5M2(ToE5M2(FloatsToNarrow<V>(x)));
  } else if constexpr (kSame<To, boolean>) {
    return NotEqualTo(x, Splat<V>(From(0)));
  } else if constexpr (kInteger<To>) {
    Pack<Compute<To>, V> r;
    CC_UNROLL for (int i = 0; i < V; ++i) Put<Compute<To>, V>(r, i, Saturated<To>(Get(x, i)));
    return r;
  } else {
    return ConvertLanes<To>(x);
  }
}

/// The low bits of an integer that was computed in a wider type.
template <class To, int V, class From>
CC_DEVICE Pack<Compute<To>, V> Wrapped(Pack<From, V> x) {
  return ConvertLanes<Compute<To>>(ConvertLanes<To>(x));
}

// ---- Elementwise functions ----------------------------------------------------------------------

#define CC_SCALAR(Name, of_double, of_float)                        \
  CC_DEVICE float Name(float x) { return CC_LIBRARY(of_float)(x); } \
  CC_DEVICE double Name(double x) { return CC_LIBRARY(of_double)(x); }
CC_SCALAR(ScalarSqrt, sqrt, sqrtf)
CC_SCALAR(ScalarAbs, fabs, fabsf)
CC_SCALAR(ScalarExp, exp, expf)
CC_SCALAR(ScalarLog, log, logf)
CC_SCALAR(ScalarTanh, tanh, tanhf)
CC_SCALAR(ScalarErf, erf, erff)
CC_SCALAR(ScalarLog1p, log1p, log1pf)
CC_SCALAR(ScalarExpm1, expm1, expm1f)
CC_SCALAR(ScalarSin, sin, sinf)
CC_SCALAR(ScalarCos, cos, cosf)
CC_SCALAR(ScalarFloor, floor, floorf)
CC_SCALAR(ScalarCeil, ceil, ceilf)
CC_SCALAR(ScalarRound, rint, rintf)
#undef CC_SCALAR
CC_DEVICE float ScalarPow(float x, float y) { return CC_LIBRARY(powf)(x, y); }
CC_DEVICE double ScalarPow(double x, double y) { return CC_LIBRARY(pow)(x, y); }
CC_DEVICE float ScalarRem(float x, float y) { return CC_LIBRARY(fmodf)(x, y); }
CC_DEVICE double ScalarRem(double x, double y) { return CC_LIBRARY(fmod)(x, y); }
/// Integers do not trap: x / 0 leaves 0.
template <class T>
CC_DEVICE T ScalarRem(T x, T y) {
  return y == 0 || (kSigned<T> && y == T(-1)) ? T(0) : T(x % y);
}

#define CC_MAP1(Name, expression)           \
  template <class T, int V>                 \
  CC_DEVICE Pack<T, V> Name(Pack<T, V> a) { \
    Pack<T, V> r;                           \
    CC_UNROLL for (int i = 0; i < V; ++i) { \
      const T x = Get(a, i);                \
      Put<T, V>(r, i, expression);          \
    }                                       \
    return r;                               \
  }
CC_MAP1(Log, ScalarLog(x))
CC_MAP1(Log1p, ScalarLog1p(x))
CC_MAP1(Expm1, ScalarExpm1(x))
CC_MAP1(Sin, ScalarSin(x))
CC_MAP1(Cos, ScalarCos(x))
CC_MAP1(Floor, ScalarFloor(x))
CC_MAP1(Ceil, ScalarCeil(x))
CC_MAP1(Round, ScalarRound(x))

#define CC_MAP2(Name, expression)                         \
  template <class T, int V>                               \
  CC_DEVICE Pack<T, V> Name(Pack<T, V> a, Pack<T, V> b) { \
    Pack<T, V> r;                                         \
    CC_UNROLL for (int i = 0; i < V; ++i) {               \
      const T x = Get(a, i), y = Get(b, i);               \
      Put<T, V>(r, i, expression);                        \
    }                                                     \
    return r;                                             \
  }
CC_MAP2(Pow, ScalarPow(x, y))
CC_MAP2(Rem, ScalarRem(x, y))
/// `x`, but NaN if `a` is NaN.
template <class T, int V>
CC_DEVICE Pack<T, V> OrNaN(Pack<T, V> a, Pack<T, V> x) {
  if constexpr (T(0.5) != T(0))
    return Select(NotEqualTo(a, a), a, x);
  else
    return x;
}
/// NaN if an operand is NaN, as minimum and maximum of IEEE 754-2019; of two zeros either.
template <class T, int V>
CC_DEVICE Pack<T, V> Min(Pack<T, V> a, Pack<T, V> b) {
  return OrNaN(a, Select(Less(a, b), a, b));
}
template <class T, int V>
CC_DEVICE Pack<T, V> Max(Pack<T, V> a, Pack<T, V> b) {
  return OrNaN(a, Select(Greater(a, b), a, b));
}
// These take truth values, 0 or 1.
template <int V>
CC_DEVICE Pack<int, V> And(Pack<int, V> a, Pack<int, V> b) {
  return Min(a, b);
}
template <int V>
CC_DEVICE Pack<int, V> Or(Pack<int, V> a, Pack<int, V> b) {
  return Max(a, b);
}
template <int V>
CC_DEVICE Pack<int, V> Not(Pack<int, V> a) {
  return Less(a, Splat<V>(1));
}
/// NaN stays NaN.
template <class T, int V>
CC_DEVICE Pack<T, V> Relu(Pack<T, V> a) {
  return Max(Splat<V>(T(0)), a);
}
template <class T, int V>
CC_DEVICE Pack<T, V> Abs(Pack<T, V> a) {
  if constexpr (T(0.5) != T(0)) {
    Pack<T, V> r;
    CC_UNROLL for (int i = 0; i < V; ++i) Put<T, V>(r, i, ScalarAbs(Get(a, i)));
    return r;
  } else {
    return Select(Less(a, Splat<V>(T(0))), -a, a);
  }
}
/// 1, -1 or 0; NaN stays NaN.
template <class T, int V>
CC_DEVICE Pack<T, V> Sign(Pack<T, V> a) {
  const Pack<T, V> zero = Splat<V>(T(0));
  return Select(Greater(a, zero), Splat<V>(T(1)), Select(Less(a, zero), Splat<V>(T(-1)), a));
}

// ---- Division by numbers that are fixed for a launch --------------------------------------------

/// The number `by`, and the factor that replaces division by it (jit/storage/divisor.h): multiplier
/// = ceil(2^(63 + shift) / by), where 2^shift <= by < 2^(shift + 1).
struct Divisor {
  Index by;
  u64 multiplier;
  Index shift;
};
/// n / d.by for 0 <= n < 2^62. With multiplier * by = 2^(63 + shift) + e, 0 <= e < by, the product
/// n * multiplier / 2^(63 + shift) exceeds n / by by n * e / by / 2^(63 + shift), which is less
/// than 1 / by, since n * e < 2^62 * 2^(shift + 1).
CC_DEVICE Index Quotient(Index n, const Divisor& d) {
  return Index(HighProduct(2 * u64(n), d.multiplier) >> d.shift);
}
CC_DEVICE Divisor MakeDivisor(Index by) {
  Divisor d{by, 0, 0};
  const u64 divisor = by < 1 ? 1 : u64(by), half = u64(1) << 63;
  u64 rest = half % divisor;
  d.multiplier = half / divisor;
  for (; divisor >> (d.shift + 1) != 0; ++d.shift) {
    rest *= 2;
    d.multiplier *= 2;
    if (rest >= divisor) rest -= divisor, ++d.multiplier;
  }
  d.multiplier += rest != 0;
  return d;
}

/// The indices of V elements, from element `i` on, along a dimension of `extent`, along which
/// neighbours are `inner` apart.
template <class T, int V>
CC_DEVICE Pack<T, V> IndicesAlong(Index i, const Divisor& inner, const Divisor& extent) {
  Pack<T, V> r;
  const Index before = inner.by == 1 ? i : Quotient(i, inner);
  Index at = before - Quotient(before, extent) * extent.by, within = i - before * inner.by;
  if (within + V <= inner.by) return Splat<V>(T(at));
  if (inner.by == 1 && at + V <= extent.by) {
    CC_UNROLL for (int lane = 0; lane < V; ++lane) Put<T, V>(r, lane, T(lane));
    return Splat<V>(T(at)) + r;
  }
  CC_UNROLL for (int lane = 0; lane < V; ++lane) {
    Put<T, V>(r, lane, T(at));
    if (++within < inner.by) continue;
    within = 0;
    at = at + 1 < extent.by ? at + 1 : 0;
  }
  return r;
}

// ---- Broadcasting -------------------------------------------------------------------------------

/// Maps an index of the row-major iteration space `dim` (innermost last) to an operand's element.
template <int R>
struct BroadcastMap {
  Divisor dim[R];
  Index stride[R];

  /// Requires that element `i` is in the space.
  CC_DEVICE Index Offset(const BroadcastMap& m, Index i) {
    const Index row = RowOf(m, i);
    return OffsetOfRow(m, row) + (i - row * m.dim[R - 1].by) * m.stride[R - 1];
  }
  /// The number of the row along the innermost dimension that has element `i`.
  CC_DEVICE Index RowOf(const BroadcastMap& m, Index i) {
    return R == 1 ? 0 : Quotient(i, m.dim[R - 1]);
  }
  CC_DEVICE Index OffsetOfRow(const BroadcastMap& m, Index row) {
    Index offset = 0;
    CC_UNROLL for (int k = R - 2; k > 0; --k) {
      const Index outer = Quotient(row, m.dim[k]);
      offset += (row - outer * m.dim[k].by) * m.stride[k];
      row = outer;
    }
    return R == 1 ? 0 : offset + row * m.stride[0];
  }
};

template <int R>
CC_DEVICE Index At(const BroadcastMap<R>& m, Index i) {
  return BroadcastMap<R>::Offset(m, i);
}
template <int R>
CC_DEVICE Index CountOf(const BroadcastMap<R>& m) {
  Index count = 1;
  CC_UNROLL for (int k = 0; k < R; ++k) count *= m.dim[k].by;
  return count;
}
/// A place in a map, for walks over all its elements in order.
template <int R>
struct Step {
  Index at[R], offset;
};
template <int R>
CC_DEVICE Step<R> Begin(const BroadcastMap<R>&) {
  Step<R> step;
  CC_UNROLL for (int k = 0; k < R; ++k) step.at[k] = 0;
  step.offset = 0;
  return step;
}
template <int R>
CC_DEVICE void Advance(Step<R>& step, const BroadcastMap<R>& m) {
  CC_UNROLL for (int k = R - 1; k >= 0; --k) {
    step.offset += m.stride[k];
    if (++step.at[k] < m.dim[k].by) return;
    step.offset -= m.dim[k].by * m.stride[k];
    step.at[k] = 0;
  }
}
/// Whether V elements from `i` on lie in one row along the innermost dimension.
template <int V, int R>
CC_DEVICE bool IsInRow(const BroadcastMap<R>& m, Index i) {
  const Index begin = BroadcastMap<R>::RowOf(m, i) * m.dim[R - 1].by;
  return i - begin + V <= m.dim[R - 1].by;
}
/// The begin of rank `rank`'s part of an extent that is cut by weights: [rank * per - shift, (rank
/// + 1) * per - shift).
CC_DEVICE Index BeginOf(Index per, Index shift, int rank) {
  const Index begin = rank * per - shift;
  return begin < 0 ? 0 : begin;
}
/// The size of rank `rank`'s part of an extent that is cut into parts of `per`.
CC_DEVICE Index OwnPart(Index extent, Index per, int rank) {
  const Index left = extent - rank * per;
  return left < 0 ? 0 : left < per ? left : per;
}
/// The same if the extent is cut by weights.
CC_DEVICE Index OwnPart(Index extent, Index per, Index shift, int rank) {
  const Index begin = BeginOf(per, shift, rank), end = BeginOf(per, shift, rank + 1);
  return (end < extent ? end : extent) - (begin < extent ? begin : extent);
}

/// V elements from `i` on. They are loaded at once if they lie in one row, and there together or in
/// one place.
template <int V, class T, int R>
CC_DEVICE Pack<Compute<T>, V> LoadBroadcast(const T* p, Index i, const BroadcastMap<R>& m) {
  using Map = BroadcastMap<R>;
  const Index length = m.dim[R - 1].by, stride = m.stride[R - 1];
  Index row = Map::RowOf(m, i), within = i - row * length;
  const T* from = p + Map::OffsetOfRow(m, row);
  if constexpr (V == 1) {
    return Load<1>(from + within * stride);
  } else {
    if (within + V <= length) {
      if (stride == 1) return LoadAnywhere<V>(from + within);
      if (stride == 0) return Splat<V>(LoadOne(from));
    }
    Pack<Compute<T>, V> r;
    for (int lane = 0; lane < V; ++lane) {
      Put<Compute<T>, V>(r, lane, LoadOne(from + within * stride));
      if (++within < length) continue;
      within = 0;
      from = p + Map::OffsetOfRow(m, ++row);
    }
    return r;
  }
}

/// V elements of a gather from `i` on: rows `indices` of a table, zeros for rows that are not in
/// [begin, begin + count). `rows` maps to the elements of row 0; the next row is `stride` further
/// on. Requires that neighbours along the innermost dimension of `rows` that are neighbours in
/// memory are of one row of the table.
template <int V, class T, int R>
CC_DEVICE Pack<Compute<T>, V> LoadRows(const T* p, Pack<int, V> indices, Index i,
                                       const BroadcastMap<R>& rows, Index stride, Index begin,
                                       Index count) {
  if (V > 1 && rows.stride[R - 1] == 1 && IsInRow<V>(rows, i)) {
    const Index row = Get(indices, 0);
    if (row < begin || row >= begin + count) return Splat<V>(Compute<T>(0));
    return LoadAnywhere<V>(p + (BroadcastMap<R>::Offset(rows, i) + row * stride));
  }
  Pack<Compute<T>, V> r;
  for (int lane = 0; lane < V; ++lane) {
    const Index row = Get(indices, lane);
    const bool is_there = row >= begin && row < begin + count;
    Put<Compute<T>, V>(r, lane,
                       is_there
                           ? LoadOne(p + (BroadcastMap<R>::Offset(rows, i + lane) + row * stride))
                           : Compute<T>(0));
  }
  return r;
}

}  // namespace coconet
