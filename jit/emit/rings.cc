#include "jit/emit/rings.h"

#include "absl/strings/str_cat.h"
#include "jit/emit/chunk_loops.h"
#include "jit/expressions/element_loop.h"

namespace coconet {
namespace {

/// The type that the dialect computes `dtype` in (Compute<T>).
DType ComputedIn(DType dtype) {
  switch (dtype) {
    case DType::kF16:
    case DType::kBF16:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return DType::kF32;
    case DType::kBool:
    case DType::kI8:
    case DType::kI16:
    case DType::kU8:
    case DType::kU16:
      return DType::kI32;
    case DType::kF32:
    case DType::kF64:
    case DType::kI32:
    case DType::kI64:
    case DType::kU32:
    case DType::kU64:
      return dtype;
  }
  return dtype;
}

}  // namespace

Rings::Rings(KernelContext& k, Loads& loads, bool copies)
    : k_(k),
      used_(k.config.ring && k.target.ranks_per_node() > 2 && !copies && !k.exchange.has_value()) {
  if (!used_) return;
  for (NodeId id : k.members) {
    if (!Is<ReduceScatter>(k.g, id)) continue;
    const NodeId operand = k.Operand(id);
    const std::string name = absl::StrCat("ring", partials_.size());
    const int buffer =
        AddSyncBuffer(k.table, absl::StrCat("partials", k.step, ".", partials_.size()),
                      ComputedIn(k.type(operand).dtype), NumElements(k.type(operand).shape), true,
                      k.u.each[operand]);
    loads.ReduceAround(id, name);
    partials_.push_back({id, name, buffer});
  }
}

std::string Rings::Declarations() {
  std::string text;
  for (const Partials& ring : partials_) {
    const NodeId operand = k_.Crossing(ring.reduced);
    const DType dtype = k_.type(operand).dtype;
    const std::string peers = k_.args.Peers(ring.buffer, ComputedIn(dtype)),
                      own = k_.args.Own(k_.table.of[operand], dtype);
    absl::StrAppend(&text, k_.TensorIndent(), "const auto ", ring.name, " = MakeRing(sync, ", own,
                    ", ", peers, ");\n");
  }
  return text;
}

std::string Rings::FlagOf(absl::string_view from, bool gathered) const {
  const bool behind = gathered && Reduce();  // those of partial results
  return absl::StrCat(behind ? "(kRanks + " : "", from, behind ? ")" : "", " * p.chunks + c.id");
}

std::string Rings::HopsText(bool gathered, const PhaseText& phase) {
  const std::string flag = FlagOf("from", gathered);
  const std::string chunks = absl::StrCat(
      "    if (!", ForChunksText(k_, "cut", k_.by_place ? "slice" : "from", "node"), "    if (",
      gathered ? "" : "hop > 0 && ", "!AwaitHop(sync, grid, ", flag, ")) return false;\n",
      ElementLoopText(k_, "c.begin, c.end", "true", phase.elements), "    PassOn(sync, grid, ",
      flag, ");\n    return true;\n  })) return;\n");
  const std::string of_nodes =
      k_.by_place ? absl::StrCat("  for (int node = 0; node < p.nodes; ++node) {\n",
                                 "    const int slice = node * kRanks + from;\n", chunks, "  }\n")
                  : chunks;
  const std::string hops =
      absl::StrCat("  for (int hop = ", gathered ? "1" : "0",
                   "; hop + 1 < kRanks; ++hop) {\n    const int from = RankBehind(sync, ",
                   gathered ? "hop" : "hop + 1", ");\n", of_nodes, "  }\n");
  if (!k_.over_tensors) return hops;
  return OverTensorsText(k_, phase, gathered ? "" : Declarations(), hops);
}

std::string Rings::PartialsText() {
  if (!Reduce()) return "";
  PhaseText phase{.on_slices = true};
  for (const Partials& ring : partials_) {
    const TensorType& operand = k_.type(k_.Crossing(ring.reduced));
    const std::string fetched =
        phase.elements.Fetch(absl::StrCat("FetchHop<V>(", ring.name, ", i, hop == 0)"),
                             static_cast<int64_t>(SizeOf(operand.dtype)) +
                                 static_cast<int64_t>(SizeOf(ComputedIn(operand.dtype))));
    absl::StrAppend(&phase.elements.stores, "      Store<", k_.StoreMode(ring.buffer), ">(",
                    ring.name, ".next + i, ",
                    ReducedText(As<ReduceScatter>(k_.g, ring.reduced)->kind), "(", fetched,
                    "));\n");
    k_.bytes +=
        3 * NumElements(operand.shape) * static_cast<int64_t>(SizeOf(ComputedIn(operand.dtype)));
  }
  const std::string declarations = k_.over_tensors ? "" : Declarations();
  return absl::StrCat(declarations, HopsText(false, phase));
}

std::string Rings::PassedOnText() {
  if (!PassesOn()) return "";
  PhaseText phase{.on_slices = true};
  for (int buffer : gathered_) {
    const DType dtype = k_.table.buffers[buffer].dtype;
    const std::string peers = k_.args.Peers(buffer, dtype),
                      fetched =
                          phase.elements.Fetch(absl::StrCat("FetchOwn<V>(sync, ", peers, ", i)"),
                                               static_cast<int64_t>(SizeOf(dtype)));
    absl::StrAppend(&phase.elements.stores, "      CopyOn<", k_.StoreMode(buffer), ">(sync, ",
                    peers, ", i, ", fetched, ");\n");
  }
  return HopsText(true, phase);
}

}  // namespace coconet
