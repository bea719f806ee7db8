#include "jit/emit/peer_copies.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "jit/emit/chunk_loops.h"
#include "jit/expressions/element_loop.h"

namespace coconet {
namespace {

constexpr int64_t kLineElements = 64;  // so that halves begin at cache lines, in every type
constexpr int64_t kMessageBytes = 4;   // of data in a word of 8

int64_t InWholeLines(int64_t elements) {
  return (elements + kLineElements - 1) / kLineElements * kLineElements;
}

}  // namespace

PeerCopies::PeerCopies(KernelContext& k, Loads& loads) : k_(k) {
  if (k.config.one_shot == OneShot::kPull || !k.Waits()) return;
  for (NodeId id : k.members) {
    if (!Is<AllReduce>(k.g, id)) continue;
    const NodeId fold = FoldBelow(k.u.program, id);
    if (fold >= 0 && k.IsMember(fold)) continue;
    const NodeId operand = k.Crossing(id);
    if (absl::c_none_of(copies_, [&](const Copy& copy) { return copy.operand == operand; }))
      Add(operand, loads);
  }
}

void PeerCopies::Add(NodeId operand, Loads& loads) {
  const DType dtype = k_.type(operand).dtype;
  const int64_t elements = NumElements(k_.type(operand).shape),
                bytes = elements * static_cast<int64_t>(SizeOf(dtype));
  const bool sends = k_.config.one_shot == OneShot::kLL;
  const std::string name = absl::StrCat(sends ? "messages" : "staged", copies_.size());
  const int64_t stride =
      InWholeLines(sends ? (bytes + kMessageBytes - 1) / kMessageBytes : elements);
  const int buffer = AddSyncBuffer(
      k_.table, absl::StrCat(sends ? "messages" : "stages", k_.step, ".", copies_.size()),
      sends ? DType::kI64 : dtype, 2 * stride * (sends ? k_.target.ranks_per_node() : 1), true,
      k_.u.each[operand]);
  loads.LoadAllFrom(operand, sends ? name : name + ".from");
  copies_.push_back({operand, name, buffer, stride});
  // Words of a message are of twice the bytes, stored there and loaded here.
  k_.bytes += (sends ? 4 * (k_.target.ranks_per_node() - 1) : 2) * bytes;
}

std::string PeerCopies::Declarations() {
  std::string text;
  for (const Copy& copy : copies_) {
    const DType dtype = k_.type(copy.operand).dtype;
    const std::string own = k_.args.Own(k_.table.of[copy.operand], dtype),
                      stride = k_.args.Integer(absl::StrCat(copy.name, "_stride"), copy.stride),
                      peers = k_.args.Peers(copy.buffer, AreMessages() ? DType::kI64 : dtype);
    absl::StrAppend(&text, k_.TensorIndent(), "const auto ", copy.name,
                    AreMessages() ? " = MakeMessages" : " = MakeStaged", "(sync, ", own, ", ",
                    peers, ", ", stride, AreMessages() ? ", lost" : "", ");\n");
  }
  return text;
}

std::string PeerCopies::Text(const Rings& rings) {
  const std::string declarations = Declarations();
  PhaseText phase;
  std::string sends;
  for (const Copy& copy : copies_) {
    const DType dtype = k_.type(copy.operand).dtype;
    const std::string own = k_.args.Own(k_.table.of[copy.operand], dtype),
                      fetched = phase.elements.Fetch(absl::StrCat("Fetch<V>(", own, " + i)"),
                                                     static_cast<int64_t>(SizeOf(dtype)));
    absl::StrAppend(&phase.elements.stores, "      Store<kCached>(", copy.name, ".to + i, ValueOf(",
                    fetched, "));\n");
    absl::StrAppend(&sends, "    SendChunk(grid, ", copy.name, ", c, ", k_.args.At("n"), ");\n");
  }
  const std::string chunks =
      ChunksText(k_, rings, phase, AreMessages() ? sends : ElementsText(k_, phase));
  return k_.over_tensors ? OverTensorsText(k_, phase, declarations, chunks)
                         : absl::StrCat(declarations, chunks);
}

bool CopiesInBulk(const KernelContext& k, const KernelPhase& phase) {
  if (!k.config.bulk || !k.Waits() || !phase.on_slices || phase.gathers.empty() ||
      k.space.row_dims > 0 || k.reads_gathered || k.publishes)
    return false;
  if (!phase.stores.empty() || !phase.folds.empty() || !phase.sends.empty()) return false;
  return absl::c_all_of(phase.gathers, [&](NodeId id) {
    const NodeId slice = k.Operand(id);
    return !k.IsMember(slice) && k.table.of[slice] >= 0 && k.type(slice).shape == k.space.shape;
  });
}

BulkText BulkCopiesText(KernelContext& k, const KernelPhase& planned, PhaseText& phase) {
  BulkText text{.before = "  auto bulk = MakeBulkRing(grid, sync);\n",
                .of_chunk = "",
                .after = "  if (!DrainBulk(grid, bulk)) return;\n"};
  for (NodeId id : planned.gathers) {
    const DType dtype = k.type(id).dtype;
    const std::string own = k.args.Own(k.table.of[k.Operand(id)], dtype);
    for (int buffer : k.table.push_targets.at(id)) {
      phase.bytes_per_element +=
          (1 + k.target.ranks_per_node()) * static_cast<int64_t>(SizeOf(dtype));
      absl::StrAppend(&text.of_chunk, "    CopyToAll<", k.StoreMode(buffer), ", kV, ",
                      PacksInFlight(k, static_cast<int64_t>(SizeOf(dtype))), ">(grid, bulk, ",
                      k.args.Peers(buffer, dtype), ", ", own, ", c);\n");
    }
  }
  return text;
}

}  // namespace coconet
