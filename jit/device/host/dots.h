#pragma once

// A matrix product of few rows whose b is transposed (few_rows.h): elements of c are products of
// rows of a and rows of b. While some rows of b are multiplied with all rows of a, the next ones
// are prefetched in the order in which they lie in memory: any other order halves the memory's
// speed.

namespace coconet {

/// Rows of a and of b that are multiplied at once: their products fill the registers.
constexpr int kDotRows = kRegisterWords < 16 ? 3 : 6, kDotColumns = 4;
/// Groups of so many rows of a, and elements of them, that stay in the first cache while rows of b
/// pass by. If a has more groups, kPanelColumns rows of b stay there for them, too.
constexpr int kPanelGroups = kRegisterWords < 16 ? 5 : 3,
              kPanelFloats = kRegisterWords < 16 ? 4096 : 8192, kPanelColumns = 2 * kDotColumns;
/// The most elements of a row that are multiplied before other rows.
constexpr int kDotDepth = 512;
/// The most elements of all rows of a in the second cache, and of one row.
constexpr int kFactorFloats = 1 << 16, kFactorDepth = 4096;
/// The bytes of b that are still in the second cache from the last step.
constexpr Index kCachedBytes = 1 << 20;

/// The type in which elements of a and b are multiplied: packs of kWidth fill a register.
template <class T>
struct FactorsOf {
  using Type = float;
  static constexpr int kWidth = kRegisterWords;
};
#if defined(__AVX512BF16__) && !defined(__clang__)
/// bf16 as it is: the processor adds the products of two neighbours to a float.
template <>
struct FactorsOf<bf16> {
  using Type = unsigned short;
  static constexpr int kWidth = 2 * kRegisterWords;
};
#endif
template <class T>
using Factor = typename FactorsOf<T>::Type;
template <class T>
constexpr int kFactors = FactorsOf<T>::kWidth;
template <class T>
using Factors = Pack<Factor<T>, kFactors<T>>;

template <class T>
CC_DEVICE Factors<T> LoadFactors(const T* p) {
  if constexpr (kSame<Factor<T>, float>)
    return LoadAnywhere<kFactors<T>>(p);
  else
    return LoadLanes<kFactors<T>>(reinterpret_cast<const Factor<T>*>(p));
}
/// The `count` elements at `p`, fewer than a pack, followed by zeros.
template <class T>
CC_OUTLINED Factors<T> LoadSomeFactors(const T* p, int count) {
  Factor<T> some[kFactors<T>] = {};
  for (int i = 0; i < count; ++i) {
    if constexpr (kSame<Factor<T>, float>)
      some[i] = Get(Load<1>(p + i), 0);
    else
      some[i] = reinterpret_cast<const Factor<T>*>(p)[i];
  }
  return LoadLanes<kFactors<T>>(some);
}
/// sums + a * b; for bf16, a lane adds the products of two neighbours.
template <int V>
CC_DEVICE Pack<float, V> AddProducts(Pack<float, V> a, Pack<float, V> b, Pack<float, V> sums) {
  return MultiplyAdd(a, b, sums);
}
#if defined(__AVX512BF16__) && !defined(__clang__)
CC_DEVICE Pack<float, 16> AddProducts(Pack<unsigned short, 32> a, Pack<unsigned short, 32> b,
                                      Pack<float, 16> sums) {
  typedef short Halves __attribute__((vector_size(64)));
  return {__builtin_ia32_dpbf16ps_v16sf(sums.d, __builtin_bit_cast(Halves, a.d),
                                        __builtin_bit_cast(Halves, b.d))};
}
#endif

/// What to prefetch: into the second cache from `far` on, `step` elements per pack that is
/// multiplied; into the first one from rows of the next tile, `pitch` apart, or nothing.
template <class T>
struct Ahead {
  const T *far, *near;
  Index step, near_step, pitch;
  void Next() { far += step, near += near_step; }
};

/// Lanes of the two packs one after the other: lane i of the result is lane `from(i)` of them.
template <int V, class F>
CC_DEVICE Pack<float, V> Shuffle(Pack<float, V> a, Pack<float, V> b, F&& from) {
#if defined(__clang__)
  Pack<float, V> r;
  CC_UNROLL for (int i = 0; i < V; ++i) r.d[i] = from(i) < V ? a.d[from(i)] : b.d[from(i) - V];
  return r;
#else
  typename VectorOf<int, V>::Type lanes;
  CC_UNROLL for (int i = 0; i < V; ++i) lanes[i] = from(i);
  return {__builtin_shuffle(a.d, b.d, lanes)};
#endif
}
/// Adds neighbouring halves of parts of kPart lanes of both: the result has the parts, half as
/// long.
template <int kPart, int V>
CC_DEVICE Pack<float, V> AddHalves(Pack<float, V> a, Pack<float, V> b) {
  constexpr int kHalf = kPart / 2;
  const auto low = [](int i) { return i / kHalf * kPart + i % kHalf; };
  const auto high = [](int i) { return i / kHalf * kPart + i % kHalf + kHalf; };
  return Shuffle(a, b, low) + Shuffle(a, b, high);
}

/// sums[j] += all lanes of x[j].
template <int V>
CC_DEVICE void AddSumsOfLanes(const Pack<float, V> (&x)[kDotColumns], float* sums) {
  constexpr int kPart = V / 4;
  Pack<float, V> all = AddHalves<V / 2>(AddHalves<V>(x[0], x[1]), AddHalves<V>(x[2], x[3]));
  if constexpr (kPart > 2) all = all + Shuffle(all, all, [](int i) { return i ^ 2; });
  if constexpr (kPart > 1) all = all + Shuffle(all, all, [](int i) { return i ^ 1; });
  all = Shuffle(all, all, [](int i) { return i % 4 * kPart; });
  struct Quarters {
    Pack<float, 4> quarter[V / 4];
  };
  StoreLanes<4>(sums, LoadLanes<4>(sums) + __builtin_bit_cast(Quarters, all).quarter[0]);
}

/// Lanes of rows of a times rows of b, added up.
template <int kRows>
using Dots = Pack<float, kRegisterWords>[kRows][kDotColumns];

template <int kRows>
CC_DEVICE void Clear(Dots<kRows>& dots) {
  CC_UNROLL for (int i = 0; i < kRows; ++i) CC_UNROLL for (int j = 0; j < kDotColumns; ++j)
      dots[i][j] = Splat<kRegisterWords>(0.0f);
}
/// Adds a pack of each row of a, consecutive at `a`, times the pack of each row of b that of_b(j)
/// loads. In the first kAsked turns a prefetch precedes the loads. Loads and prefetches are kept
/// apart: many at once wait for each other.
template <int kAsked, int kRows, class T, class F>
CC_DEVICE void AddDotLanes(const Factor<T>* a, const Ahead<T>& ahead, F&& of_b, Dots<kRows>& dots) {
  constexpr int W = kFactors<T>;
  Factors<T> of_a[kRows];
  CC_UNROLL for (int i = 0; i < kRows; ++i) {
    of_a[i] = LoadLanes<W>(a + i * W);
    KeepInRegister(of_a[i]);
  }
  CC_UNROLL for (int j = 0; j < kDotColumns; ++j) {
    if (j < kAsked) {
      PrefetchFar(ahead.far + j * W);
      Prefetch(ahead.near + j * ahead.pitch);
    }
    Factors<T> x = of_b(j);
    KeepInRegister(x);
    CC_UNROLL for (int i = 0; i < kRows; ++i) dots[i][j] = AddProducts(of_a[i], x, dots[i][j]);
    KeepOrder();
  }
}
/// sums[i * ld + j] += row i of a . row j of b.
template <int kRows>
CC_DEVICE void AddTo(float* sums, Index ld, const Dots<kRows>& dots) {
  CC_UNROLL for (int i = 0; i < kRows; ++i) AddSumsOfLanes(dots[i], sums + i * ld);
}

/// sums[i * ld + j] += row i of a . row j of b. a has packs [depths / W][kRows], zero beyond
/// `depths`. kKeep: stores b in `kept` as packs [depths / W][kDotColumns].
template <int kRows, bool kKeep, class T>
CC_DEVICE void AddDots(const Factor<T>* a, const T* b, Index ldb, int depths, float* sums, Index ld,
                       Factor<T>* kept, Ahead<T> ahead) {
  constexpr int W = kFactors<T>, kTile = W * kDotColumns;
  Dots<kRows> dots;
  Clear<kRows>(dots);
  const auto keep = [&](int j, Factors<T> x) {
    if constexpr (kKeep) StoreLanes<W>(kept + j * W, x);
    return x;
  };
  int k = 0;
  for (; k + W <= depths; k += W, a += W * kRows, ahead.Next(), kept += kKeep ? kTile : 0)
    AddDotLanes<kKeep ? 2 : kDotColumns, kRows>(
        a, ahead, [&](int j) { return keep(j, LoadFactors(b + j * ldb + k)); }, dots);
  if (k < depths)
    AddDotLanes<0, kRows>(
        a, ahead, [&](int j) { return keep(j, LoadSomeFactors(b + j * ldb + k, depths - k)); },
        dots);
  AddTo<kRows>(sums, ld, dots);
}
/// The same with the b that was kept.
template <int kRows, class T>
CC_DEVICE void AddKeptDots(const Factor<T>* a, const Factor<T>* kept, int depths, float* sums,
                           Index ld, Ahead<T> ahead) {
  constexpr int W = kFactors<T>, kTile = W * kDotColumns;
  Dots<kRows> dots;
  Clear<kRows>(dots);
  for (int k = 0; k < depths; k += W, a += W * kRows, ahead.Next(), kept += kTile)
    AddDotLanes<2, kRows>(a, ahead, [&](int j) { return LoadLanes<W>(kept + j * W); }, dots);
  AddTo<kRows>(sums, ld, dots);
}

/// How AddDotsOf gets b: from memory, from memory while keeping it, or as it was kept.
enum class OfB { kOnce, kToKeep, kKept };

/// Adds the dots of up to kRows rows.
template <int kRows, OfB kOfB, class T>
CC_DEVICE void AddDotsOf(int rows, const Factor<T>* a, const T* b, Index ldb, int depths,
                         float* sums, Index ld, Factor<T>* kept, const Ahead<T>& ahead) {
  if constexpr (kRows > 0) {
    if (rows != kRows)
      AddDotsOf<kRows - 1, kOfB>(rows, a, b, ldb, depths, sums, ld, kept, ahead);
    else if constexpr (kOfB == OfB::kKept)
      AddKeptDots<kRows>(a, kept, depths, sums, ld, ahead);
    else
      AddDots<kRows, kOfB == OfB::kToKeep>(a, b, ldb, depths, sums, ld, kept, ahead);
  }
}

/// Rows of a in groups of kDotRows at most, and `depths` elements of each, as packs [group][depths
/// / W][row of the group], zero beyond `depths`.
template <class T>
struct PackedRows {
  Factor<T>* a;
  int rows, depths = 0, groups = (rows + kDotRows - 1) / kDotRows;
  RowGroup group[(kMostProductRows + kDotRows - 1) / kDotRows];

  PackedRows(Factor<T>* to, int of_a) : a(to), rows(of_a) {
    for (int g = 0; g < groups; ++g) group[g] = RowGroupOf(rows, groups, g);
  }
  int padded() const { return (depths + kFactors<T> - 1) / kFactors<T> * kFactors<T>; }
};

template <bool kTransposeA, class T>
CC_DEVICE void PackRows(const Product<T>& p, Index k, const PackedRows<T>& all, Factor<T>* to) {
  constexpr int W = kFactors<T>;
  for (int g = 0; g < all.groups; ++g) {
    const int first = all.group[g].first, rows = all.group[g].rows;
    for (int row = 0; row < rows; ++row) {
      Factor<T>* const a = to + first * all.padded() + row * W;
      for (int d = 0; d < all.depths; d += W) {
        if (!kTransposeA && d + W <= all.depths) {
          StoreLanes<W>(a + d * rows, LoadFactors(p.a + (first + row) * p.lda + k + d));
          continue;
        }
        for (int lane = 0; lane < W; ++lane) {
          const bool is_there = d + lane < all.depths;
          const T* const from = p.a + PlaceInA<kTransposeA>(p, first + row, k + d + lane);
          a[d * rows + lane] = is_there ? Get(LoadSomeFactors(from, 1), 0) : Factor<T>(0);
        }
      }
    }
  }
}

/// Prefetches go through `depth` elements of each row of b, in the order of memory. If `depth` is
/// 0, only the next tile is prefetched, to the second cache.
template <class T>
struct Requests {
  const T* row;
  Index ldb, depth, step, at = 0;
  Ahead<T> Take(const T* b, int packs, int g) {
    if (depth == 0)  // a group asks for all of the next tile, or for half of it
      return {b, b + (kDotColumns + g % 2 * 2) * ldb, 0, kFactors<T>, ldb};
    if (at >= depth) row += ldb, at -= depth;
    const Ahead<T> ahead = {row + at, b, step, 0, 0};
    at += packs * step;
    return ahead;
  }
};

/// sums[i * ld + j] += row i of a . row j of b, for groups of rows [begin, end) and a tile of b.
template <class T>
CC_OUTLINED void AddDotsOfTile(const PackedRows<T>& all, int begin, int end, const T* b, Index ldb,
                               float* sums, Index ld, Factor<T>* kept, Requests<T>& requests) {
  const int padded = all.padded();
  for (int g = begin; g < end; ++g) {
    const int first = all.group[g].first, rows = all.group[g].rows;
    const Factor<T>* const a = all.a + first * padded;
    const Ahead<T> ahead = requests.Take(b, padded / kFactors<T>, g);
    float* const of_c = sums + first * ld;
    if (g > 0)
      AddDotsOf<kDotRows, OfB::kKept>(rows, a, b, ldb, all.depths, of_c, ld, kept, ahead);
    else if (all.groups == 1)
      AddDotsOf<kDotRows, OfB::kOnce>(rows, a, b, ldb, all.depths, of_c, ld, kept, ahead);
    else
      AddDotsOf<kDotRows, OfB::kToKeep>(rows, a, b, ldb, all.depths, of_c, ld, kept, ahead);
  }
}

/// Computes all depths of `columns` columns of c, at most kPanelColumns, whose rows of b begin at
/// `b`. a has parts of at most `deep` depths.
template <class T>
CC_DEVICE void AddDotsOfColumns(PackedRows<T>& all, int depths, int deep, const T* b, Index ldb,
                                int columns, float* sums, Index ld, Factor<T>* kept,
                                Requests<T> requests) {
  Factor<T>* const a = all.a;
  const int whole = columns / kDotColumns * kDotColumns;
  for (int k = 0; k < depths; k += deep, all.a += deep * all.rows) {
    all.depths = depths - k < deep ? depths - k : deep;
    for (int begin = 0; begin < all.groups; begin += kPanelGroups) {
      const int end = begin + kPanelGroups < all.groups ? begin + kPanelGroups : all.groups;
      for (int j = 0; j < whole; j += kDotColumns)
        AddDotsOfTile(all, begin, end, b + j * ldb + k, ldb, sums + j, ld, kept + j * deep,
                      requests);
    }
    for (int j = whole; j < columns; ++j) {  // a tile of the same row several times
      float alike[kMostProductRows * kDotColumns] = {};
      AddDotsOfTile(all, 0, all.groups, b + j * ldb + k, Index(0), alike, Index(kDotColumns), kept,
                    requests);
      for (int i = 0; i < all.rows; ++i) sums[i * ld + j] += alike[i * kDotColumns];
    }
  }
  all.a = a;
}

template <bool kTransposeA, class T>
CC_OUTLINED void MultiplyByRowsOfB(const ColumnRange& columns, const Product<T>& p) {
  alignas(64) float sums[kSumFloats];
  alignas(64) Factor<T> a[kFactorFloats], kept[kPanelColumns * kDotDepth];
  PackedRows<T> all(a, int(p.m));
  const int at_once = all.groups < kPanelGroups ? all.rows : kPanelGroups * kDotRows,
            most = kPanelFloats / at_once / kFactors<T> * kFactors<T>,
            deep = most < kDotDepth ? most : kDotDepth;
  const Index wide = kSumFloats / all.rows / kPanelColumns * kPanelColumns,
              all_deep = kFactorFloats / all.rows / deep * deep,
              deepest = all_deep < kFactorDepth ? all_deep : kFactorDepth,
              step = (kFactors<T> * kDotColumns + all.groups - 1) / all.groups;
  const bool is_cached = (columns.end - columns.begin) * p.k * Index(sizeof(T)) <= kCachedBytes;
  for (Index first = columns.begin; first < columns.end; first += wide) {
    const Index count = columns.end - first < wide ? columns.end - first : wide;
    for (int i = 0; i < all.rows; ++i) {
      for (Index j = 0; j < count; ++j) sums[i * wide + j] = 0;
    }
    for (Index k = 0; k < p.k; k += deepest) {
      const Index depths = p.k - k < deepest ? p.k - k : deepest;
      if (first == columns.begin || p.k > deepest) {
        for (Index d = 0; d < depths; d += deep) {
          all.depths = int(depths - d < deep ? depths - d : deep);
          PackRows<kTransposeA>(p, k + d, all, a + d * all.rows);
        }
      }
      for (Index j = 0; j < count; j += kPanelColumns) {
        const Index some = count - j < kPanelColumns ? count - j : kPanelColumns;
        const T* const b = p.b + (first + j) * p.ldb + k;
        AddDotsOfColumns(
            all, int(depths), deep, b, p.ldb, int(some), sums + j, wide, kept,
            Requests<T>{b + kPanelColumns * p.ldb, p.ldb, is_cached ? 0 : depths, step});
      }
    }
    for (int i = 0; i < all.rows; ++i) StoreSums(p, i, first, sums + i * wide, count);
  }
}

}  // namespace coconet
