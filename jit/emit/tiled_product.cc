#include "jit/emit/tiled_product.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "jit/emit/prologue.h"
#include "jit/storage/gemms.h"
#include "runtime/kernel_abi.h"

namespace coconet {
namespace {

constexpr int64_t kLineWords = 16;  // so that two writers never share a cache line

absl::StatusOr<GemmStep> MatrixOf(const PlacedLaunches& u, NodeId id, const BufferTable& table,
                                  const Target& target) {
  std::vector<GemmStep> gemms = GemmsOf(u, id, table, target.ranks, 0, nullptr);
  const bool is_one =
      gemms.size() == 1 && gemms[0].batch == 1 && gemms[0].m.per == 0 && gemms[0].n.per == 0;
  if (!is_one)
    return absl::InternalError(
        absl::StrCat("tiles of ", NodeText(u.graph(), id), ": want one matrix on each rank"));
  return std::move(gemms[0]);
}

}  // namespace

std::string TiledProduct::AwaitedIn(Arguments& args, int64_t width) const {
  const auto word = [](int64_t value) { return Arg{Arg::Kind::kInt, -1, value}; };
  return args.Member(
      "Tiles tiles", "tiles",
      {{Arg::Kind::kOwn, flags, 0}, word(row), word(side), word(columns), word(width)});
}

absl::StatusOr<TiledProduct> MakeTiledProduct(const TilesPlace& at, const Config& config,
                                              const Target& target, BufferTable& table) {
  const PlacedLaunches& u = at.launches;
  ASSIGN_OR_RETURN(const GemmStep gemm, MatrixOf(u, at.product, table, target));
  TiledProduct tiles{
      .product = at.product, .step = at.step, .side = config.tiles, .columns = gemm.n.total};
  const int64_t down = (gemm.m.total + tiles.side - 1) / tiles.side,
                across = (gemm.n.total + tiles.side - 1) / tiles.side;
  if (down * across > FlagSlots::kMostTiles / target.ranks_per_node()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "tiles of ", NodeText(u.graph(), at.product), ": want at most ", FlagSlots::kMostTiles,
        " on all ranks, have ", down, " x ", across, " on each"));
  }
  tiles.row = std::max(kLineWords, (down * across + kLineWords - 1) / kLineWords * kLineWords);
  tiles.flags = AddSyncBuffer(table, absl::StrCat("tiles", at.step), DType::kI32,
                              target.ranks_per_node() * tiles.row, true);
  tiles.slice = gemm.m.total * gemm.n.total;
  for (NodeId node : u[at.reader].nodes) {
    if (!Is<ReduceScatter>(u.graph(), node) ||
        u.Value(u.graph().nodes[node].inputs[0]) != at.product)
      continue;
    const TensorSlicing cut = SlicingOf(u.type(node), target.ranks);
    if (cut.contiguous() && !u.type(node).layout.owned())
      tiles.slices = target.ranks, tiles.slice = cut.slice_elements();
  }
  return tiles;
}

absl::StatusOr<EmittedKernel> EmitTiledProduct(const PlacedLaunches& u, const TiledProduct& tiles,
                                               const Config& config, const Target& target,
                                               BufferTable& table) {
  ASSIGN_OR_RETURN(const GemmStep gemm, MatrixOf(u, tiles.product, table, target));
  Arguments args;
  const auto flag = [](bool is) { return is ? "true" : "false"; };
  std::string body;
  if (gemm.k.per > 0) {
    args.Member("Index rank", "rank", {{Arg::Kind::kRank, -1, 0}});
    absl::StrAppend(&body, "  const int rank = int(p.rank);\n");
  }
  const std::string product = ProductText(args, gemm, "");
  args.Integer("slices", tiles.slices);
  args.Integer("slice", tiles.slice);
  absl::StrAppend(&body, args.LocalsText(), product,
                  "  const TileOrder order{p.slices, p.slice};\n");
  const int epochs =
      AddSyncBuffer(table, absl::StrCat("epochs", tiles.step), DType::kI32, config.blocks, false);
  args.Member("unsigned* flags[kRanks]", "flags", {{Arg::Kind::kPeers, tiles.flags, 0}});
  args.Integer("row", tiles.row);
  args.Member("Index place", "place", {{Arg::Kind::kNodeRank, -1, 0}});
  args.Member("unsigned* epochs", "epochs", {{Arg::Kind::kOwn, epochs, 0}});
  absl::StrAppend(
      &body, "  MultiplyTiles<", tiles.side, ", ", flag(gemm.transpose_a), ", ",
      flag(gemm.transpose_b),
      ">(grid, product, order, TileFlags<kRanks>{p.flags, p.row, int(p.place), p.epochs});\n");
  return KernelOf(target.ranks_per_node(), /*vec=*/1, args, body, GemmBytes(gemm));
}

}  // namespace coconet
