#pragma once

// Tiles whose operands a GPU's tensor memory accelerator brings, as one thread of a host makes
// them.

#include "wide_tiles.h"

namespace coconet {

template <class Tile, int kBytes, bool kTransposeA, bool kTransposeB, class P, class Out, class E,
          class In = NoChunks, class S = NoScales>
CC_DEVICE void MultiplyTmaTiles(const Grid& grid, const P& p, const WideMaps&,
                                const TileOrder& order, const Out& out, const E& epilogue,
                                const In& in = {}, const S& scales = {}) {
  MultiplyWideTiles<Tile, kBytes, kTransposeA, kTransposeB>(grid, p, order, out, epilogue, in,
                                                            scales);
}

CC_DEVICE void EvenRegisters() {}

}  // namespace coconet
