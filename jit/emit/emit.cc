#include "jit/emit/emit.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "jit/emit/chunk_loops.h"
#include "jit/emit/launch_fields.h"
#include "jit/emit/peer_copies.h"
#include "jit/emit/prologue.h"
#include "jit/emit/rings.h"
#include "jit/emit/rounds.h"
#include "jit/emit/stores.h"
#include "jit/emit/strided_fold.h"
#include "jit/emit/tiled_product.h"
#include "jit/expressions/element_loop.h"
#include "jit/expressions/expressions.h"
#include "jit/expressions/folds.h"
#include "jit/expressions/kernel_context.h"
#include "jit/expressions/loads.h"
#include "jit/storage/divisor.h"
#include "jit/storage/exchanged_dims.h"
#include "jit/storage/gemms.h"

namespace coconet {
namespace {

/// How many packs of an epilogue a thread begins before it finishes the first: its loads take long,
/// and so does the text of long computations.
int PacksOfEpilogue(const KernelContext& k, const PhaseText& phase) {
  constexpr int kMost = 4, kMostOfLong = 1;
  if (phase.elements.fetched.empty()) return 1;
  const std::vector<NodeId>& evaluated = k.phases.phases[phase.number].evaluated;
  const bool is_long = absl::c_any_of(evaluated, [&](NodeId id) {
    return Is<Dropout>(k.g, id) || Is<StochasticRound>(k.g, id) || IsCostly(k.g, id);
  });
  return is_long ? kMostOfLong : kMost;
}

/// Puts the text of one kernel together. Used once.
class Emitter {
 public:
  Emitter(const KernelPlace& at, const Config& config, const Target& target, BufferTable& table)
      : k_(at, config, target, table) {}

  absl::StatusOr<EmittedKernel> Emit();

 private:
  /// What a phase computes; `of_launch`: the statements on scalars that come before it.
  absl::StatusOr<std::string> WorkOf(int number, std::string* of_launch);
  absl::Status AddResults(const KernelPhase& planned, bool in_bulk, PhaseText& phase);
  absl::StatusOr<std::vector<std::string>> AddFolds(const KernelPhase& planned, PhaseText& phase,
                                                    std::string* before, std::string* of_tensor);
  int64_t ElementsOf(const KernelPhase& planned) const;
  /// The kernel's work; the scalars of its first phase, which are known before anybody is waited
  /// for, come to `first`.
  absl::StatusOr<std::string> WorkText(std::string* first);
  /// What makes the tiles that the phases await.
  absl::StatusOr<TilesCall> AwaitedTiles();
  /// The kernel of a launch that goes through a product's tiles.
  absl::StatusOr<EmittedKernel> EmitTiles();
  int64_t TiledBytes() const { return static_cast<int64_t>(SizeOf(k_.type(k_.tiled).dtype)); }
  /// Where an element of a tile lies: texts of declarations, of what they name, and of a condition
  /// for packs of elements to lie together, or "".
  struct TilePlace {
    std::string declarations, names, packs;
    std::string first = "0";  // the row whose tile is computed first
  };
  TilePlace PlaceInTile(const std::string& width);
  std::string BeginText(absl::string_view first) const;
  std::string SyncText() const;
  /// Ranks wait for each other, or for those of other stages, before and after the work.
  std::string EnterText() const;
  std::string ExitText() const;

  bool Synchronizes() const {
    return k_.Waits() || rounds_.count() > 0 || k_.Sends() || k_.tiles != nullptr;
  }

  KernelContext k_;
  Loads loads_{k_};
  Expressions expressions_{k_, loads_};
  PeerCopies copies_{k_, loads_};
  Rings rings_{k_, loads_, !copies_.empty()};
  Rounds rounds_{k_, expressions_};
  Stores stores_{k_, loads_, expressions_, rings_};
};

absl::Status Emitter::AddResults(const KernelPhase& planned, bool in_bulk, PhaseText& phase) {
  for (NodeId id : planned.stores) RETURN_IF_ERROR(stores_.AddStore(phase, id));
  for (NodeId id : planned.gathers) {
    if (!in_bulk) RETURN_IF_ERROR(stores_.AddPush(phase, id));
  }
  for (NodeId id : planned.exchanges) RETURN_IF_ERROR(stores_.AddExchange(phase, id));
  for (NodeId id : planned.sends) RETURN_IF_ERROR(stores_.AddSend(phase, id));
  return absl::OkStatus();
}

/// The names of the accumulators of the phase's folds to scalars.
absl::StatusOr<std::vector<std::string>> Emitter::AddFolds(const KernelPhase& planned,
                                                           PhaseText& phase, std::string* before,
                                                           std::string* of_tensor) {
  std::vector<std::string> accumulators;
  for (NodeId id : planned.folds) {
    ASSIGN_OR_RETURN(const std::string name,
                     expressions_.Element(phase, phase.elements, k_.g.nodes[id].inputs[0]));
    auto [accumulator, declaration] = Accumulator(k_, id);
    absl::StrAppend(k_.over_tensors ? of_tensor : before, k_.TensorIndent(), declaration);
    absl::StrAppend(&phase.elements.stores, "      Accumulate(", accumulator, ", ", name, ");\n");
    accumulators.push_back(std::move(accumulator));
  }
  return accumulators;
}

int64_t Emitter::ElementsOf(const KernelPhase& planned) const {
  const int64_t n = NumElements(k_.space.shape), parts = k_.by_place ? k_.target.nodes : 1;
  if (!planned.on_slices) return n;
  const int64_t slice = SlicingOf(k_.space.shape, k_.slices, k_.target.ranks).slice_elements();
  return std::min(parts * slice, n);
}

absl::StatusOr<std::string> Emitter::WorkOf(int number, std::string* of_launch) {
  const KernelPhase& planned = k_.phases.phases[number];
  PhaseText phase{.on_slices = planned.on_slices, .arriving = planned.arriving, .number = number};
  std::string of_tensor =  // statements at the begin of each tensor
      k_.over_tensors ? copies_.Declarations() + rings_.Declarations() : "";
  expressions_.OpenSection(of_launch);
  expressions_.OpenTensorSection(&of_tensor);
  const bool in_bulk = CopiesInBulk(k_, planned);
  RETURN_IF_ERROR(AddResults(planned, in_bulk, phase));
  ASSIGN_OR_RETURN(const std::vector<std::string> accumulators,
                   AddFolds(planned, phase, of_launch, &of_tensor));
  const BulkText bulk = in_bulk ? BulkCopiesText(k_, planned, phase) : BulkText();
  const std::string loop = in_bulk ? bulk.of_chunk : ElementsText(k_, phase);
  k_.bytes +=
      phase.bytes_per_element * ElementsOf(planned) / (k_.piece == nullptr ? 1 : k_.piece->of);
  if (loop.empty()) return "";
  if (!phase.on_slices && k_.PiecesOfRows()) {
    k_.args.Integer("index", k_.piece->unit(k_.space.shape));
  } else if (!phase.on_slices && !phase.reads_gathered && !k_.PiecesOfSlices()) {
    k_.args.Integer("n", NumElements(k_.space.shape));
  }
  RoundText round = rounds_.FoldsText(planned, accumulators);
  if (copies_.AreMessages())
    round.after = absl::StrCat("  if (!grid.SyncAnd(!lost)) return;\n", round.after);
  round.after = absl::StrCat(bulk.after, round.after);
  const std::string chunks = ChunksText(k_, rings_, phase, loop);
  if (!k_.over_tensors) return absl::StrCat(bulk.before, chunks, round.after);
  return absl::StrCat(bulk.before, round.before,
                      OverTensorsText(k_, phase, of_tensor, absl::StrCat(chunks, round.inside)),
                      round.after);
}

absl::StatusOr<std::string> Emitter::WorkText(std::string* first) {
  std::string work = rings_.PartialsText();
  for (int phase = 0; phase < static_cast<int>(k_.phases.phases.size()); ++phase) {
    std::string scalars;
    ASSIGN_OR_RETURN(const std::string text, WorkOf(phase, phase == 0 ? first : &scalars));
    absl::StrAppend(&work, scalars, text, phase == k_.last_gathering ? rings_.PassedOnText() : "");
  }
  ASSIGN_OR_RETURN(const std::string scalars, stores_.ScalarsText(rounds_));
  return work + scalars;
}

std::string Emitter::BeginText(absl::string_view first) const {
  return absl::StrCat("  const int rank = int(p.rank);\n",
                      k_.NeedsPlace() ? "  const int place = int(p.node_rank);\n" : "",
                      k_.args.LocalsText(), first,
                      k_.cuts && !k_.over_tensors && !k_.exchange.has_value()
                          ? absl::StrCat("  const Cut cut", CutText(k_), ";\n")
                          : "",
                      k_.piece == nullptr    ? ""
                      : k_.PiecesOfRows()    ? "  const PartOfRows& part = p.part;\n"
                      : k_.PiecesOfColumns() ? "  const PartOfColumns& part = p.part;\n"
                                             : "  const Part part{p.part_begin, p.part_end};\n",
                      SyncText());
}

std::string Emitter::SyncText() const {
  if (!Synchronizes()) return "";
  return absl::StrCat("  const auto sync = MakeSync<kRanks>(grid, p.control, p.flags, p.epochs,",
                      " p.row, ", k_.target.nodes > 1 ? "int(p.node_rank)" : "rank",
                      ", int(p.step), ", rounds_.count(), ", ",
                      k_.config.streaming != Streaming::kNone ? "kStreamed" : "kCached", ");\n");
}

std::string Emitter::EnterText() const {
  std::string text;
  if (k_.Sends()) {
    absl::StrAppend(&text, "  constexpr Routes routes{", k_.sends_next ? "true" : "false", ", ",
                    k_.sends_previous ? "true" : "false", "};\n",
                    "  OpenSends(sync, grid, routes);\n");
  }
  // Messages arrive in this rank's own memory, so no peer is waited for.
  if (k_.Waits() && !copies_.AreMessages())
    absl::StrAppend(&text, "  if (!Enter(sync, grid)) return;\n",
                    k_.Multicasts() ? "  FenceAliases();\n" : "");
  if (k_.Sends()) absl::StrAppend(&text, "  if (!AwaitReceivers(sync, grid, routes)) return;\n");
  return text;
}

std::string Emitter::ExitText() const {
  const absl::string_view sends =
      k_.Sends() ? "  if (!CloseSends(sync, grid, routes)) return;\n" : "";
  if (k_.Waits())
    return absl::StrCat(sends,
                        copies_.empty() ? "  Exit(sync, grid);\n" : "  Leave(sync, grid);\n");
  return absl::StrCat(sends, Synchronizes() ? "  Leave(sync, grid);\n" : "",
                      k_.config.streaming != Streaming::kNone ? "  StreamFence();\n" : "");
}

Emitter::TilePlace Emitter::PlaceInTile(const std::string& width) {
  const std::string index = absl::StrCat("      const Index i = (top + row) * ", width,
                                         " + left + column;\n"),
                    shift = "i - (row * product.ldc + column)";
  if (!k_.exchange.has_value())
    return {absl::StrCat(index, "      const Chunk c{i, i + 1, ", shift, ", 0};\n"), "i, c", ""};
  const ExchangedDims x =
      ExchangedDimsOf(k_.space.shape, k_.exchange->from, k_.exchange->to, k_.target.ranks);
  std::vector<Arg> words;
  const int64_t pitch = NumElements({x.shape.begin() + x.to + 1, x.shape.end()});
  for (int64_t by : {pitch, x.of_to.extent, x.of_to.per}) {
    for (const Arg& word : DivisorWords(by)) words.push_back(word);
  }
  words.push_back({Arg::Kind::kInt, -1, x.of_to.shift});
  const std::string destinations =
      k_.args.Member("DestinationCut destinations", "destinations", std::move(words));
  TilePlace place{absl::StrCat(index, "      const auto [to, there] = DestinationOf(", destinations,
                               ", i);\n      const Parcel c{i, i + 1, ", shift, ", there};\n"),
                  "i, c, to = to",
                  absl::StrCat(" && StayTogether<kEpiloguePack>(", destinations, ")")};
  // Each rank begins with what the next one receives.
  if (NumElements({x.shape.begin(), x.shape.begin() + x.to}) == 1 && pitch > 1) {
    place.first = absl::StrCat("FirstElementOf(", destinations, ", (rank + 1) % kRanks) / ", width);
  }
  return place;
}

absl::StatusOr<TilesCall> Emitter::AwaitedTiles() {
  const TileShape shape = TileShapeOf(k_.config);
  ASSIGN_OR_RETURN(GemmStep matrix, MatrixOf(k_.u, k_.awaited, k_.table, k_.target));
  const GemmBatch batch = InTiles({std::move(matrix)}, shape);
  const std::string product = ProductText(k_.args, batch, "0");
  k_.args.Member("unsigned* tile_flags[kRanks]", "tile_flags",
                 {{Arg::Kind::kPeers, k_.tiles->flags, 0}});
  // The next rank's slice comes first, this rank's own last: nobody else waits for that.
  const std::string first =
      k_.tiles->slices == 1
          ? "0"
          : absl::StrCat("(rank + 1) % kRanks * ",
                         k_.args.Integer("slice_rows", k_.tiles->slice_rows), " >> 12");
  TilesCall call = CallTiles(
      k_.args, "product0", batch, shape,
      absl::StrCat("TileFlags<kRanks>{p.tile_flags, p.tiles.row, ", k_.Place(), ", p.epochs}"),
      "StoreProduct(product0)");
  call.text = absl::StrCat(product, "  const TileOrder order{1, 0, ", first, "};\n", call.text,
                           call.to_go_on);
  k_.bytes += GemmBytes(batch.gemm);
  return call;
}

absl::StatusOr<EmittedKernel> Emitter::EmitTiles() {
  const KernelPhase& planned = k_.phases.phases[0];
  PhaseText phase{.on_slices = planned.on_slices};
  std::string scalars;
  expressions_.OpenSection(&scalars);
  RETURN_IF_ERROR(AddResults(planned, /*in_bulk=*/false, phase));
  const TileShape shape = TileShapeOf(k_.config);
  ASSIGN_OR_RETURN(GemmBatch matrices, MatricesOf(k_.u, k_.tiled, k_.table, k_.target));
  const GemmBatch batch = InTiles(std::move(matrices), shape);
  const GemmStep& gemm = batch.gemm;
  AddLaunchFields(k_, rings_, {.rounds = 0, .is_used = Synchronizes()});
  const std::string product = ProductText(k_.args, batch, "");
  const auto begin_of = [&](absl::string_view name, const RankExtent& extent) -> std::string {
    if (extent.per == 0) return "0";
    const std::string per = k_.args.Integer(absl::StrCat(name, "_per"), extent.per);
    if (extent.shift == 0) return absl::StrCat("rank * ", per);
    return absl::StrCat("BeginOf(", per, ", ",
                        k_.args.Integer(absl::StrCat(name, "_shift"), extent.shift), ", rank)");
  };
  const std::string width = k_.args.Integer("width", gemm.n.total);
  const TilePlace place = PlaceInTile(width);
  const std::string top = !batch.IsMany()
                              ? begin_of("m", gemm.m)
                              : absl::StrCat(begin_of("matrices", batch.matrices), " * product.m");
  const std::string before = absl::StrCat(
      product, "  const Index top = ", top, ", left = ", begin_of("n", gemm.n),
      ";\n  const bool packs = (", width, " | left | product.ldc) % kEpiloguePack == 0",
      place.packs, ";\n  const TileOrder order",
      k_.made != nullptr
          ? OrderText(k_.args, *k_.made)
          : absl::StrCat("{1, 0, ", place.first, " / ",
                         batch.IsMany() ? "product.m" : absl::StrCat(shape.rows), "}"),
      ";\n");
  const TilesCall call = CallTiles(
      k_.args, "product", batch, shape,
      k_.made != nullptr ? SignalledText(k_.args, *k_.made, k_.config, k_.table) : "NoTileFlags{}",
      absl::StrCat("MakeEpilogue<", PacksOfEpilogue(k_, phase), ">(packs, ",
                   EpilogueBodyText(place.declarations, place.names, phase.elements), ")"),
      k_.gathered != nullptr ? AwaitedRowsText(k_.args, *k_.gathered, gemm, k_.config) : "");
  const int64_t bytes = GemmBytes(gemm) + (phase.bytes_per_element - TiledBytes()) *
                                              NumElements(k_.type(k_.tiled).shape);
  EmittedKernel kernel = KernelOf(
      k_.target.ranks_per_node(), k_.vec, k_.args,
      absl::StrCat("  const int rank = int(p.rank);\n", k_.args.LocalsText(), scalars, SyncText(),
                   EnterText(), before, call.text, Synchronizes() ? call.to_go_on : "", ExitText()),
      bytes, call.block);
  kernel.threads = call.threads;
  return kernel;
}

absl::StatusOr<EmittedKernel> Emitter::Emit() {
  if (k_.strided_fold >= 0) return EmitStridedFold(k_);
  RETURN_IF_ERROR(k_.Check());
  if (k_.tiled >= 0) return EmitTiles();
  const std::string copies = copies_.empty() ? "" : copies_.Text(rings_);
  const std::string prologue = absl::StrCat(PrologueText(k_), rounds_.AfterPrologueText());
  const std::string before_work = rounds_.BeforeWorkText();
  std::string first;
  ASSIGN_OR_RETURN(const std::string work, WorkText(&first));
  if (!copies_.empty()) k_.args.Integer("n", NumElements(k_.space.shape));
  TilesCall tiles;
  if (k_.awaited >= 0) {
    ASSIGN_OR_RETURN(tiles, AwaitedTiles());
  }
  const int64_t chunks =
      AddLaunchFields(k_, rings_, {.rounds = rounds_.count(), .is_used = Synchronizes()});
  if (k_.over_tensors) {
    k_.args.LaunchInteger("tensors", k_.tensors);
    k_.args.LaunchMember("const Each* each", "each", {{Arg::Kind::kTable, -1, 0}});
  }
  const std::string body = absl::StrCat(BeginText(first), prologue, before_work,
                                        copies_.AreMessages() ? "  bool lost = false;\n" : "",
                                        copies, EnterText(), tiles.text, work, ExitText());
  EmittedKernel kernel = KernelOf(k_.target.ranks_per_node(), k_.vec, k_.args,
                                  k_.args.WithTensorLocals(body), k_.bytes, tiles.block);
  kernel.threads = tiles.threads;
  kernel.bytes_in_flight = k_.bytes_in_flight;
  kernel.chunks = chunks;
  kernel.published = k_.published;
  kernel.totals = expressions_.has_totals();
  kernel.rounds = rounds_.count() > 0;
  return kernel;
}

}  // namespace

absl::StatusOr<EmittedKernel> EmitKernel(const KernelPlace& at, const Config& config,
                                         const Target& target, BufferTable& table) {
  return Emitter(at, config, target, table).Emit();
}

}  // namespace coconet
