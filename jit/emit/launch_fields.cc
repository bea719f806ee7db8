#include "jit/emit/launch_fields.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "jit/emit/tiled_product.h"
#include "jit/storage/exchanged_dims.h"
#include "runtime/kernel_abi.h"

namespace coconet {
namespace {

/// How the elements are cut, in elements.
struct Extents {
  TensorSlicing cut;
  int64_t row_elements = 0;
  int64_t per = 0;  // of a slice
  int64_t chunk = 0;
};

Extents ExtentsOf(const KernelContext& k) {
  const int64_t length = std::max<int64_t>(1, k.row_length);
  const int64_t rows = std::max<int64_t>(1, k.config.chunk / length);
  Extents e{.cut = SlicingOf(k.space.shape, k.slices, k.target.ranks)};
  e.row_elements = e.cut.slicing.extent * e.cut.inner;
  // A kernel without slices of its own takes those of the overlap, which may be of other columns.
  e.per = k.PiecesOfSlices() ? k.piece->per * k.piece->unit(k.space.shape)
                             : e.cut.slicing.per * e.cut.inner;
  e.chunk = k.space.row_dims > 0 ? rows * length : k.config.chunk;
  return e;
}

/// How an exchange's tensors are cut, as the dialect's ExchangeCut has it.
struct ExchangeExtents {
  int64_t outer, first, middle, second, inner, per_first, per_second, shift_first, shift_second;
};

ExchangeExtents ExchangeOf(const KernelContext& k) {
  const ExchangedDims x =
      ExchangedDimsOf(k.space.shape, k.exchange->from, k.exchange->to, k.target.ranks);
  const bool from_first = x.from < x.to;
  const int low = std::min(x.from, x.to), high = std::max(x.from, x.to);
  const Slicing &first = from_first ? x.of_from : x.of_to,
                &second = from_first ? x.of_to : x.of_from;
  ExchangeExtents e{.outer = 1,
                    .first = first.extent,
                    .middle = 1,
                    .second = second.extent,
                    .inner = x.inner(),
                    .per_first = first.per,
                    .per_second = second.per,
                    .shift_first = first.shift,
                    .shift_second = second.shift};
  for (int d = 0; d < low; ++d) e.outer *= x.shape[d].size;
  for (int d = low + 1; d < high; ++d) e.middle *= x.shape[d].size;
  return e;
}

/// The most parcels that go from one rank to another: CountParcels of the dialect.
int64_t CountParcels(const ExchangeExtents& e, int64_t chunk) {
  const int64_t run = e.per_second * e.inner, runs = e.outer * e.per_first * e.middle;
  if (run == 0) return 0;
  if (run > chunk) return runs * ((run + chunk - 1) / chunk);
  return (runs + chunk / run - 1) / (chunk / run);
}

void AddElements(KernelContext& k, const Extents& e, bool synchronizes) {
  k.args.LaunchMember("Index rank", "rank", {{Arg::Kind::kRank, -1, 0}});
  k.args.Integer("chunk", e.chunk);
  if (k.PiecesOfRows()) {
    const Piece& piece = *k.piece;
    std::vector<Arg> words;
    for (int64_t word : {piece.slices ? int64_t{k.target.ranks} : 1, piece.total, piece.per,
                         piece.begin, piece.end})
      words.push_back({Arg::Kind::kInt, -1, word});
    k.args.Member("PartOfRows part", "part", std::move(words));
  } else if (k.PiecesOfColumns()) {
    std::vector<Arg> words;
    for (int64_t word : {k.space.shape.back().size, k.piece->begin, k.piece->end})
      words.push_back({Arg::Kind::kInt, -1, word});
    k.args.Member("PartOfColumns part", "part", std::move(words));
  } else if (k.piece != nullptr) {
    const int64_t unit = k.piece->unit(k.space.shape);
    k.args.Integer("part_begin", k.piece->begin * unit);
    k.args.Integer("part_end", k.piece->end * unit);
  }
  if ((k.reads_gathered || k.PiecesOfSlices()) && k.target.nodes > 1)
    k.args.LaunchInteger("slices", k.target.ranks);
  if (k.by_place) k.args.LaunchInteger("nodes", k.target.nodes);
  if (k.target.nodes > 1 && (k.NeedsPlace() || synchronizes))
    k.args.LaunchMember("Index node_rank", "node_rank", {{Arg::Kind::kNodeRank, -1, 0}});
  if (k.space.row_dims > 0) k.args.Integer("row_length", k.row_length);
  if (k.exchange.has_value()) {
    const ExchangeExtents x = ExchangeOf(k);
    std::vector<Arg> words;
    for (int64_t word : {x.outer, x.first, x.middle, x.second, x.inner, x.per_first, x.per_second,
                         x.shift_first, x.shift_second})
      words.push_back({Arg::Kind::kInt, -1, word});
    if (k.exchange->pushes) k.args.LaunchInteger("remote_first", k.config.remote_first);
    k.args.Member("ExchangeCut exchange", "exchange", std::move(words));
    return;
  }
  if (!k.cuts) return;
  k.args.Integer("outer", e.cut.outer);
  k.args.Integer("row_elements", e.row_elements);
  k.args.Integer("per", e.per);
  if (k.slices.weighted()) k.args.Integer("shift", e.cut.slicing.shift * e.cut.inner);
}

/// The chunks of a slice, or of its part: CountChunks of the dialect.
int64_t ChunksOfSlice(const KernelContext& k, const Extents& e) {
  if (!k.PiecesOfColumns()) return e.cut.outer * ((e.per + e.chunk - 1) / e.chunk);
  const int64_t columns = k.piece->end - k.piece->begin;
  return e.cut.outer * (e.per / k.space.shape.back().size) * ((columns + e.chunk - 1) / e.chunk);
}

/// Returns the flags. `chunks`: that have flags, of all tensors.
PublishedChunks AddFlags(KernelContext& k, const Rings& rings, int rounds, int64_t chunks) {
  const bool around = rings.Reduce() || rings.PassesOn();
  if (around) k.args.LaunchInteger("chunks", chunks);
  const int in_node = k.target.ranks_per_node();
  const int64_t row =
      FlagSlots::Row(k.config.blocks, rounds, around ? rings.Ways() * in_node * chunks : chunks);
  const int writers = in_node + (k.Sends() ? Beside::kCount : 0);
  const int flags =
      AddSyncBuffer(k.table, absl::StrCat("flags", k.step), DType::kI32, writers * row, true);
  const int epochs =
      AddSyncBuffer(k.table, absl::StrCat("epochs", k.step), DType::kI32, k.config.blocks, false);
  std::vector<Arg> all_flags = {{Arg::Kind::kPeers, flags, 0}};
  if (k.Sends()) all_flags.push_back({Arg::Kind::kBeside, flags, 0});
  k.args.LaunchMember(
      k.Sends() ? "unsigned* flags[kRanks + Beside::kCount]" : "unsigned* flags[kRanks]", "flags",
      std::move(all_flags));
  k.args.LaunchMember("unsigned* epochs", "epochs", {{Arg::Kind::kOwn, epochs, 0}});
  k.args.LaunchMember("Control* control", "control", {{Arg::Kind::kControl, -1, 0}});
  k.args.LaunchInteger("row", row);
  k.args.LaunchInteger("step", k.step);
  if (k.tiles != nullptr) k.tiles->AwaitedIn(k.args, k.space.shape.back().size);
  return {.step = k.step,
          .flags = flags,
          .blocks = k.config.blocks,
          .row = row,
          .first = FlagSlots::Chunk(k.config.blocks, rounds, 0)};
}

}  // namespace

int64_t AddLaunchFields(KernelContext& k, const Rings& rings,
                        const Synchronization& synchronization) {
  const Extents e = ExtentsOf(k);
  AddElements(k, e, synchronization.is_used);
  if (!synchronization.is_used) return 0;
  int64_t chunks = 0;
  if (k.reads_gathered || k.publishes || rings.Reduce() || rings.PassesOn())
    chunks = (k.by_place ? k.target.nodes : 1) * ChunksOfSlice(k, e);
  if (k.exchange.has_value() && k.tiled < 0) chunks = CountParcels(ExchangeOf(k), e.chunk);
  k.published = AddFlags(k, rings, synchronization.rounds, k.over_tensors ? k.list_chunks : chunks);
  k.published.row_elements = e.row_elements;
  k.published.per = e.per;
  k.published.shift = e.cut.slicing.shift * e.cut.inner;
  k.published.chunk = e.chunk;
  return chunks;
}

}  // namespace coconet
