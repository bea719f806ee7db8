#pragma once

// A matrix product of few rows in bf16 whose b is transposed, by the processor's matrix registers
// (Intel AMX): rows of b are loaded as they lie, 16 at a time, and multiplied with all rows of a,
// which are rearranged once. So c comes out transposed.

namespace coconet {

#if defined(__AMX_TILE__) && defined(__AMX_BF16__) && !defined(__clang__)

/// Rows of b, and of a, of a register; elements of a row of b in one.
constexpr int kMatrixRows = 16, kMatrixDepth = 32;
/// With fewer rows of a, loading matrices takes longer than products of packs: if b is in the
/// second cache (kCachedBytes), and if it is not.
constexpr Index kFewestRowsInCache = 3, kFewestRows = 5;
/// Elements of all rows of a that are rearranged at a time: 256 KiB of the second cache.
constexpr int kMatrixFactors = 1 << 17;

/// Whether Linux lets this process use the registers, which it must be asked for once.
CC_DEVICE bool HasMatrixRegisters() {
  constexpr long kArchPrctl = 158, kRequest = 0x1023, kTileData = 18;
  static int answer = 0;  // 0: not asked; 1: yes; 2: no. Threads find the same.
  int known = __atomic_load_n(&answer, __ATOMIC_RELAXED);
  if (known == 0) {
    long result = kArchPrctl;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(kRequest), "S"(kTileData)
                     : "rcx", "r11", "memory");
    known = result == 0 ? 1 : 2;
    __atomic_store_n(&answer, known, __ATOMIC_RELAXED);
  }
  return known == 1;
}

/// The shape of each register: rows, and bytes per row. All eight have 16 rows of 64 bytes.
struct alignas(64) MatrixConfig {
  unsigned char palette = 1, start_row = 0, reserved[14] = {};
  unsigned short row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  unsigned char rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

template <int kRegister>
CC_DEVICE void LoadMatrix(const void* p, Index row_bytes) {
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2"
                   :
                   : "r"(p), "r"(row_bytes), "n"(kRegister)
                   : "memory");
}
template <int kRegister>
CC_DEVICE void StoreMatrix(void* p, Index row_bytes) {
  __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)"
                   :
                   : "r"(p), "r"(row_bytes), "n"(kRegister)
                   : "memory");
}
template <int kRegister>
CC_DEVICE void ClearMatrix() {
  __asm__ volatile("tilezero %%tmm%c0" : : "n"(kRegister));
}
/// Register kSums += register kRows (rows of b) * register 7 (rows of a, rearranged).
template <int kSums, int kRows>
CC_DEVICE void MultiplyMatrices() {
  __asm__ volatile("tdpbf16ps %%tmm7, %%tmm%c1, %%tmm%c0" : : "n"(kSums), "n"(kRows));
}

/// Sixteen rows of sixteen words.
using Words = Pack<float, kMatrixRows>;
/// Swaps the elements in rows without the bit and lanes with it with those in rows with it and
/// lanes without it.
template <int kBit>
CC_DEVICE void SwapByBit(Words (&rows)[kMatrixRows]) {
  CC_UNROLL for (int i = 0; i < kMatrixRows; ++i) {
    if ((i & kBit) != 0) continue;
    const Words low = rows[i], high = rows[i | kBit];
    rows[i] =
        Shuffle(low, high, [](int l) { return (l & kBit) == 0 ? l : kMatrixRows + (l ^ kBit); });
    rows[i | kBit] =
        Shuffle(low, high, [](int l) { return (l & kBit) == 0 ? l | kBit : kMatrixRows + l; });
  }
}
CC_DEVICE void TransposeWords(Words (&rows)[kMatrixRows]) {
  SwapByBit<1>(rows);
  SwapByBit<2>(rows);
  SwapByBit<4>(rows);
  SwapByBit<8>(rows);
}

/// Elements of row `row` of op(a) from `depth` on, up to `end` and at most kMatrixDepth, with zeros
/// behind.
template <bool kTransposeA>
CC_DEVICE Words FactorsOfRow(const Product<bf16>& p, Index row, Index depth, Index end) {
  Factors<bf16> factors = {};
  if (row >= p.m) return __builtin_bit_cast(Words, factors);
  const bf16* const from = p.a + PlaceInA<kTransposeA>(p, row, depth);
  if (kTransposeA) {
    const auto* const halves = reinterpret_cast<const unsigned short*>(from);
    for (Index i = 0; i < kMatrixDepth && depth + i < end; ++i)
      Put(factors, int(i), halves[i * p.lda]);
  } else if (depth + kMatrixDepth <= end) {
    factors = LoadFactors(from);
  } else {
    factors = LoadSomeFactors(from, int(end - depth));
  }
  return __builtin_bit_cast(Words, factors);
}
/// Depths [k, k + depths) of kGroups times 16 rows of a, as matrices [group][depth / 32][pair of
/// depths][row][2], with zeros beyond the rows and depths of a.
template <bool kTransposeA, int kGroups>
CC_DEVICE void PackMatrices(const Product<bf16>& p, Index k, Index depths, Index steps,
                            unsigned short* to) {
  for (Index first = 0; first < kGroups * kMatrixRows; first += kMatrixRows) {
    for (Index step = 0; step < steps; ++step, to += kMatrixRows * kMatrixDepth) {
      Words rows[kMatrixRows];
      for (int i = 0; i < kMatrixRows; ++i)
        rows[i] = FactorsOfRow<kTransposeA>(p, first + i, k + step * kMatrixDepth, k + depths);
      TransposeWords(rows);
      for (int i = 0; i < kMatrixRows; ++i)
        StoreLanes<kMatrixRows>(reinterpret_cast<float*>(to) + i * kMatrixRows, rows[i]);
    }
  }
}
/// Stores sums [row of b][row of a] as `count` elements of rows of c, from row `first` and column
/// `column` on.
CC_DEVICE void StoreTransposed(const Product<bf16>& p, Index first, Index column, Index count,
                               const float* sums) {
  Words rows[kMatrixRows];
  for (int i = 0; i < kMatrixRows; ++i) rows[i] = LoadLanes<kMatrixRows>(sums + i * kMatrixRows);
  TransposeWords(rows);
  for (int i = 0; i < kMatrixRows && first + i < p.m; ++i) {
    alignas(64) float row[kMatrixRows];
    StoreLanes<kMatrixRows>(row, rows[i]);
    StoreSums(p, first + i, column, row, count);
  }
}

/// f(Lanes<0>()), f(Lanes<1>()), ...
template <int kCount, int kFrom = 0, class F>
CC_DEVICE void ForEachNumber(F&& f) {
  if constexpr (kFrom < kCount) {
    f(Lanes<kFrom>{});
    ForEachNumber<kCount, kFrom + 1>(f);
  }
}

/// Loads 16 rows of b from `first` on, or as many as there are below `end`, and depths [depth,
/// depth + 32), or as many as there are below `last`. Prefetches the rows `ahead` rows further on,
/// in the order in which they lie in memory, as AddDots does.
template <int kRegister>
CC_DEVICE void LoadRowsOfB(const Product<bf16>& p, Index first, Index end, Index depth, Index last,
                           Index ahead) {
  const auto* const b = reinterpret_cast<const unsigned short*>(p.b);
  if (first + kMatrixRows <= end && depth + kMatrixDepth <= last) {
    LoadMatrix<kRegister>(b + first * p.ldb + depth, 2 * p.ldb);
    if (first + ahead + kMatrixRows > end) return;
    const Index lines = p.k / kMatrixDepth, line = depth / kMatrixDepth * kMatrixRows;
    Index row = line / lines, column = line - row * lines;
    for (int i = 0; i < kMatrixRows; ++i) {
      PrefetchFar(b + (first + ahead + row) * p.ldb + column * kMatrixDepth);
      if (++column == lines) column = 0, ++row;
    }
    return;
  }
  alignas(64) unsigned short part[kMatrixRows * kMatrixDepth] = {};
  for (Index i = 0; i < kMatrixRows && first + i < end; ++i) {
    for (Index j = 0; j < kMatrixDepth && depth + j < last; ++j)
      part[i * kMatrixDepth + j] = b[(first + i) * p.ldb + depth + j];
  }
  LoadMatrix<kRegister>(part, 64);
}

/// Adds depths [k, k + depths) of kBlocks times 16 rows of b from `first` on, as far as they are
/// below `end`, times all rows of a, to sums[block][group][row of b][row of a]. `is_new`: the sums
/// are 0 before. Several sums at once: each product waits for the one before it.
template <int kGroups, int kBlocks>
CC_DEVICE void MultiplyBlocks(const Product<bf16>& p, Index first, Index end, Index k, Index depths,
                              const unsigned short* a, bool is_new, float* sums) {
  constexpr Index kMatrix = kMatrixRows * kMatrixDepth, kSums = kMatrixRows * kMatrixRows;
  const Index steps = (depths + kMatrixDepth - 1) / kMatrixDepth;
  ForEachNumber<kBlocks * kGroups>([&](auto number) {
    constexpr int n = decltype(number)::kCount;
    if (is_new)
      ClearMatrix<n>();
    else
      LoadMatrix<n>(sums + n * kSums, 64);
  });
  for (Index step = 0; step < steps; ++step) {
    if constexpr (kGroups == 1) LoadMatrix<7>(a + step * kMatrix, 64);
    ForEachNumber<kBlocks>([&](auto block) {
      constexpr int n = decltype(block)::kCount, kRows = 4 + n % 3;
      LoadRowsOfB<kRows>(p, first + n * kMatrixRows, end, k + step * kMatrixDepth, k + depths,
                         kBlocks * kMatrixRows);
      ForEachNumber<kGroups>([&](auto group) {
        constexpr int g = decltype(group)::kCount;
        if constexpr (kGroups > 1) LoadMatrix<7>(a + (g * steps + step) * kMatrix, 64);
        MultiplyMatrices<n * kGroups + g, kRows>();
      });
    });
  }
  ForEachNumber<kBlocks * kGroups>([&](auto number) {
    constexpr int n = decltype(number)::kCount;
    StoreMatrix<n>(sums + n * kSums, 64);
  });
}

template <bool kTransposeA, int kGroups>
CC_OUTLINED void MultiplyByMatrices(const ColumnRange& columns, const Product<bf16>& p) {
  constexpr int kBlocks = 4 / kGroups;
  constexpr Index kSums = kGroups * kMatrixRows * kMatrixRows,
                  kWide = kSumFloats / kSums / kBlocks * kBlocks * kMatrixRows,
                  kDeep = kMatrixFactors / (kGroups * kMatrixRows);
  alignas(64) float sums[kSumFloats];
  alignas(64) unsigned short a[kMatrixFactors];
  const MatrixConfig config;
  __asm__ volatile("ldtilecfg %0" : : "m"(config));
  for (Index first = columns.begin; first < columns.end; first += kWide) {
    const Index end = columns.end - first < kWide ? columns.end : first + kWide;
    for (Index k = 0; k < p.k || k == 0; k += kDeep) {
      const Index depths = p.k - k < kDeep ? p.k - k : kDeep,
                  steps = (depths + kMatrixDepth - 1) / kMatrixDepth;
      if (first == columns.begin || p.k > kDeep)
        PackMatrices<kTransposeA, kGroups>(p, k, depths, steps, a);
      for (Index j = first; j < end; j += kBlocks * kMatrixRows)
        MultiplyBlocks<kGroups, kBlocks>(p, j, end, k, depths, a, k == 0,
                                         sums + (j - first) / kMatrixRows * kSums);
    }
    for (Index j = first; j < end; j += kMatrixRows) {
      const float* of_block = sums + (j - first) / kMatrixRows * kSums;
      const Index count = end - j < kMatrixRows ? end - j : Index(kMatrixRows);
      for (Index i = 0; i < p.m; i += kMatrixRows, of_block += kMatrixRows * kMatrixRows)
        StoreTransposed(p, i, j, count, of_block);
    }
  }
  __asm__ volatile("tilerelease");
}

/// False if the product does not fit the matrix registers.
template <bool kTransposeA, class T>
CC_DEVICE bool MultipliedByMatrices(const ColumnRange& columns, const Product<T>& p) {
  if constexpr (kSame<T, bf16>) {
    const bool is_cached = (columns.end - columns.begin) * p.k * Index(sizeof(T)) <= kCachedBytes;
    if (p.m < (is_cached ? kFewestRowsInCache : kFewestRows) || !HasMatrixRegisters()) return false;
    if (p.m <= kMatrixRows)
      MultiplyByMatrices<kTransposeA, 1>(columns, p);
    else if (p.m <= 2 * kMatrixRows)
      MultiplyByMatrices<kTransposeA, 2>(columns, p);
    else
      MultiplyByMatrices<kTransposeA, 4>(columns, p);
    return true;
  }
  return false;
}

#else

template <bool kTransposeA, class T>
CC_DEVICE bool MultipliedByMatrices(const ColumnRange&, const Product<T>&) {
  return false;
}

#endif

}  // namespace coconet
