#pragma once

// Sums of a tile by warp groups (wide_tiles.h), slab by slab. Where operands have scales per block
// (tiles.h), elements of a line in a slab share one: tensor cores sum the slab's products, and each
// thread adds these sums times the scales to those of the tile (DeepSeek-AI, DeepSeek-V3 Technical
// Report, 2024, section 3.3), which so keep the bits of f32.

#include "wgmma.h"

namespace coconet {

/// How a thread's sums of a tile come from its slabs: the products are added to them.
template <class Tile, class S>
struct SlabSums {
  using Sums = typename Tile::Sums;
  static constexpr bool kAdds = true;  // products of later slabs to those of the first
  static constexpr int kPending = 1;   // slabs whose products need not have ended yet

  template <class P, class At>
  CC_MEMBER SlabSums(const Grid&, const S&, const P&, const At&, Index, Sums&) {}
  /// What the products of a slab are added to.
  CC_MEMBER Sums& Of(Sums& sums) { return sums; }
  /// Takes the products of a slab; `next`: the slab behind it, -1: none.
  CC_MEMBER void Take(Sums&, int) {}
};

/// With scales, of whose rows and columns a thread has those that Wgmma gives it. The product has
/// at most 2^30 columns.
template <class Tile, bool kByColumn>
struct SlabSums<Tile, BlockScales<kByColumn>> {
  using Sums = typename Tile::Sums;
  static_assert(Tile::kDown == 1 && Tile::kColumns <= 128);  // or there are too few registers
  static constexpr bool kAdds = false;
  static constexpr int kPending = 0, kColumns = kByColumn ? Tile::kColumns / 4 : 1;
  /// The place of the next slab among the blocks along k.
  struct Place {
    int block = 0, slab = 0;  // of the block
    CC_MEMBER void Next(const LineScales& of) {
      if (++slab == int(of.slabs)) slab = 0, ++block;
    }
  };
  const LineScales& of_a;
  const LineScales& of_b;
  const float *rows_at[2], *columns_at;  // those of k = 0; by column: of column 0
  unsigned left, last;                   // the thread's first column, and the product's last one
  Place in_a, in_b;
  float rows[2] = {}, columns[kColumns] = {};  // the scales of the next slab, if there is any k
  Sums slab;

  /// For the tile of product `p` whose first element is (at.row, column).
  template <class P, class At>
  CC_MEMBER SlabSums(const Grid& grid, const BlockScales<kByColumn>& scales, const P& p,
                     const At& at, Index column, Sums& sums)
      : of_a(scales.a), of_b(scales.b), rows_at{of_a.at, of_a.at}, columns_at(of_b.at) {
    const int thread = grid.ThreadId(), lane = thread % 32;
    const Index row = at.row + thread / 32 * 16 + lane / 4;
    CC_UNROLL for (int i = 0; i < 2; ++i) {
      if constexpr (kIsMany<P>) rows_at[i] += TakenBy(at.number, p.of_a) * of_a.step;
      const Index own = row + 8 * i < p.m ? row + 8 * i : p.m - 1;
      rows_at[i] += Quotient(own, of_a.lines) * of_a.ld;
    }
    if constexpr (kIsMany<P>) columns_at += TakenBy(at.number, p.of_b) * of_b.step;
    if constexpr (!kByColumn) columns_at += Quotient(column, of_b.lines) * of_b.ld;
    left = unsigned(column) + lane % 4 * 2;
    last = unsigned(p.n - 1);
    CC_UNROLL for (int i = 0; i < Tile::kColumns / 2; ++i) sums.d[0][i] = 0;
    if (at.product.k > 0) Load();
  }
  CC_MEMBER Sums& Of(Sums&) { return slab; }
  CC_MEMBER void Take(Sums& sums, int next) {
    PinSums(slab.d[0]);
    const float both[2] = {rows[0] * columns[0], rows[1] * columns[0]};
    if (!kByColumn && IsExact(both[0]) && IsExact(both[1])) {
      CC_UNROLL for (int i = 0; i < Tile::kColumns / 2; ++i) sums.d[0][i] +=
          slab.d[0][i] * both[i / 2 % 2];
    } else {
      CC_UNROLL for (int i = 0; i < Tile::kColumns / 2; ++i) sums.d[0][i] +=
          slab.d[0][i] * rows[i / 2 % 2] * columns[kByColumn ? i / 4 * 2 + i % 2 : 0];
    }
    if (next >= 0) Load();
  }
  /// Whether a product of scales has as many bits as they: it is neither too small nor too large.
  CC_DEVICE bool IsExact(float product) {
    const float magnitude = CC_LIBRARY(fabsf)(product);
    return magnitude >= 0x1p-126f && magnitude < 0x1p127f;
  }
  /// Loads the scales of the next slab.
  CC_MEMBER void Load() {
    CC_UNROLL for (int i = 0; i < 2; ++i) rows[i] = rows_at[i][in_a.block];
    const float* const of_columns = columns_at + in_b.block;
    if constexpr (kByColumn) {
      // Quotient, of numbers below 2^30.
      const u64 multiplier = (of_b.lines.multiplier + 0xffffffffu) >> 32;
      CC_UNROLL for (int i = 0; i < kColumns; ++i) {
        const unsigned own = left + i / 2 * 8 + i % 2, column = own < last ? own : last;
        const unsigned line = unsigned(2 * column * multiplier >> 32) >> of_b.lines.shift;
        columns[i] = of_columns[u64(line) * unsigned(of_b.ld)];
      }
    } else {
      columns[0] = *of_columns;
    }
    in_a.Next(of_a);
    in_b.Next(of_b);
  }
};

}  // namespace coconet
