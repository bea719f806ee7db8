#include "coconet/testing/simulator.h"

#include <algorithm>
#include <random>
#include <utility>

#include "coconet/base/status.h"
#include "coconet/schedule/kernel_phases.h"
#include "coconet/schedule/prologue.h"
#include "coconet/testing/kernel_values.h"
#include "coconet/testing/lone_operation.h"
#include "coconet/testing/reductions.h"

namespace coconet {
namespace {

class Simulation {
 public:
  Simulation(const Schedule& s, int ranks, int nodes, int stages, const ElementSource& source,
             uint64_t seed)
      : s_(s),
        g_(s.graph()),
        types_(s.types()),
        ranks_(s, ranks, nodes, stages, source),
        random_(seed) {}

  void Run() {
    CC_CHECK(s_.order().size() == s_.launches().list.size());
    for (int launch : s_.order()) {
      const std::vector<NodeId>& nodes = s_.launches()[launch].nodes;
      if (IsLone(s_.program(), nodes)) {
        RunLone(nodes[0]);
      } else {
        kernel_ = {.launch = launch};
        RunKernel(nodes);
      }
    }
  }

  std::map<std::string, std::vector<std::vector<Number>>> Results() const {
    std::map<std::string, std::vector<std::vector<Number>>> results;
    for (NodeId id = 0; id < g_.size(); ++id) {
      const auto* output = As<Output>(g_, id);
      if (output == nullptr && !As<Update>(g_, id)) continue;
      const std::string name =
          output != nullptr ? output->name : As<State>(g_, ranks_.HomeOf(id))->name;
      for (int rank = 0; rank < ranks_.world(); ++rank)
        results[name].push_back(ranks_.Stored(rank, id));
    }
    return results;
  }

 private:
  /// A push goes into the memory of every update that assigns it in the same step.
  std::vector<NodeId> PushTargets(NodeId gather) const {
    std::vector<NodeId> targets;
    for (NodeId id = 0; id < g_.size(); ++id) {
      const bool assigns = As<Update>(g_, id) && s_.program().value(id) == gather &&
                           ranks_.LaunchOf(id) == ranks_.LaunchOf(gather);
      if (assigns) targets.push_back(ranks_.HomeOf(id));
    }
    if (targets.empty()) targets.push_back(gather);
    return targets;
  }

  void RunLone(NodeId id) {
    for (int rank = 0; rank < ranks_.world(); ++rank) {
      for (int64_t i = 0; i < NumElements(types_[id].shape); ++i) {
        if (ranks_.Owns(rank, i, types_[id]))
          ranks_.Cell(rank, id, i) = LoneElement(ranks_, id, rank, i);
      }
    }
  }

  /// A row of a kernel's elements, or one element, in one phase on one rank.
  struct Task {
    const KernelPhase* phase;
    int rank;
    int64_t row;
  };

  void RunKernel(const std::vector<NodeId>& nodes) {
    for (NodeId product : PrologueOf(s_.program(), nodes)) {
      RunLone(product);
      kernel_.stored.insert(product);
    }
    const KernelPhases phases = PhasesOf(s_.program(), nodes);
    const IterationSpace space = SpaceOf(s_.program(), nodes);
    row_length_ = 1;
    for (size_t d = space.shape.size() - space.row_dims; d < space.shape.size(); ++d)
      row_length_ *= space.shape[d].size;
    rows_ = NumElements(space.rows());
    reached_ = ranks_.of_stage();
    for (NodeId id : nodes) {
      if (SpanOf(g_.nodes[id].op) == Span::kNode) reached_ = ranks_.of_node();
    }
    std::vector<Task> tasks;
    for (size_t p = 0; p < phases.phases.size(); ++p) {
      const KernelPhase& phase = phases.phases[p];
      AddTasks(phase, tasks);
      if (phase.folds.empty() && p + 1 < phases.phases.size()) continue;
      RunTasks(tasks);
      tasks.clear();
      FinishFolds(nodes, phase);
      for (const auto& [id, stored] : phases.stored_in) {
        if (stored <= static_cast<int>(p)) kernel_.stored.insert(id);
      }
    }
    for (NodeId id : phases.scalars) {
      for (int rank = 0; rank < ranks_.world(); ++rank)
        ranks_.Cell(rank, id, 0) = KernelValues(ranks_, kernel_, rank).Of(id, 0);
    }
  }

  void AddTasks(const KernelPhase& phase, std::vector<Task>& tasks) {
    NodeId cut = -1;  // a sliced value of the phase
    for (NodeId id : phase.stores) cut = types_[id].layout.sliced() ? id : cut;
    for (NodeId id : phase.gathers) cut = g_.nodes[id].inputs[0];
    for (NodeId id : phase.exchanges) cut = g_.nodes[id].inputs[0];
    for (NodeId id : phase.sends) cut = types_[id].layout.sliced() ? id : cut;
    for (NodeId id : phase.folds)
      cut = types_[g_.nodes[id].inputs[0]].layout.sliced() ? g_.nodes[id].inputs[0] : cut;
    for (int64_t row = 0; row < rows_; ++row) {
      for (int rank = 0; rank < ranks_.world(); ++rank) {
        // A row's values are cut as the row is.
        const bool of_rows = cut >= 0 && NumElements(types_[cut].shape) == rows_;
        if (phase.on_slices && !ranks_.Owns(rank, of_rows ? row : row * row_length_, types_[cut]))
          continue;
        tasks.push_back({&phase, rank, row});
      }
    }
  }

  void RunTasks(std::vector<Task>& tasks) {
    std::shuffle(tasks.begin(), tasks.end(), random_);
    // Tasks on slices, by stage (or node) and row, that have not run.
    std::vector<int> missing(rows_ * (ranks_.world() / reached_));
    for (const Task& task : tasks)
      missing[task.rank / reached_ * rows_ + task.row] += Pushes(*task.phase);
    std::vector<Task> waiting;
    for (const Task& task : tasks) {
      int& left = missing[task.rank / reached_ * rows_ + task.row];
      const auto& evaluated = task.phase->evaluated;
      const bool waits =
          !Pushes(*task.phase) && std::any_of(evaluated.begin(), evaluated.end(), [&](NodeId id) {
            return As<AllGather>(g_, id) || (task.phase->arriving && As<AllToAll>(g_, id));
          });
      if (waits && left > 0) {
        waiting.push_back(task);
        continue;
      }
      RunTask(task);
      left -= Pushes(*task.phase);
    }
    for (const Task& task : waiting) RunTask(task);
  }

  /// Runs on slices from which elements may go to other ranks.
  static bool Pushes(const KernelPhase& phase) { return phase.on_slices && !phase.arriving; }

  /// All loads of a row, then all its stores.
  void RunTask(const Task& task) {
    KernelValues values(ranks_, kernel_, task.rank);
    std::vector<std::pair<Number*, Number>> writes;
    const int64_t begin = task.row * row_length_;
    for (NodeId id : task.phase->stores) {
      const bool of_rows = row_length_ != 1 && NumElements(types_[id].shape) == rows_;
      for (int64_t at = of_rows ? task.row : begin;
           at < (of_rows ? task.row + 1 : begin + row_length_); ++at) {
        writes.emplace_back(&ranks_.Cell(task.rank, id, at), values.Of(id, at));
      }
    }
    for (int64_t i = begin; i < begin + row_length_; ++i) {
      for (NodeId id : task.phase->gathers) {
        const Number value = values.Of(g_.nodes[id].inputs[0], i);
        const int first = task.rank - task.rank % reached_;
        for (int rank = first; rank < first + reached_; ++rank) {
          for (NodeId target : PushTargets(id))
            writes.emplace_back(&ranks_.At(rank, target, i), value);
        }
      }
      for (NodeId id : task.phase->exchanges) {
        const Number value = values.Of(g_.nodes[id].inputs[0], i);
        const int owner =
            ranks_.FirstOfStage(task.rank) + OwnerOf(i, types_[id], ranks_.of_stage());
        for (NodeId home : HomesOf(id)) writes.emplace_back(&ranks_.At(owner, home, i), value);
      }
      for (NodeId id : task.phase->sends)
        Push(task.rank, id, i, values.Of(g_.nodes[id].inputs[0], i), writes);
      for (NodeId id : task.phase->folds) {
        const auto [sum, is_new] =
            sums_.try_emplace({task.rank, id}, FirstOf(As<Fold>(g_, id)->kind, types_[id].dtype));
        sum->second = Combined(AcrossRanks(As<Fold>(g_, id)->kind), types_[id].dtype, sum->second,
                               values.Of(g_.nodes[id].inputs[0], i));
      }
    }
    for (const auto& [cell, value] : writes) *cell = value;
  }

  /// Where what the kernel sends or exchanges is kept: its own memory, and that of its stores.
  std::vector<NodeId> HomesOf(NodeId push) const {
    std::vector<NodeId> homes = {ranks_.HomeOf(push)};
    for (NodeId id = push; id < g_.size(); ++id) {
      const bool stores =
          (As<Update>(g_, id) || As<Output>(g_, id)) && ranks_.LaunchOf(id) == kernel_.launch;
      if (stores && s_.program().value(g_.nodes[id].inputs.back()) == push)
        homes.push_back(ranks_.HomeOf(id));
    }
    return homes;
  }

  /// Element `i` of what a kernel sends; where nothing comes from another stage, zero.
  void Push(int rank, NodeId send, int64_t i, const Number& value,
            std::vector<std::pair<Number*, Number>>& writes) {
    const int shift = As<Send>(g_, send)->shift * ranks_.of_stage(), to = rank + shift,
              from = rank - shift;
    for (NodeId home : HomesOf(send)) {
      if (to >= 0 && to < ranks_.world()) writes.emplace_back(&ranks_.At(to, home, i), value);
      if (from < 0 || from >= ranks_.world())
        writes.emplace_back(&ranks_.At(rank, home, i), Whole(types_[send].dtype, 0));
    }
  }

  /// All ranks have what the phase's folds add up to, and what AllReduces of the kernel make of it.
  void FinishFolds(const std::vector<NodeId>& nodes, const KernelPhase& phase) {
    for (NodeId id : phase.folds) {
      const auto* fold = As<Fold>(g_, id);
      for (int rank = 0; rank < ranks_.world(); ++rank) {
        const auto at = sums_.find({rank, id});
        kernel_.scalars[{rank, id}] = ranks_.Finished(
            *fold, id, at != sums_.end() ? at->second : FirstOf(fold->kind, types_[id].dtype));
      }
      for (NodeId sum : nodes) {
        const auto* all_reduce = As<AllReduce>(g_, sum);
        if (all_reduce == nullptr || FoldBelow(s_.program(), sum) != id) continue;
        for (int rank = 0; rank < ranks_.world(); ++rank) {
          const int first = ranks_.FirstOfStage(rank);
          Number result = kernel_.scalars[{first, id}];
          for (int r = first + 1; r < first + ranks_.of_stage(); ++r)
            result =
                Combined(all_reduce->kind, types_[sum].dtype, result, kernel_.scalars[{r, id}]);
          kernel_.scalars[{rank, sum}] = result;
        }
      }
    }
    sums_.clear();
  }

  const Schedule& s_;
  const Graph& g_;
  const std::vector<TensorType>& types_;
  SimulatedRanks ranks_;
  std::mt19937_64 random_;
  RunningKernel kernel_;
  int64_t row_length_ = 1, rows_ = 0;              // of the kernel that runs
  int reached_ = 1;                                // ranks that gather from each other in it
  std::map<std::pair<int, NodeId>, Number> sums_;  // by rank: of its folds that are not complete
};

}  // namespace

std::map<std::string, std::vector<std::vector<Number>>> Simulate(const Schedule& schedule,
                                                                 int ranks,
                                                                 const ElementSource& source,
                                                                 uint64_t seed, int stages,
                                                                 int nodes) {
  Simulation simulation(schedule, ranks, nodes, stages, source, seed);
  simulation.Run();
  return simulation.Results();
}

}  // namespace coconet
