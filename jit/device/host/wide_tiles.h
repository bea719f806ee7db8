#pragma once

// Tiles by warp groups of GPUs, as one thread of a host makes them.

namespace coconet {

template <int kTileRows, int kTileColumns, int kTileStages>
struct WideTile {
  static constexpr int kRows = kTileRows, kColumns = kTileColumns;
};

/// Computes all tiles of a product, by all blocks, and signals each tile when `epilogue` has taken
/// its elements.
template <class Tile, int kBytes, bool kTransposeA, bool kTransposeB, class P, class Out, class E,
          class In = NoChunks, class S = NoScales>
CC_DEVICE void MultiplyWideTiles(const Grid& grid, const P& p, const TileOrder& order,
                                 const Out& out, const E& epilogue, const In& in = {},
                                 const S& scales = {}) {
  constexpr int kSide = 64;
  const unsigned epoch = NextEpoch(grid, out), across = TilesAcross(p.n, Tile::kColumns);
  const auto make = [&](unsigned tile_row, unsigned tile_column) {
    const auto at = FindRow<Tile::kRows>(p, tile_row);
    const Index column = Index(tile_column) * Tile::kColumns;
    AwaitRowsOfTile<Tile::kRows>(grid, p, tile_row, in, epoch);
    S own = scales;
    if constexpr (kIsScaled<S> && kIsMany<P>) {
      own.a.at += TakenBy(at.number, p.of_a) * own.a.step;
      own.b.at += TakenBy(at.number, p.of_b) * own.b.step;
    }
    for (Index r = at.row; r < at.row + Tile::kRows && r < p.m; r += kSide) {
      for (Index c = column; c < column + Tile::kColumns && c < p.n; c += kSide)
        MultiplyTileOf<kSide, kTransposeA, kTransposeB>(at.product, r, c, at.above, epilogue, own);
    }
    SignalTile(out, tile_row * across + tile_column, epoch, grid.ThreadId(), grid.BlockSize());
  };
  ForTilesOf<Tile::kRows, Tile::kColumns>(grid, p, order, make);
  KeepEpoch(grid, out, epoch);
}

}  // namespace coconet
