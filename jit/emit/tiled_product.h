#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "jit/config/beside.h"
#include "jit/config/config.h"
#include "jit/config/target.h"
#include "jit/expressions/kernel_text.h"
#include "jit/launches/placed_launches.h"
#include "jit/storage/arguments.h"
#include "jit/storage/buffers.h"
#include "jit/storage/gemms.h"
#include "runtime/plan.h"

namespace coconet {

/// A product that a kernel makes, alone or with what it computes of it, and which signals each
/// finished tile by a flag if there is a buffer of flags, so that a kernel beside it can take the
/// tile.
struct TiledProduct {
  NodeId product = -1;
  int step = -1;               // of the plan
  int rows = 0, columns = 0;   // of a tile
  int64_t across = 0;          // columns of the product
  std::vector<NodeId> values;  // that are there with a tile: of the product's launch
  int64_t row = 0;             // words of a row of flags
  int flags = -1;              // buffer: one row per writer; -1: it signals nothing
  // The order in which the kernel beside it takes elements (TileOrder in jit/device/tiles.h):
  // slices, and the rows of tiles of one in 1/4096.
  int64_t slices = 1, slice_rows = 0;

  bool Makes(NodeId id) const;
  /// The argument by which a kernel over rows of `width` elements awaits tiles.
  std::string AwaitedIn(Arguments& args, int64_t width) const;
};

/// A product of one matrix on each rank. Internal if it is more than that, which no overlap and no
/// kernel has.
absl::StatusOr<GemmStep> MatrixOf(const PlacedLaunches& u, NodeId id, const BufferTable& table,
                                  const Target& target);

/// A product of one batch on each rank, which a kernel goes on with. Internal if it is more.
absl::StatusOr<GemmBatch> MatricesOf(const PlacedLaunches& u, NodeId id, const BufferTable& table,
                                     const Target& target);

/// The arguments by which a kernel signals its tiles, and the TileFlags or OwnEpochs that have
/// them; its epochs are in a buffer that is added to `table`.
std::string SignalledText(Arguments& args, const TiledProduct& tiles, const Config& config,
                          BufferTable& table);

/// ", " and the GatheredChunks by which a product awaits the rows of its first operand.
std::string AwaitedRowsText(Arguments& args, const PublishedChunks& gathered, const GemmStep& gemm,
                            const Config& config);

/// The initializer of a TileOrder: the order in which the kernel beside the product takes its
/// tiles.
std::string OrderText(Arguments& args, const TiledProduct& tiles);

/// A product of an overlap or a prologue, and the launch whose kernel takes its tiles.
struct TilesPlace {
  const PlacedLaunches& launches;
  NodeId product;
  int reader;
  int step;  // of the product, in the plan
};

/// Adds the buffer of the product's flags to `table`. Errors are those of MatrixOf; Internal if
/// ranks have parts of the product, which none reduces; ResourceExhausted if it has too many tiles.
absl::StatusOr<TiledProduct> MakeTiledProduct(const TilesPlace& at, const Config& config,
                                              const Target& target, BufferTable& table);

/// The call of the dialect that makes all tiles of a product, with any number of blocks, and what
/// it needs of them. `out` and `epilogue`: expressions of the dialect (jit/device/tiles.h), of the
/// flags and of what becomes of the elements. The text around it declares `order` and what is
/// called `product`.
struct TilesCall {
  std::string text;
  std::string to_go_on;  // follows `text` where the kernel does more than make tiles
  BlockNeeds block;
  int threads = 0;  // of a block
};
/// `in`: "" if the first operand is in memory, else ", " and its GatheredChunks.
TilesCall CallTiles(Arguments& args, absl::string_view product, const GemmBatch& batch,
                    const TileShape& shape, absl::string_view out, absl::string_view epilogue,
                    absl::string_view in = "");

/// The product's matrices, with rows of nothing that begin at pieces, as warp groups take them.
GemmBatch InTiles(GemmBatch batch, const TileShape& shape);

/// The kernel that makes all tiles, with any number of blocks, and signals them if `tiles` has
/// flags. `gathered`: the flags of the kernel that gathers its first operand; null: the operand is
/// in memory.
absl::StatusOr<EmittedKernel> EmitTiledProduct(const PlacedLaunches& u, const TiledProduct& tiles,
                                               const PublishedChunks* gathered,
                                               const Config& config, const Target& target,
                                               BufferTable& table);

}  // namespace coconet
