#include "jit/storage/buffers.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/schedule/kernel_phases.h"

namespace coconet {
namespace {

int64_t StoredElements(const TensorType& type, const Target& target) {
  const int ranks = target.ranks, parts = type.layout.by_place() ? target.nodes : 1;
  if (type.shape.empty()) return 1;
  if (type.layout.sliced())
    return std::max<int64_t>(
        1, parts * SlicingOf(type.shape, type.layout.dim, ranks).slice_elements());
  int64_t elements = SlicingOf(type.shape, Layout::kFlat, ranks).padded_elements();
  for (int dim = 0; dim < static_cast<int>(type.shape.size()); ++dim) {
    const TensorSlicing slicing = SlicingOf(type.shape, dim, ranks);
    if (slicing.contiguous()) elements = std::max(elements, slicing.padded_elements());
  }
  return std::max<int64_t>(1, elements);
}

/// The store of `unit` that writes `value`, lowest id first; -1: none.
NodeId StoreOf(const Units& u, int unit, NodeId value) {
  for (NodeId id : u.units[unit].nodes) {
    if (IsStore(u.graph(), id) && u.Value(StoredOperand(u.graph(), id)) == value &&
        u.each[id] == u.each[value])
      return id;
  }
  return -1;
}

struct Life {
  int first = 0, last = 0;  // units
};

/// All units of an overlap run at once.
int FirstWith(const Units& u, int unit) {
  for (const Units::Chain& chain : u.chains) {
    if (unit >= chain.first && unit <= chain.last) return chain.first;
  }
  return unit;
}
int LastWith(const Units& u, int unit) {
  for (const Units::Chain& chain : u.chains) {
    if (unit >= chain.first && unit <= chain.last) return chain.last;
  }
  return unit;
}

/// Values that need a temporary, with the units between which they live.
std::map<NodeId, Life> Temporaries(const Units& u, const BufferTable& table) {
  std::map<NodeId, Life> lives;
  const auto add = [&](NodeId value, int reader) {
    if (table.of[value] >= 0 || u.unit_of[value] < 0) return;
    Life& life = lives.try_emplace(value, Life{FirstWith(u, u.unit_of[value]), u.unit_of[value]})
                     .first->second;
    life.last = std::max(life.last, LastWith(u, reader));
  };
  for (int unit = 0; unit < static_cast<int>(u.units.size()); ++unit) {
    for (NodeId id : u.units[unit].nodes) {
      for (NodeId read : u.Reads(id, unit)) add(read, unit);
      const bool by_library = u.units[unit].library && !IsStore(u.graph(), id);
      if (by_library || Is<AllGather>(u.graph(), id) || Is<Send>(u.graph(), id)) add(id, unit);
    }
  }
  return lives;
}

void AssignTemporaries(const Units& u, const Target& target, BufferTable& table,
                       const std::vector<bool>& symmetric) {
  using Kind = std::tuple<DType, int64_t, bool, bool>;
  std::map<Kind, std::vector<std::pair<int, int>>> pool;  // buffer, last unit that uses it
  std::vector<std::pair<Life, NodeId>> by_birth;
  for (const auto& [value, life] : Temporaries(u, table)) by_birth.push_back({life, value});
  std::stable_sort(by_birth.begin(), by_birth.end(),
                   [](const auto& a, const auto& b) { return a.first.first < b.first.first; });
  int count[2] = {0, 0};
  for (const auto& [life, value] : by_birth) {
    const bool each = u.each[value];
    const Kind kind{u.program.types()[value].dtype,
                    StoredElements(u.program.types()[value], target), symmetric[value], each};
    std::vector<std::pair<int, int>>& free = pool[kind];
    auto it = std::find_if(free.begin(), free.end(),
                           [&](const auto& b) { return b.second < life.first; });
    if (it == free.end()) {
      table.buffers.push_back({absl::StrCat(each ? "e" : "t", count[each]++), BufferRole::kTemp,
                               std::get<0>(kind), std::get<1>(kind), std::get<2>(kind)});
      table.each.push_back(each);
      it = free.insert(free.end(), {static_cast<int>(table.buffers.size()) - 1, 0});
    }
    it->second = life.last;
    table.of[value] = it->first;
  }
}

}  // namespace

std::vector<int> BufferTable::PushTargets(const Units& u, NodeId push) const {
  std::vector<int> targets;
  for (NodeId id : u.units[u.unit_of[push]].nodes) {
    if (IsStore(u.graph(), id) && u.Value(StoredOperand(u.graph(), id)) == push)
      targets.push_back(target[id]);
  }
  if (targets.empty()) targets.push_back(of[push]);
  return targets;
}

BufferTable AssignBuffers(const Units& u, const Target& target, bool pull) {
  const Graph& g = u.graph();
  BufferTable table;
  table.of.assign(g.size(), -1);
  table.target.assign(g.size(), -1);
  const auto declare = [&](NodeId id, const std::string& name, BufferRole role) {
    table.buffers.push_back({name, role, u.program.types()[id].dtype,
                             StoredElements(u.program.types()[id], target), false});
    table.each.push_back(u.each[id]);
    return static_cast<int>(table.buffers.size()) - 1;
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
  for (int unit = 0; unit < static_cast<int>(u.units.size()); ++unit) {
    for (NodeId id : u.units[unit].nodes) {
      const NodeId store = IsStore(g, id) ? -1 : StoreOf(u, unit, id);
      if (store >= 0) table.of[id] = table.target[store];
    }
  }
  // What peers load (operands of reductions) or store (results of gathers and sends) in kernels.
  std::vector<bool> symmetric(g.size());
  for (int unit = 0; unit < static_cast<int>(u.units.size()); ++unit) {
    if (u.units[unit].library) continue;
    for (NodeId id : u.units[unit].nodes) {
      if (Is<AllGather>(g, id) || Is<Send>(g, id)) symmetric[id] = true;
      if (!Is<ReduceScatter>(g, id) && !(pull && Is<AllReduce>(g, id))) continue;
      const NodeId operand = u.Value(g.nodes[id].inputs[0]), fold = FoldBelow(u.program, id);
      const bool of_own_fold = fold >= 0 && u.unit_of[fold] == unit;
      if (u.unit_of[operand] != unit && !of_own_fold)
        symmetric[operand] = true;  // sums of a kernel's own folds are in no buffer
    }
  }
  AssignTemporaries(u, target, table, symmetric);
  for (NodeId id = 0; id < g.size(); ++id) {
    if (!symmetric[id]) continue;
    if (Is<AllGather>(g, id) || Is<Send>(g, id)) {
      for (int buffer : table.PushTargets(u, id)) table.buffers[buffer].symmetric = true;
    } else {
      table.buffers[table.of[id]].symmetric = true;
    }
  }
  return table;
}

int AddSyncBuffer(BufferTable& table, std::string name, DType dtype, int64_t elements,
                  bool symmetric, bool each) {
  table.each.push_back(each);
  table.buffers.push_back({std::move(name), BufferRole::kSync, dtype, elements, symmetric});
  return static_cast<int>(table.buffers.size()) - 1;
}

}  // namespace coconet
