#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "coconet/schedule/rewrites.h"

namespace coconet {
namespace {

/// The node that updates the state; -1 for none.
NodeId UpdateOf(const TypedGraph& program, NodeId state) {
  for (NodeId id : program.users()[state]) {
    if (As<Update>(program.graph(), id) && program.inputs(id)[0] == state) return id;
  }
  return -1;
}

/// Whether a node still yields the same value: whole, or as slices of the value that all ranks had.
/// A value that each rank computes from its own slices (such as a sum of its slice) is another
/// value, even where its type is the same.
bool StaysWhole(const Graph& g, NodeId id, const Layout& now, const Layout& before) {
  const auto read = [](const Layout& layout) {
    return layout == Layout::Auto() ? Layout::Replicated() : layout;
  };
  if (read(now) == read(before)) return true;
  return now.sliced() && read(before) == Layout::Replicated() && !As<Output>(g, id);
}

/// Checks that all computation on the state's old value can be on slices: each path from it ends in
/// operations on slices, or without users. Refuses at the first node that needs the whole state.
absl::Status CheckUses(const TypedGraph& program, const Slice& slice, const Rewritten& sliced) {
  const Graph& g = program.graph();
  std::vector<NodeId> old_id(sliced.graph.nodes.size(), -1);
  for (NodeId id = 0; id < g.size(); ++id) {
    NodeId& old = old_id[sliced.renamed[id]];
    if (old < 0) old = id;
  }
  std::vector<TensorType> types;
  for (NodeId id = 0; id < sliced.graph.size(); ++id) {
    absl::StatusOr<TensorType> type = InferNode(sliced.graph, id, types);
    const NodeId old = old_id[id];
    if (!type.ok() ||
        (old >= 0 && !StaysWhole(sliced.graph, id, type->layout, program.type(old).layout))) {
      CC_CHECK(old >= 0);
      return Refused(slice, NodeText(g, old), " needs all of state ", ValueText(g, slice.state),
                     "; want only uses on slices: reorder first");
    }
    types.push_back(*std::move(type));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Graph> ApplySlice(const TypedGraph& program, const Slice& slice) {
  const Graph& g = program.graph();
  const auto* state = As<State>(g, slice.state);
  if (state == nullptr) return Refused(slice, "want a state, have ", NodeText(g, slice.state));
  if (state->type.layout.kind != Layout::Kind::kAuto)
    return Refused(slice, "want a state of layout auto, have ", NodeText(g, slice.state));
  const NodeId update = UpdateOf(program, slice.state);
  if (update < 0)
    return Refused(slice, "state ", state->name, " is never updated: it has no slices to keep");
  const NodeId gather = g.nodes[update].inputs[1];
  if (As<AllGather>(g, gather) == nullptr) {
    return Refused(slice, NodeText(g, update), " takes ", NodeText(g, gather),
                   ", want an all_gather: split and reorder first");
  }
  TensorType sliced_type = state->type;
  sliced_type.layout = program.type(program.inputs(gather)[0]).layout;
  if (sliced_type.layout.by_place()) {
    return Refused(slice, NodeText(g, gather), " gathers ", Text(sliced_type),
                   ", but a state keeps each rank's own part: slice before split_by_node");
  }

  // The gather reads what the state then holds, and is dropped when nothing needs it.
  std::set<NodeId> on_slices;  // the state's slices, and what is computed from them: need no shard
  const Rewritten sliced =
      Rewrite(g, [&](Graph& out, NodeId id, std::vector<NodeId> inputs) -> NodeId {
        if (id == slice.state)
          return *on_slices.insert(out.Add(State{state->name, sliced_type, state->each})).first;
        if (id == update) return inputs[1];
        const bool of_slices =
            absl::c_any_of(inputs, [&](NodeId input) { return on_slices.contains(input); });
        if (of_slices && As<Shard>(g, id)) return inputs[0];
        if (id != gather) {
          const NodeId added = out.Add(g.nodes[id].op, std::move(inputs));
          if (of_slices && IsElementwise(g.nodes[id].op)) on_slices.insert(added);
          return added;
        }
        // In a canonical graph declarations, so the state too, come first and keep their numbers.
        const NodeId updated = out.Add(Update{}, {slice.state, inputs[0]});
        return out.Add(g.nodes[gather].op, {updated});
      });
  RETURN_IF_ERROR(CheckUses(program, slice, sliced));
  return sliced.graph;
}

}  // namespace coconet
