#pragma once

// Tiles by warp groups of GPUs, as one thread of a host makes them.

namespace coconet {

template <int kTileRows, int kTileColumns, int kTileStages>
struct WideTile {
  static constexpr int kRows = kTileRows, kColumns = kTileColumns;
};

/// Computes all tiles of a product, by all blocks, and signals each tile when `epilogue` has taken
/// its elements.
template <class Tile, int kBytes, bool kTransposeA, bool kTransposeB, class T, class Out, class E,
          class In = NoChunks>
CC_DEVICE void MultiplyWideTiles(const Grid& grid, const Product<T>& p, const TileOrder& order,
                                 const Out& out, const E& epilogue, const In& in = {}) {
  constexpr int kSide = 64;
  const unsigned epoch = NextEpoch(grid, out);
  const unsigned down = TilesAcross(p.m, Tile::kRows), across = TilesAcross(p.n, Tile::kColumns);
  ForTiles(grid, down, across, order, [&](unsigned tile_row, unsigned tile_column) {
    const Index row = Index(tile_row) * Tile::kRows, column = Index(tile_column) * Tile::kColumns;
    AwaitRowsOfTile<Tile::kRows>(grid, p, tile_row, in, epoch);
    for (Index r = row; r < row + Tile::kRows && r < p.m; r += kSide) {
      for (Index c = column; c < column + Tile::kColumns && c < p.n; c += kSide)
        MultiplyTile<kSide, kTransposeA, kTransposeB>(grid, p, r, c, epilogue);
    }
    SignalTile(out, tile_row * across + tile_column, epoch, grid.ThreadId(), grid.BlockSize());
  });
  KeepEpoch(grid, out, epoch);
}

}  // namespace coconet
