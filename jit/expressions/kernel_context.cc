#include "jit/expressions/kernel_context.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/schedule/prologue.h"
#include "jit/config/launch_shapes.h"

namespace coconet {

KernelContext::KernelContext(const KernelPlace& at, const Config& config, const Target& target,
                             BufferTable& table)
    : KernelShape(at.launches.program, at.launches[at.launch].nodes),
      u(at.launches),
      g(u.graph()),
      launch(at.launch),
      config(config),
      target(target),
      step(at.step),
      piece(at.piece),
      tiles(at.tiles),
      publishes(at.publishes),
      made(at.made),
      gathered(at.gathered),
      tensors(at.tensors),
      list_chunks(at.list_chunks),
      table(table),
      over_tensors(absl::c_any_of(u[launch].nodes, [&](NodeId id) { return u.each[id]; })),
      args(table.each, over_tensors) {
  FindTraits();
  vec = VecOf(config, WidestElement());
  if (NeedsPlace()) args.CallOwnIndex("place");
}

void KernelContext::FindTraits() {
  for (NodeId id : members) {
    if (const auto* send = As<Send>(g, id)) {
      sends_next = sends_next || send->shift > 0;
      sends_previous = sends_previous || send->shift < 0;
    } else if (Communicates(g, id) && (!type(id).shape.empty() || space.shape.empty())) {
      collective = true;
    }
    if (Is<AllToAll>(g, id)) {
      exchange = {.from = type(g.nodes[id].inputs[0]).layout,
                  .to = type(id).layout,
                  .pushes = IsExchanged(id)};
    }
    const NodeId sliced = Is<AllGather>(g, id) || Is<Fold>(g, id) ? g.nodes[id].inputs[0] : id;
    by_place = by_place || type(sliced).layout.by_place();
  }
  if (PiecesOfSlices()) {
    slices = Layout::Sliced(piece->dim);
    cuts = true;
  }
  for (size_t p = 0; p < phases.phases.size(); ++p) {
    const KernelPhase& phase = phases.phases[p];
    cuts = cuts || phase.on_slices;
    if (!phase.gathers.empty()) last_gathering = static_cast<int>(p);
    if (phase.arriving) exchange->arrives = true;
    reads_gathered = reads_gathered || absl::c_any_of(phase.evaluated, [&](NodeId id) {
                       return Is<AllGather>(g, id) && !phase.on_slices;
                     });
  }
}

int KernelContext::WidestElement() const {
  size_t widest = 1;
  const auto add = [&](NodeId id) {
    if (!type(id).shape.empty()) widest = std::max(widest, SizeOf(type(id).dtype));
  };
  for (NodeId id : members) {
    if (IsStore(g, id) || Communicates(g, id) || table.of[id] >= 0) add(id);
    for (NodeId input : g.nodes[id].inputs) {
      if (!IsMember(u.Value(input))) add(u.Value(input));
    }
  }
  return static_cast<int>(widest);
}

absl::Status KernelContext::Check() const {
  for (NodeId id : prologue) {
    if (id == awaited || FitsPrologue(u.program, id)) continue;
    return absl::UnimplementedError(absl::StrCat("emit: ", NodeText(g, id),
                                                 ": want one matrix, or more than ", kMostRows,
                                                 " rows of several in tiles"));
  }
  for (NodeId id : members) {
    if (type(id).shape.empty() || Is<Fold>(g, id) || type(id).shape == space.shape || IsRow(id))
      continue;
    return absl::InternalError(absl::StrCat("emit: ", NodeText(g, id), " has shape ",
                                            Text(type(id).shape), " in a kernel over ",
                                            Text(space.shape)));
  }
  return absl::OkStatus();
}

absl::string_view KernelContext::StoreMode(int buffer) const {
  if (made != nullptr) return "kCached";  // the kernel beside this one loads it next
  switch (config.streaming) {
    case Streaming::kNone:
      return "kCached";
    case Streaming::kShared:
      return table.buffers[buffer].symmetric ? "kStreamed" : "kCached";
    case Streaming::kAll:
      return "kStreamed";
  }
  return "";
}

}  // namespace coconet
