#include "jit/emit/chunk_loops.h"

#include <set>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "jit/emit/rings.h"
#include "jit/emit/tiled_product.h"
#include "jit/expressions/element_loop.h"

namespace coconet {
namespace {

bool ReadsProduct(const KernelContext& k, const std::vector<NodeId>& ids) {
  return absl::c_any_of(ids, [&](NodeId id) {
    const bool reduces = Is<ReduceScatter>(k.g, id) || Is<AllReduce>(k.g, id);
    const std::set<NodeId> read = k.u.Reads(id, k.launch);
    const auto is_of_tiles = [&](NodeId value) { return k.tiles->Makes(value); };
    return (reduces && is_of_tiles(k.Crossing(id))) || absl::c_any_of(read, is_of_tiles);
  });
}

/// All that the phase computes is sums of bags, and none goes to another pipeline stage.
bool OnlyPools(const KernelContext& k, const PhaseText& phase) {
  const KernelPhase& planned = k.phases.phases[phase.number];
  const std::vector<NodeId>& evaluated = planned.evaluated;
  return planned.sends.empty() && planned.folds.empty() &&
         absl::c_any_of(evaluated, [&](NodeId id) { return Is<EmbeddingBag>(k.g, id); }) &&
         absl::c_all_of(evaluated, [&](NodeId id) {
           return Is<EmbeddingBag>(k.g, id) || Is<AllToAll>(k.g, id) || IsStore(k.g, id);
         });
}

/// The text that awaits, for a chunk, the tiles that a phase reads; "" if it reads none.
std::string AwaitTilesText(const KernelContext& k, const PhaseText& phase,
                           absl::string_view indent) {
  if (k.tiles == nullptr) return "";
  const KernelPhase& planned = k.phases.phases[phase.number];
  if (!ReadsProduct(k, planned.evaluated) && !ReadsProduct(k, planned.stores) &&
      !ReadsProduct(k, planned.gathers) && !ReadsProduct(k, planned.folds))
    return "";
  return absl::StrCat(indent,
                      "if (!AwaitTiles(sync, grid, p.tiles, c.begin, c.end)) return false;\n",
                      k.Multicasts() ? absl::StrCat(indent, "FenceAliases();\n") : "");
}

/// The chunks of this rank's slice, and what tells peers of those that it gathered.
std::string OwnSliceText(const KernelContext& k, const Rings& rings, const PhaseText& phase,
                         absl::string_view body) {
  const bool publishes = (k.reads_gathered || k.publishes || rings.PassesOn()) && k.Waits() &&
                         phase.number == k.last_gathering;
  const std::string publish = rings.AreUsed() ? absl::StrCat("    PassOn(sync, grid, ",
                                                             rings.FlagOf(k.Place(), true), ");\n")
                              : k.publishes   ? "    PublishBeside(sync, grid, c.id);\n"
                                              : "    Publish(sync, grid, c.id);\n";
  const std::string hop = rings.Reduce()
                              ? absl::StrCat("    if (!AwaitHop(sync, grid, ",
                                             rings.FlagOf(k.Place(), false), ")) return false;\n")
                              : "";
  const std::string await = absl::StrCat(hop, AwaitTilesText(k, phase, "    "));
  const std::string each =
      absl::StrCat(ForChunksText(k, "cut", k.by_place ? "slice" : "rank", "node"), await, body,
                   publishes ? publish : "", "    return true;\n  })");
  const std::string chunks = await.empty() ? absl::StrCat("  ", each, ";\n")
                                           : absl::StrCat("  if (!", each, ") return;\n");
  if (!k.by_place) return chunks;
  return absl::StrCat(
      "  for (int node = 0; node < p.nodes; ++node) {\n    const int slice = node * kRanks + "
      "place;\n",
      chunks, "  }\n");
}

/// The chunks of every slice, this rank's first, each as soon as it has come.
std::string AllSlicesText(const KernelContext& k, const Rings& rings, const PhaseText& phase,
                          absl::string_view body) {
  const absl::string_view from = k.by_place ? "from % kRanks" : "from";
  const std::string here =
      rings.AreUsed() ? absl::StrCat("(", from, " == ", k.Place(), " || AwaitHop(sync, grid, ",
                                     rings.FlagOf(from, true), "))")
                      : absl::StrCat("AwaitChunk(sync, grid, ", from, ", c.id)");
  const std::string wait = absl::StrCat("      if (!", here, ") return false;\n",
                                        k.Multicasts() ? "      FenceAliases();\n" : "");
  const absl::string_view slices = k.target.nodes > 1 ? "int(p.slices)" : "kRanks";
  return absl::StrCat(
      "  for (int k = 0; k < ", slices, "; ++k) {\n    const int from = (rank + k) % ", slices,
      ";\n", "    if (!", ForChunksText(k, "cut", "from", "from / kRanks"),
      phase.reads_gathered && k.Waits() ? wait : "", AwaitTilesText(k, phase, "      "), body,
      "      return true;\n    })) return;\n  }\n");
}

/// The parcels that this rank stores at each rank, or has from it.
std::string ParcelsText(const KernelContext& k, const PhaseText& phase, absl::string_view body) {
  const bool pushes = k.exchange->pushes && !phase.arriving;
  const std::string start = phase.arriving && k.Waits()
                                ? "[&](Index id) { return AwaitChunk(sync, grid, from, id); }"
                                : "[](Index) { return true; }";
  const std::string finish = pushes && k.exchange->arrives && k.Waits()
                                 ? "[&](Index id) { Deliver(sync, grid, to, id); }"
                                 : "[](Index) {}";
  const absl::string_view peer =
      pushes ? "(p.remote_first != 0 ? rank + 1 + k : k) % kRanks" : "(rank + k) % kRanks";
  return absl::StrCat(
      "  for (int k = 0; k < kRanks; ++k) {\n    const int ", pushes ? "to" : "from", " = ", peer,
      ";\n    if (!ForParcels<", k.exchange->from.dim < k.exchange->to.dim ? "true" : "false",
      ">(grid, ", k.args.At("exchange"), pushes ? ", rank, to, true, " : ", from, rank, false, ",
      k.args.At("chunk"), k.over_tensors ? ", first, " : ", 0, ", start,
      ", [&](const Parcel& c) {\n", body, "    }, ", finish, ")) return;\n  }\n");
}

}  // namespace

std::string CutText(const KernelContext& k) {
  return absl::StrCat("{", k.args.At("outer"), ", ", k.args.At("row_elements"), ", ",
                      k.args.At("per"),
                      k.slices.weighted() ? absl::StrCat(", ", k.args.At("shift")) : "", "}");
}

std::string ElementsText(KernelContext& k, const PhaseText& phase) {
  const bool rows = k.space.row_dims > 0;
  const std::string length = k.args.At("row_length");
  const std::string range =
      rows ? absl::StrCat("r * ", length, ", (r + 1) * ", length) : "c.begin, c.end";
  std::string loop;
  if (!phase.elements.stores.empty()) {
    loop = OnlyPools(k, phase)
               ? absl::StrCat("    ForEachWide<kV, kPooledTogether>(grid, ", range, ", ",
                              k.PacksFitText(), ", ", ElementBodyText(phase.elements), ");\n")
               : ElementLoopText(k, range, k.PacksFitText(), phase.elements);
  }
  if (!rows) return loop;
  return absl::StrCat("    for (Index r = c.begin / ", length, "; r < c.end / ", length,
                      "; ++r) {\n", phase.row_values, loop, phase.row_stores, "    }\n");
}

std::string ForChunksText(const KernelContext& k, absl::string_view cut, absl::string_view slice,
                          absl::string_view node) {
  const std::string chunk = k.args.At("chunk");
  const std::string text =
      absl::StrCat(k.over_tensors ? "ForListChunks(grid, " : "ForChunks(grid, ", cut, ", ",
                   k.piece == nullptr ? "" : "part, ", slice, ", ", chunk,
                   k.over_tensors ? ", first" : "", ", [&](const Chunk& ");
  if (!k.by_place || node.empty()) return absl::StrCat(text, "c) {\n");
  return absl::StrCat(text, "in_slice) {\n    const Chunk c = OfNode(in_slice, cut, ",
                      k.PiecesOfColumns() ? "part, " : "", chunk, ", ", node, ");\n");
}

std::string ChunksText(const KernelContext& k, const Rings& rings, const PhaseText& phase,
                       absl::string_view body) {
  if (k.exchange.has_value()) return ParcelsText(k, phase, body);
  if (phase.on_slices) return OwnSliceText(k, rings, phase, body);
  if (phase.reads_gathered || k.PiecesOfSlices()) return AllSlicesText(k, rings, phase, body);
  const std::string awaits = AwaitTilesText(k, phase, "    ");
  return absl::StrCat(awaits.empty() ? "  " : "  if (!",
                      ForChunksText(k,
                                    k.over_tensors     ? "cut"
                                    : k.PiecesOfRows() ? "Cut{part.extent, p.index, p.index}"
                                                       : "Cut{1, p.n, p.n}",
                                    "0", ""),
                      awaits, body, "    return true;\n  })",
                      awaits.empty() ? ";\n" : ") return;\n");
}

std::string OverTensorsText(const KernelContext& k, const PhaseText& phase,
                            absl::string_view locals, absl::string_view work) {
  const bool cut = phase.on_slices || phase.reads_gathered;
  if (k.exchange.has_value()) {
    return absl::StrCat("  for (Index t = 0, first = 0; t < p.tensors; ++t) {\n",
                        Arguments::TensorLocals(), locals, work,
                        "    first += CountParcels(e.exchange, e.chunk);\n  }\n");
  }
  return absl::StrCat("  for (Index t = 0, first = 0; t < p.tensors; ++t) {\n",
                      Arguments::TensorLocals(),
                      cut ? absl::StrCat("    const Cut cut", CutText(k), ";\n")
                          : "    const Cut cut{1, e.n, e.n};\n",
                      locals, work, "    first += CountChunks(cut, e.chunk)",
                      cut && k.by_place ? " * p.nodes" : "", ";\n  }\n");
}

}  // namespace coconet
