#include "coconet/testing/simulator.h"

#include <algorithm>
#include <limits>
#include <random>
#include <utility>

#include "coconet/base/status.h"
#include "coconet/infer.h"
#include "coconet/kernel_phases.h"
#include "coconet/steps.h"

namespace coconet {
namespace {

constexpr double kPoison = std::numeric_limits<double>::quiet_NaN();

/// Index into a tensor of shape `to` that broadcasting pairs with `index` of a tensor of shape `from`.
int64_t MapIndex(int64_t index, const Shape& from, const Shape& to) {
  if (from == to) return index;
  int64_t mapped = 0, stride = 1;
  for (size_t k = 0; k < std::min(from.size(), to.size()); ++k) {
    const int64_t extent = from[from.size() - 1 - k].size, have = to[to.size() - 1 - k].size;
    if (have != 1) mapped += index % extent * stride;
    stride *= have;
    index /= extent;
  }
  return mapped;
}

/// The rank that holds an element of a sliced tensor.
int OwnerOf(int64_t index, const TensorType& type, int ranks) {
  const TensorSlicing slicing = SlicingOf(type.shape, type.layout.dim, ranks);
  const int64_t along = index / slicing.inner % std::max<int64_t>(slicing.slicing.extent, 1);
  return static_cast<int>(along / std::max<int64_t>(slicing.slicing.per, 1));
}

class Simulation {
 public:
  Simulation(const Schedule& s, int ranks, const ElementSource& source, uint64_t seed)
      : s_(s), g_(s.graph), ranks_(ranks), random_(seed), values_(AssignedValues(g_)), memory_(ranks) {
    absl::StatusOr<std::vector<TensorType>> types = InferTypes(g_);
    CC_CHECK(types.ok());
    types_ = *std::move(types);
    for (int rank = 0; rank < ranks; ++rank) Allocate(rank, source);
  }

  void Run() {
    steps_ = FindSteps(g_, s_.kernels);
    FindHomes();
    for (const std::vector<NodeId>& nodes : ExecutionOrder(s_)) {
      step_ = steps_.of[nodes[0]];
      if (nodes.size() == 1 && Communicates(g_, nodes[0])) {
        RunCollective(nodes[0]);
      } else {
        RunKernel(nodes);
      }
    }
  }

  std::map<std::string, std::vector<std::vector<double>>> Results() const {
    std::map<std::string, std::vector<std::vector<double>>> results;
    for (NodeId id = 0; id < g_.size(); ++id) {
      const auto* output = As<Output>(g_, id);
      if (output == nullptr && !As<Update>(g_, id)) continue;
      const NodeId home = Target(id);
      const std::string name = output != nullptr ? output->name : As<State>(g_, home)->name;
      for (int rank = 0; rank < ranks_; ++rank) {
        std::vector<double> elements = memory_[rank][home];
        for (size_t i = 0; i < elements.size() && types_[id].layout.sliced(); ++i) {
          elements[i] = memory_[OwnerOf(static_cast<int64_t>(i), types_[id], ranks_)][home][i];
        }
        results[name].push_back(std::move(elements));
      }
    }
    return results;
  }

 private:
  void Allocate(int rank, const ElementSource& source) {
    memory_[rank].resize(g_.nodes.size());
    for (NodeId id = 0; id < g_.size(); ++id) {
      const TensorType& type = types_[id];
      memory_[rank][id].assign(NumElements(type.shape), kPoison);
      const auto* input = As<Input>(g_, id);
      const auto* state = As<State>(g_, id);
      if (input == nullptr && state == nullptr) continue;
      for (int64_t i = 0; i < NumElements(type.shape); ++i) {
        if (type.layout.sliced() && OwnerOf(i, type, ranks_) != rank) continue;
        const int asked = type.layout.kind == Layout::Kind::kLocal ? rank : 0;
        memory_[rank][id][i] = source(input != nullptr ? input->name : state->name, asked, i);
      }
    }
  }

  /// Where an update or output stores.
  NodeId Target(NodeId store) const { return As<Update>(g_, store) ? g_.nodes[store].inputs[0] : store; }

  /// A value that an update of its own step keeps needs no memory beside the state's.
  void FindHomes() {
    homes_ = values_;
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (!As<Update>(g_, id) || steps_.of[values_[id]] != steps_.of[id]) continue;
      homes_[values_[id]] = Target(id);
    }
  }

  /// A push goes into the memory of every update that assigns it in the same step.
  std::vector<NodeId> PushTargets(NodeId gather) const {
    std::vector<NodeId> targets;
    for (NodeId id = 0; id < g_.size(); ++id) {
      const bool assigns = As<Update>(g_, id) && values_[id] == gather && steps_.of[id] == steps_.of[gather];
      if (assigns) targets.push_back(Target(id));
    }
    if (targets.empty()) targets.push_back(gather);
    return targets;
  }

  double& Cell(int rank, NodeId value, int64_t index) { return memory_[rank][homes_[value]][index]; }

  double Reduced(NodeId reduction, int64_t index) {
    const NodeId operand = values_[g_.nodes[reduction].inputs[0]];
    const auto* all_reduce = As<AllReduce>(g_, reduction);
    const ReduceKind kind = all_reduce != nullptr ? all_reduce->kind : As<ReduceScatter>(g_, reduction)->kind;
    double result = Cell(0, operand, index);
    for (int rank = 1; rank < ranks_; ++rank) {
      const double more = Cell(rank, operand, index);
      switch (kind) {
        case ReduceKind::kSum:
          result += more;
          break;
        case ReduceKind::kMax:
          result = std::max(result, more);
          break;
        case ReduceKind::kMin:
          result = std::min(result, more);
          break;
      }
    }
    return result;
  }

  void RunCollective(NodeId id) {
    const NodeId operand = values_[g_.nodes[id].inputs[0]];
    const int64_t elements = NumElements(types_[id].shape);
    for (int rank = 0; rank < ranks_; ++rank) {
      for (int64_t i = 0; i < elements; ++i) {
        if (As<AllGather>(g_, id)) {
          Cell(rank, id, i) = Cell(OwnerOf(i, types_[operand], ranks_), operand, i);
        } else if (!types_[id].layout.sliced() || OwnerOf(i, types_[id], ranks_) == rank) {
          Cell(rank, id, i) = Reduced(id, i);
        }
      }
    }
  }

  /// Values of the nodes that one element needs, each computed once from what is in memory now.
  class Element {
   public:
    Element(Simulation* simulation, int rank)
        : sim_(*simulation), rank_(rank), known_(sim_.g_.nodes.size()), values_(sim_.g_.nodes.size()) {}

    double Of(NodeId id, int64_t index) {
      id = sim_.values_[id];
      if (!known_[id]) values_[id] = Compute(id, index);
      known_[id] = true;
      return values_[id];
    }

   private:
    double Compute(NodeId id, int64_t index) {
      const Graph& g = sim_.g_;
      if (const auto* constant = As<Const>(g, id)) return constant->value;
      if (As<WorldSize>(g, id)) return sim_.ranks_;
      const bool in_step = sim_.steps_.of[id] == sim_.step_;
      const bool recomputed = sim_.steps_.of[id] < 0 && !As<Input>(g, id) && !As<State>(g, id);
      if (!in_step && !recomputed) return sim_.Cell(rank_, id, index);
      if (As<AllGather>(g, id)) return sim_.Cell(rank_, id, index);
      if (As<AllReduce>(g, id) || As<ReduceScatter>(g, id)) return sim_.Reduced(id, index);
      std::vector<double> args;
      const auto& inputs = g.nodes[id].inputs;
      for (NodeId input : inputs) {
        args.push_back(Of(input, MapIndex(index, sim_.types_[id].shape, sim_.types_[input].shape)));
      }
      if (const auto* pointwise = As<Pointwise>(g, id)) {
        return EvalPointwise(pointwise->fn, sim_.types_[inputs.back()].dtype, args.data());
      }
      return args[0];  // a cast: the simulator does not round
    }

    Simulation& sim_;
    const int rank_;
    std::vector<bool> known_;
    std::vector<double> values_;
  };

  struct Task {
    bool on_slices;
    int rank;
    int64_t index;
  };

  void RunKernel(const std::vector<NodeId>& nodes) {
    const KernelPhases phases = PhasesOf(g_, types_, nodes);
    std::vector<NodeId> sliced = phases.slice_stores;
    sliced.insert(sliced.end(), phases.gathers.begin(), phases.gathers.end());
    const bool waits = std::any_of(phases.on_whole.begin(), phases.on_whole.end(),
                                   [&](NodeId id) { return As<AllGather>(g_, id) != nullptr; });
    std::vector<Task> tasks;
    const int64_t elements = NumElements(types_[nodes[0]].shape);
    for (int64_t i = 0; i < elements; ++i) {
      if (!sliced.empty()) {
        const NodeId first = As<AllGather>(g_, sliced[0]) ? g_.nodes[sliced[0]].inputs[0] : sliced[0];
        tasks.push_back({true, OwnerOf(i, types_[first], ranks_), i});
      }
      for (int rank = 0; rank < ranks_ && !phases.whole_stores.empty(); ++rank) tasks.push_back({false, rank, i});
    }
    std::shuffle(tasks.begin(), tasks.end(), random_);
    std::vector<bool> arrived(elements, sliced.empty());
    std::vector<Task> waiting;
    for (const Task& task : tasks) {
      if (task.on_slices) {
        Store(task, phases.slice_stores, phases.gathers);
        arrived[task.index] = true;
      } else if (waits && !arrived[task.index]) {
        waiting.push_back(task);
      } else {
        Store(task, phases.whole_stores, {});
      }
    }
    for (const Task& task : waiting) Store(task, phases.whole_stores, {});
  }

  /// All loads of an element, then all its stores.
  void Store(const Task& task, const std::vector<NodeId>& stores, const std::vector<NodeId>& gathers) {
    Element element(this, task.rank);
    std::vector<std::pair<double*, double>> writes;
    for (NodeId id : stores) {
      const bool is_value = !As<Update>(g_, id) && !As<Output>(g_, id);
      double* cell = is_value ? &Cell(task.rank, id, task.index) : &memory_[task.rank][Target(id)][task.index];
      writes.emplace_back(cell, element.Of(is_value ? id : g_.nodes[id].inputs.back(), task.index));
    }
    for (NodeId id : gathers) {
      const double value = element.Of(g_.nodes[id].inputs[0], task.index);
      for (int rank = 0; rank < ranks_; ++rank) {
        for (NodeId target : PushTargets(id)) writes.emplace_back(&memory_[rank][target][task.index], value);
      }
    }
    for (const auto& [cell, value] : writes) *cell = value;
  }

  const Schedule& s_;
  const Graph& g_;
  const int ranks_;
  std::mt19937_64 random_;
  const std::vector<NodeId> values_;
  std::vector<TensorType> types_;
  std::vector<std::vector<std::vector<double>>> memory_;  // by rank, node, element
  Steps steps_;
  int step_ = -1;              // that runs
  std::vector<NodeId> homes_;  // by value: the node in whose memory it is kept
};

}  // namespace

std::map<std::string, std::vector<std::vector<double>>> Simulate(const Schedule& schedule, int ranks,
                                                                 const ElementSource& source, uint64_t seed) {
  Simulation simulation(schedule, ranks, source, seed);
  simulation.Run();
  return simulation.Results();
}

}  // namespace coconet
