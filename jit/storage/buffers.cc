#include "jit/storage/buffers.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/ir/op_table.h"
#include "coconet/ir/operand_index.h"
#include "coconet/schedule/kernel_phases.h"
#include "coconet/schedule/prologue.h"

namespace coconet {
namespace {

int64_t StoredElements(const TensorType& type, const Target& target) {
  const int ranks = target.ranks, parts = type.layout.by_place() ? target.nodes : 1;
  if (type.shape.empty()) return 1;
  if (type.layout.sliced())
    return std::max<int64_t>(1, parts * SlicingOf(type, ranks).slice_elements());
  int64_t elements = SlicingOf(type.shape, Layout::kFlat, ranks).padded_elements();
  for (int dim = 0; dim < static_cast<int>(type.shape.size()); ++dim) {
    const TensorSlicing slicing = SlicingOf(type.shape, dim, ranks);
    if (slicing.contiguous()) elements = std::max(elements, slicing.padded_elements());
  }
  return std::max<int64_t>(1, elements);
}

/// By rank: what it needs to store its part; empty where all need as much.
std::vector<int64_t> ElementsByRank(const TensorType& type, const Target& target) {
  if (!type.layout.sliced() || !type.layout.weighted() || type.shape.empty()) return {};
  const TensorSlicing cut = SlicingOf(type, target.ranks);
  std::vector<int64_t> elements;
  for (int rank = 0; rank < target.ranks; ++rank)
    elements.push_back(cut.slicing.Of(rank).size() > 0 ? cut.slice_elements() : 0);
  return elements;
}

/// By node: a collective of a library reads or writes its value, the same amount on every rank.
std::vector<bool> MovedByLibraries(const PlacedLaunches& u) {
  const Graph& g = u.graph();
  std::vector<bool> moved(g.size());
  for (NodeId id = 0; id < g.size(); ++id) {
    // An AllToAll moves what each rank has.
    if (u.of[id] < 0 || !u[u.of[id]].library || !Communicates(g, id) || Is<AllToAll>(g, id))
      continue;
    moved[id] = true;
    moved[u.Value(g.nodes[id].inputs[0])] = true;
  }
  return moved;
}

/// By node: the store that its own launch writes it with, lowest id first; -1: none.
std::vector<NodeId> OwnStores(const PlacedLaunches& u) {
  std::vector<NodeId> stores(u.graph().size(), -1);
  for (NodeId id = 0; id < u.graph().size(); ++id) {
    if (!IsStore(u.graph(), id) || u.of[id] < 0) continue;
    const NodeId value = u.Value(StoredOperand(u.graph(), id));
    const bool is_own = u.of[value] == u.of[id] && u.each[value] == u.each[id];
    // A kernel computes its prologue before it has read the old values of states.
    const bool is_early = !u[u.of[id]].library && IsOfPrologue(u.program, u[u.of[id]].nodes, value);
    if (is_early && Is<Update>(u.graph(), id)) continue;
    if (is_own && stores[value] < 0) stores[value] = id;
  }
  return stores;
}

/// Its result is stored by other ranks, or by those that compute it, out of a kernel.
bool IsPushed(const PlacedLaunches& u, NodeId id) {
  const int launch = u.of[id];
  if (Is<AllGather>(u.graph(), id) || Is<Send>(u.graph(), id)) return true;
  return launch >= 0 && IsExchanged(u.program, u[launch].nodes, id);
}

/// The view that is all of a kernel's launch and keeps all elements in their order; -1: none.
NodeId ReshapeOf(const PlacedLaunches& u, int launch) {
  if (u[launch].library || u[launch].nodes.size() != 1) return -1;
  const NodeId id = u[launch].nodes[0];
  const Op& op = u.graph().nodes[id].op;
  if (!IsView(op)) return -1;
  const NodeId operand = u.Value(u.graph().nodes[id].inputs[0]);
  return MovesElements(op, u.type(id).shape, u.type(operand).shape) ? -1 : id;
}

/// By node: the value whose temporary it shares, as IsInPlace; itself elsewhere. Others could write
/// to the memory of inputs, states and outputs meanwhile, and peers and libraries reach a buffer at
/// the times of the value that they know.
std::vector<NodeId> Holders(const PlacedLaunches& u, const BufferTable& table,
                            const std::vector<bool>& symmetric) {
  std::vector<NodeId> holders(u.graph().size());
  absl::c_iota(holders, 0);
  if (u.tensors > 0) return holders;
  const std::vector<bool> moved = MovedByLibraries(u);
  std::vector<bool> in_chain(u.size());
  for (const PlacedLaunches::Chain& chain : u.chains)
    std::fill(in_chain.begin() + chain.first, in_chain.begin() + chain.last + 1, true);
  const auto is_plain = [&](NodeId id) {
    return table.of[id] < 0 && u.of[id] >= 0 && !in_chain[u.of[id]] && !symmetric[id] &&
           !moved[id] && !u.type(id).layout.sliced() && u.rows[id].all();
  };
  for (int launch = 0; launch < static_cast<int>(u.size()); ++launch) {
    const NodeId id = ReshapeOf(u, launch);
    if (id < 0) continue;
    const NodeId operand = u.Value(u.graph().nodes[id].inputs[0]);
    if (is_plain(id) && is_plain(operand)) holders[id] = holders[operand];
  }
  return holders;
}

/// Values that need a temporary, in the order of the launches that compute them.
std::vector<NodeId> Temporaries(const PlacedLaunches& u, const BufferTable& table,
                                const std::vector<NodeId>& holders) {
  std::set<std::pair<int, NodeId>> values;
  const auto add = [&](NodeId used) {
    const NodeId value = holders[used];
    if (table.of[value] < 0 && u.of[value] >= 0) values.emplace(u.of[value], value);
  };
  for (int launch = 0; launch < static_cast<int>(u.size()); ++launch) {
    for (NodeId id : u[launch].nodes) {
      for (NodeId read : u.Reads(id, launch)) add(read);
      if (Is<MatMul>(u.graph(), id)) {
        const RowsInUse rows = u.RowsOfProduct(id, launch);
        if (!rows.all()) add(rows.counts);
      }
      if (const NodeId before = u.CountsBeforeAllToAll(id); before >= 0) {
        add(before);
        add(u.Value(u.rows[id].counts));
      }
      const bool by_library = u[launch].library && !IsStore(u.graph(), id);
      if (by_library || IsPushed(u, id)) add(id);
    }
  }
  std::vector<NodeId> in_order;
  for (const auto& [launch, value] : values) in_order.push_back(value);
  return in_order;
}

/// A buffer for each; which of them lie in the same memory, the plan's steps decide.
void AssignTemporaries(const PlacedLaunches& u, const Target& target, BufferTable& table,
                       const std::vector<bool>& symmetric) {
  const std::vector<NodeId> holders = Holders(u, table, symmetric);
  std::vector<int64_t> most(u.graph().size());  // elements of what a value's buffer holds
  for (NodeId id = 0; id < u.graph().size(); ++id)
    most[holders[id]] = std::max(most[holders[id]], StoredElements(u.type(id), target));
  int count[2] = {0, 0};
  for (NodeId value : Temporaries(u, table, holders)) {
    const bool each = u.each[value];
    const std::string name = absl::StrCat(each ? "e" : "t", count[each]++);
    table.of[value] = AddBuffer(
        table, {name, BufferRole::kTemp, u.type(value).dtype, most[value], symmetric[value]}, each);
  }
  for (NodeId id = 0; id < u.graph().size(); ++id) {
    if (holders[id] != id) table.of[id] = table.of[holders[id]];
  }
}

/// By node: its value is in memory that peers load (operands of reductions in kernels) or store to
/// (results of gathers and sends in kernels).
std::vector<bool> ReachedByPeers(const PlacedLaunches& u, bool pull) {
  const Graph& g = u.graph();
  std::vector<bool> reached(g.size());
  for (int launch = 0; launch < static_cast<int>(u.size()); ++launch) {
    if (u[launch].library) continue;
    for (NodeId id : u[launch].nodes) {
      if (IsPushed(u, id)) reached[id] = true;
      const bool is_loaded = Is<AllToAll>(g, id) && !IsPushed(u, id);
      if (!Is<ReduceScatter>(g, id) && !(pull && Is<AllReduce>(g, id)) && !is_loaded) continue;
      const NodeId operand = CrossingValue(u.program, id, u[launch].nodes),
                   fold = FoldBelow(u.program, id);
      const bool of_own_fold = fold >= 0 && u.of[fold] == launch;
      if (!u.ComputesInPhases(launch, operand) && !of_own_fold)
        reached[operand] = true;  // sums of a kernel's own folds are in no buffer
    }
  }
  return reached;
}

std::map<NodeId, std::vector<int>> PushTargets(const PlacedLaunches& u, const BufferTable& table) {
  std::map<NodeId, std::vector<int>> targets;
  for (NodeId id = 0; id < u.graph().size(); ++id) {
    if (IsPushed(u, id)) targets[id];
    if (!IsStore(u.graph(), id)) continue;
    const NodeId value = u.Value(StoredOperand(u.graph(), id));
    const auto push = targets.find(value);
    if (push != targets.end() && u.of[value] == u.of[id]) push->second.push_back(table.target[id]);
  }
  for (auto& [push, buffers] : targets) {
    if (buffers.empty()) buffers = {table.of[push]};
  }
  return targets;
}

/// Sizes by rank, where all values that a buffer holds are parts of ranks and nothing but this rank
/// reaches it.
void SizeByRank(const PlacedLaunches& u, const Target& target, BufferTable& table) {
  const std::vector<bool> moved = MovedByLibraries(u);
  std::vector<bool> whole(table.buffers.size());
  const auto hold = [&](int b, NodeId id) {
    if (b < 0) return;
    std::vector<int64_t>& most = table.buffers[b].on_rank;
    const std::vector<int64_t> elements = ElementsByRank(u.type(id), target);
    if (elements.empty() || moved[id] || table.buffers[b].symmetric) whole[b] = true;
    most.resize(elements.size());
    for (size_t rank = 0; rank < elements.size(); ++rank)
      most[rank] = std::max(most[rank], elements[rank]);
  };
  for (NodeId id = 0; id < u.graph().size(); ++id) {
    hold(table.of[id], id);
    hold(table.target[id], id);
  }
  for (size_t b = 0; b < whole.size(); ++b) {
    if (whole[b]) table.buffers[b].on_rank.clear();
  }
}

}  // namespace

bool IsInPlace(const PlacedLaunches& u, int launch, const BufferTable& table) {
  const NodeId id = ReshapeOf(u, launch);
  return id >= 0 && table.of[id] >= 0 &&
         table.of[id] == table.of[u.Value(u.graph().nodes[id].inputs[0])];
}

BufferTable AssignBuffers(const PlacedLaunches& u, const Target& target, bool pull) {
  const Graph& g = u.graph();
  BufferTable table;
  table.of.assign(g.size(), -1);
  table.target.assign(g.size(), -1);
  const auto declare = [&](NodeId id, const std::string& name, BufferRole role) {
    return AddBuffer(table, {name, role, u.type(id).dtype, StoredElements(u.type(id), target)},
                     u.each[id]);
  };
  for (NodeId id = 0; id < g.size(); ++id) {
    if (const auto* input = As<Input>(g, id))
      table.of[id] = declare(id, input->name, BufferRole::kInput);
    if (const auto* state = As<State>(g, id))
      table.of[id] = declare(id, state->name, BufferRole::kState);
    if (const auto* output = As<Output>(g, id))
      table.target[id] = declare(id, output->name, BufferRole::kOutput);
    if (Is<Update>(g, id)) table.target[id] = table.of[g.nodes[id].inputs[0]];
  }
  const std::vector<NodeId> own_stores = OwnStores(u);
  for (NodeId id = 0; id < g.size(); ++id) {
    if (own_stores[id] >= 0) table.of[id] = table.target[own_stores[id]];
  }
  const std::vector<bool> symmetric = ReachedByPeers(u, pull);
  AssignTemporaries(u, target, table, symmetric);
  table.push_targets = PushTargets(u, table);
  for (NodeId id = 0; id < g.size(); ++id) {
    if (!symmetric[id]) continue;
    const auto push = table.push_targets.find(id);
    if (push == table.push_targets.end()) {
      table.buffers[table.of[id]].symmetric = true;
    } else {
      for (int buffer : push->second) table.buffers[buffer].symmetric = true;
    }
  }
  SizeByRank(u, target, table);
  return table;
}

int AddSyncBuffer(BufferTable& table, std::string name, DType dtype, int64_t elements,
                  bool symmetric, bool each) {
  return AddBuffer(table, {std::move(name), BufferRole::kSync, dtype, elements, symmetric}, each);
}

int AddBuffer(BufferTable& table, Buffer buffer, bool each) {
  table.each.push_back(each);
  table.buffers.push_back(std::move(buffer));
  return static_cast<int>(table.buffers.size()) - 1;
}

}  // namespace coconet
