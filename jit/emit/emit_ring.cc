#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "jit/emit/emitter.h"

namespace coconet {
namespace {

/// The type that the dialect computes `dtype` in (Compute<T>).
DType ComputedIn(DType dtype) {
  switch (dtype) {
    case DType::kF16:
    case DType::kBF16:
      return DType::kF32;
    case DType::kBool:
    case DType::kU8:
      return DType::kI32;
    default:
      return dtype;
  }
}

}  // namespace

void Emitter::AddRings() {
  if (!Rings()) return;
  for (NodeId id : nodes()) {
    if (!Is<ReduceScatter>(g_, id)) continue;
    const NodeId operand = u_.Value(g_.nodes[id].inputs[0]);
    const std::string name = absl::StrCat("ring", rings_.size());
    const int buffer = AddSyncBuffer(table_, absl::StrCat("partials", step_, ".", rings_.size()),
                                     ComputedIn(type(operand).dtype),
                                     NumElements(type(operand).shape), true, u_.each[operand]);
    expressions_.ReduceAround(id, name);
    rings_.push_back({id, name, buffer});
  }
}

std::string Emitter::RingDeclarations() {
  std::string text;
  for (const RingBuffer& ring : rings_) {
    const NodeId operand = u_.Value(g_.nodes[ring.reduced].inputs[0]);
    const DType dtype = type(operand).dtype;
    absl::StrAppend(&text, over_tensors_ ? "    " : "  ", "const auto ", ring.name,
                    " = MakeRing(sync, ", args_.Own(table_.of[operand], dtype), ", ",
                    args_.Peers(ring.buffer, ComputedIn(dtype)), ");\n");
  }
  return text;
}

std::string Emitter::RingFlag(absl::string_view from, bool gathered) const {
  const bool behind = gathered && !rings_.empty();  // those of partial results
  return absl::StrCat(behind ? "(kRanks + " : "", from, behind ? ")" : "", " * p.chunks + c.id");
}

std::string Emitter::HopsText(bool gathered, const Phase& phase) {
  const std::string flag = RingFlag("from", gathered);
  const std::string chunks = absl::StrCat(
      "    if (!", ForChunksText("cut", by_place_ ? "slice" : "from", "node"), "    if (",
      gathered ? "" : "hop > 0 && ", "!AwaitHop(sync, grid, ", flag, ")) return false;\n",
      "    ForEach<kV>(grid, c.begin, c.end, ", args_.At("packed"),
      " != 0, [&](auto lanes, Index i) {\n", "      constexpr int V = decltype(lanes)::kCount;\n",
      phase.elements.stores, "    });\n", "    PassOn(sync, grid, ", flag,
      ");\n    return true;\n  })) return;\n");
  const std::string of_nodes = by_place_ ? absl::StrCat(
                                               "  for (int node = 0; node < p.nodes; ++node) {\n   "
                                               " const int slice = node * kRanks + from;\n",
                                               chunks, "  }\n")
                                         : chunks;
  const std::string hops =
      absl::StrCat("  for (int hop = ", gathered ? "1" : "0",
                   "; hop + 1 < kRanks; ++hop) {\n    const int from = RankBehind(sync, ",
                   gathered ? "hop" : "hop + 1", ");\n", of_nodes, "  }\n");
  return over_tensors_ ? OverTensors(phase, gathered ? "" : RingDeclarations(), hops) : hops;
}

std::string Emitter::PartialsText() {
  if (rings_.empty()) return "";
  Phase phase{.on_slices = true};
  for (const RingBuffer& ring : rings_) {
    const NodeId operand = u_.Value(g_.nodes[ring.reduced].inputs[0]);
    const DType dtype = ComputedIn(type(operand).dtype);
    absl::StrAppend(&phase.elements.stores, "      Store<",
                    Streams(ring.buffer) ? "kStreamed" : "kCached", ">(", ring.name,
                    ".next + i, hop == 0 ? Load<V>(", ring.name,
                    ".own + i) : ", LoadFrom(As<ReduceScatter>(g_, ring.reduced)->kind), "<V>(",
                    ring.name, ", i));\n");
    bytes_ += 3 * NumElements(type(operand).shape) * static_cast<int64_t>(SizeOf(dtype));
  }
  return absl::StrCat(over_tensors_ ? "" : RingDeclarations(), HopsText(false, phase));
}

std::string Emitter::PassedOnText() {
  if (gathered_around_.empty()) return "";
  Phase phase{.on_slices = true};
  for (int buffer : gathered_around_) {
    const DType dtype = table_.buffers[buffer].dtype;
    absl::StrAppend(&phase.elements.stores, "      CopyOn<",
                    Streams(buffer) ? "kStreamed" : "kCached", ", V>(sync, ",
                    args_.Peers(buffer, dtype), ", i);\n");
  }
  return HopsText(true, phase);
}

}  // namespace coconet
