#include "jit/emit/tiled_product.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/status.h"
#include "coconet/schedule/kernel_phases.h"
#include "coconet/schedule/prologue.h"
#include "jit/config/beside.h"
#include "jit/config/launch_shapes.h"
#include "jit/emit/prologue.h"
#include "runtime/kernel_abi.h"

namespace coconet {
namespace {

constexpr int64_t kLineWords = 16;     // so that two writers never share a cache line
constexpr int64_t kPartsOfRow = 4096;  // of TileOrder::rows
constexpr int64_t kPieceBytes = 16;    // what tiles by warp groups copy at once

/// The operands as tensor maps: WideMaps of the dialect.
std::string MapsText(Arguments& args, const GemmBatch& batch, const TileShape& shape) {
  constexpr int kBoxRow = 128;  // bytes
  const GemmStep& gemm = batch.gemm;
  const auto map = [&](absl::string_view name, const GemmStep::Matrix& matrix,
                       const GemmBatch::Taken& taken, const RankExtent& lines, bool along_k,
                       int of_tile) {
    const int box = kBoxRow / static_cast<int>(SizeOf(gemm.TypeOf(matrix)));
    MatrixMap map{.buffer = matrix.buffer,
                  .dtype = gemm.TypeOf(matrix),
                  .offset = matrix.offset,
                  .rows = along_k ? lines : gemm.k,
                  .columns = along_k ? gemm.k : lines,
                  .ld = matrix.ld,
                  .box_rows = along_k ? of_tile : box,
                  .box_columns = box};
    if (batch.IsMany()) {
      map.matrices = taken.count;
      map.matrix_step =
          std::max(matrix.batch_stride, matrix.ld * std::max<int64_t>(1, map.rows.Most()));
    }
    return args.TensorMap(name, map);
  };
  return absl::StrCat(
      "WideMaps{", map("map_a", gemm.a, batch.of_a, gemm.m, !gemm.transpose_a, shape.rows), ", ",
      map("map_b", gemm.b, batch.of_b, gemm.n, gemm.transpose_b, shape.columns), "}, ");
}

/// ", " and the BlockScales of both operands, which lie along k.
std::string ScalesText(Arguments& args, const GemmStep& gemm, const TileShape& shape) {
  const auto of_line = [&](const std::string& name, const GemmStep::Scales& of) {
    const int64_t slabs = (of.block_columns + kSlabOfScales - 1) / kSlabOfScales;
    return absl::StrCat("{", args.Own(of.buffer, DType::kF32), ", ",
                        args.Integer(name + "_ld", of.ld), ", ",
                        args.Integer(name + "_step", of.batch_stride), ", ",
                        args.Divisor(name + "_lines", of.block_rows), ", ",
                        args.Integer(name + "_slabs", slabs), "}");
  };
  const GemmStep::Scales& of_b = gemm.b.scales;
  const bool by_column = of_b.block_rows % shape.columns != 0 && of_b.block_rows < gemm.n.Most();
  return absl::StrCat(", BlockScales<", by_column ? "true" : "false", ">{",
                      of_line("scales_a", gemm.a.scales), ", ", of_line("scales_b", of_b), "}");
}

}  // namespace

std::string AwaitedRowsText(Arguments& args, const PublishedChunks& gathered, const GemmStep& gemm,
                            const Config& config) {
  const int64_t in_row = (gathered.per + gathered.chunk - 1) / gathered.chunk;
  const auto integer = [&](absl::string_view name, int64_t value) {
    return args.Integer(absl::StrCat("gathered_", name), value);
  };
  const auto divisor = [&](absl::string_view name, int64_t by) {
    return args.Divisor(absl::StrCat("gathered_", name), by);
  };
  args.Member("Control* control", "control", {{Arg::Kind::kControl, -1, 0}});
  args.Member("unsigned* gathered", "gathered", {{Arg::Kind::kOwn, gathered.flags, 0}});
  const std::string words[] = {"p.control",
                               "p.gathered",
                               integer("row", gathered.row),
                               integer("first", gathered.first),
                               integer("reported", 2 * gathered.blocks),
                               divisor("extent", gathered.row_elements),
                               divisor("per", gathered.per),
                               divisor("chunk", gathered.chunk),
                               integer("shift", gathered.shift),
                               integer("in_row", in_row),
                               integer("width", gemm.k.total),
                               absl::StrCat("int(", integer("step", gathered.step), ")")};
  return absl::StrCat(", GatheredChunks<kRanks, ", config.multicast ? "true" : "false", ">{",
                      absl::StrJoin(words, ", "), "}");
}

std::string SignalledText(Arguments& args, const TiledProduct& tiles, const Config& config,
                          BufferTable& table) {
  const int epochs =
      AddSyncBuffer(table, absl::StrCat("epochs", tiles.step), DType::kI32, config.blocks, false);
  if (tiles.flags >= 0) {
    args.Member("unsigned* flags[kRanks]", "flags", {{Arg::Kind::kPeers, tiles.flags, 0}});
    args.Integer("row", tiles.row);
    args.Member("Index place", "place", {{Arg::Kind::kNodeRank, -1, 0}});
  }
  args.Member("unsigned* epochs", "epochs", {{Arg::Kind::kOwn, epochs, 0}});
  return tiles.flags >= 0 ? "TileFlags<kRanks>{p.flags, p.row, int(p.place), p.epochs}"
                          : "OwnEpochs{p.epochs}";
}

std::string OrderText(Arguments& args, const TiledProduct& tiles) {
  args.Integer("slices", tiles.slices);
  args.Integer("slice_rows", tiles.slice_rows);
  return "{p.slices, p.slice_rows}";
}

absl::StatusOr<GemmStep> MatrixOf(const PlacedLaunches& u, NodeId id, const BufferTable& table,
                                  const Target& target) {
  std::vector<GemmStep> gemms = GemmsOf(u, id, table, target.ranks, 0, nullptr);
  if (gemms.size() != 1 || gemms[0].batch != 1)
    return absl::InternalError(
        absl::StrCat("tiles of ", NodeText(u.graph(), id), ": want one matrix on each rank"));
  gemms[0].rows = {};  // others await all tiles
  return std::move(gemms[0]);
}

absl::StatusOr<GemmBatch> MatricesOf(const PlacedLaunches& u, NodeId id, const BufferTable& table,
                                     const Target& target) {
  std::optional<GemmBatch> batch = BatchOf(u, id, table, target.ranks);
  if (!batch.has_value()) {
    return absl::InternalError(
        absl::StrCat("tiles of ", NodeText(u.graph(), id), ": want one batch on each rank"));
  }
  return *std::move(batch);
}

bool TiledProduct::Makes(NodeId id) const { return absl::c_linear_search(values, id); }

std::string TiledProduct::AwaitedIn(Arguments& args, int64_t width) const {
  const auto word = [](int64_t value) { return Arg{Arg::Kind::kInt, -1, value}; };
  return args.Member("Tiles tiles", "tiles",
                     {{Arg::Kind::kOwn, flags, 0},
                      word(row),
                      word(rows),
                      word(columns),
                      word(across),
                      word(width)});
}

absl::StatusOr<TiledProduct> MakeTiledProduct(const TilesPlace& at, const Config& config,
                                              const Target& target, BufferTable& table) {
  const PlacedLaunches& u = at.launches;
  ASSIGN_OR_RETURN(const GemmStep gemm, MatrixOf(u, at.product, table, target));
  if (gemm.m.per != 0 || gemm.n.per != 0) {
    return absl::InternalError(absl::StrCat("tiles of ", NodeText(u.graph(), at.product),
                                            ": want the whole product on each rank"));
  }
  const TileShape shape = TileShapeOf(config);
  TiledProduct tiles{.product = at.product,
                     .step = at.step,
                     .rows = shape.rows,
                     .columns = shape.columns,
                     .across = gemm.n.total,
                     .values = {at.product}};
  if (u.of[at.product] != at.reader) tiles.values = u[u.of[at.product]].nodes;
  const int64_t down = (gemm.m.total + tiles.rows - 1) / tiles.rows,
                across = (gemm.n.total + tiles.columns - 1) / tiles.columns;
  if (down * across > FlagSlots::kMostTiles / target.ranks_per_node()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "tiles of ", NodeText(u.graph(), at.product), ": want at most ", FlagSlots::kMostTiles,
        " on all ranks, have ", down, " x ", across, " on each"));
  }
  tiles.row = std::max(kLineWords, (down * across + kLineWords - 1) / kLineWords * kLineWords);
  tiles.flags = AddSyncBuffer(table, absl::StrCat("tiles", at.step), DType::kI32,
                              target.ranks_per_node() * tiles.row, true);
  for (NodeId node : u[at.reader].nodes) {
    if (!Is<ReduceScatter>(u.graph(), node) ||
        !tiles.Makes(CrossingValue(u.program, node, u[at.reader].nodes)))
      continue;
    const TensorSlicing cut = SlicingOf(u.type(node), target.ranks);
    if (!cut.contiguous() || u.type(node).layout.owned() || gemm.n.total == 0) continue;
    tiles.slices = target.ranks;
    // Rounded up, so that a slice of whole rows of tiles has these.
    const int64_t row = gemm.n.total * tiles.rows;
    tiles.slice_rows = (cut.slice_elements() * kPartsOfRow + row - 1) / row;
  }
  return tiles;
}

TilesCall CallTiles(Arguments& args, absl::string_view product, const GemmBatch& batch,
                    const TileShape& shape, absl::string_view out, absl::string_view epilogue,
                    absl::string_view in) {
  const GemmStep& gemm = batch.gemm;
  const bool wide = shape.stages > 0;
  TilesCall call;
  call.threads = shape.tma ? kTmaTileThreads : wide ? kWideTileThreads : kTileThreads;
  if (shape.tma) call.to_go_on = "  EvenRegisters();\n";
  if (wide) call.block = {call.threads, WideTileBytes(shape)};
  const auto flag = [](bool is) { return is ? "true" : "false"; };
  const std::string tile = wide ? absl::StrCat("WideTile<", shape.rows, ", ", shape.columns, ", ",
                                               shape.stages, ">, ", call.block.shared_bytes)
                                : absl::StrCat(shape.rows);
  call.text = absl::StrCat("  Multiply",
                           shape.tma ? "Tma"
                           : wide    ? "Wide"
                                     : "",
                           "Tiles<", tile, ", ", flag(gemm.transpose_a), ", ",
                           flag(gemm.transpose_b), ">(grid, ", product, ", ",
                           shape.tma ? MapsText(args, batch, shape) : "", "order, ", out, ", ",
                           epilogue, in, gemm.scaled() && in.empty() ? ", NoChunks{}" : "",
                           gemm.scaled() ? ScalesText(args, gemm, shape) : "", ");\n");
  return call;
}

GemmBatch InTiles(GemmBatch batch, const TileShape& shape) {
  if (shape.stages == 0) return batch;
  for (GemmStep::Matrix* matrix : {&batch.gemm.a, &batch.gemm.b}) {
    const auto element = static_cast<int64_t>(SizeOf(batch.gemm.TypeOf(*matrix)));
    matrix->ld = std::max(matrix->ld, kPieceBytes / element);
  }
  return batch;
}

absl::StatusOr<EmittedKernel> EmitTiledProduct(const PlacedLaunches& u, const TiledProduct& tiles,
                                               const PublishedChunks* gathered,
                                               const Config& config, const Target& target,
                                               BufferTable& table) {
  ASSIGN_OR_RETURN(GemmStep matrix, MatrixOf(u, tiles.product, table, target));
  const TileShape shape = TileShapeOf(config);
  const GemmBatch batch = InTiles({std::move(matrix)}, shape);
  const GemmStep& gemm = batch.gemm;
  Arguments args;
  std::string body;
  if (gemm.k.per > 0 || gemm.n.per > 0) {
    args.Member("Index rank", "rank", {{Arg::Kind::kRank, -1, 0}});
    absl::StrAppend(&body, "  const int rank = int(p.rank);\n");
  }
  const std::string product = ProductText(args, batch, "");
  absl::StrAppend(&body, args.LocalsText(), product, "  const TileOrder order",
                  OrderText(args, tiles), ";\n");
  const std::string out = SignalledText(args, tiles, config, table);
  const std::string in = gathered == nullptr ? "" : AwaitedRowsText(args, *gathered, gemm, config);
  const TilesCall call = CallTiles(args, "product", batch, shape, out, "StoreProduct(product)", in);
  EmittedKernel kernel = KernelOf(target.ranks_per_node(), /*vec=*/1, args, body + call.text,
                                  GemmBytes(gemm), call.block);
  kernel.threads = call.threads;
  return kernel;
}

}  // namespace coconet
