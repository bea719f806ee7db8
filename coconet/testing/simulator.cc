#include "coconet/testing/simulator.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "absl/base/casts.h"
#include "coconet/base/philox.h"
#include "coconet/base/status.h"
#include "coconet/ir/operand_index.h"
#include "coconet/schedule/kernel_phases.h"
#include "coconet/testing/reductions.h"
#include "coconet/testing/simulated_memory.h"

namespace coconet {
namespace {

class Simulation {
 public:
  Simulation(const Schedule& s, int ranks, int nodes, int stages, const ElementSource& source,
             uint64_t seed)
      : s_(s),
        g_(s.graph()),
        types_(s.types()),
        ranks_(ranks),
        of_node_(ranks / nodes),
        random_(seed),
        values_(s.program().values()),
        launches_(s.launches()),
        memory_(s.program(), ranks, nodes, stages, source),
        world_(memory_.world()) {}

  void Run() {
    FindHomes();
    CC_CHECK(s_.order().size() == launches_.list.size());
    for (int launch : s_.order()) {
      launch_ = launch;
      const std::vector<NodeId>& nodes = launches_[launch].nodes;
      const bool alone = nodes.size() == 1 && (Communicates(g_, nodes[0]) ||
                                               As<MatMul>(g_, nodes[0]) || As<Fold>(g_, nodes[0]));
      for (int rank = 0; alone && rank < world_; ++rank) RunAlone(nodes[0], rank);
      if (!alone) RunKernel(nodes);
    }
  }

  std::map<std::string, std::vector<std::vector<double>>> Results() const {
    std::map<std::string, std::vector<std::vector<double>>> results;
    for (NodeId id = 0; id < g_.size(); ++id) {
      const auto* output = As<Output>(g_, id);
      if (output == nullptr && !As<Update>(g_, id)) continue;
      const NodeId home = Target(id);
      const std::string name = output != nullptr ? output->name : As<State>(g_, home)->name;
      for (int rank = 0; rank < world_; ++rank)
        results[name].push_back(memory_.Whole(rank, home, types_[id]));
    }
    return results;
  }

 private:
  int FirstOfStage(int rank) const { return memory_.FirstOfStage(rank); }
  bool Owns(int rank, int64_t index, const TensorType& type) const {
    return memory_.Owns(rank, index, type);
  }

  /// Where an update or output stores.
  NodeId Target(NodeId store) const {
    return As<Update>(g_, store) ? g_.nodes[store].inputs[0] : store;
  }

  /// A value that an update of its own step keeps needs no memory beside the state's.
  void FindHomes() {
    homes_ = values_;
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (!As<Update>(g_, id) || launches_.of[values_[id]] != launches_.of[id]) continue;
      homes_[values_[id]] = Target(id);
    }
  }

  /// A push goes into the memory of every update that assigns it in the same step.
  std::vector<NodeId> PushTargets(NodeId gather) const {
    std::vector<NodeId> targets;
    for (NodeId id = 0; id < g_.size(); ++id) {
      const bool assigns =
          As<Update>(g_, id) && values_[id] == gather && launches_.of[id] == launches_.of[gather];
      if (assigns) targets.push_back(Target(id));
    }
    if (targets.empty()) targets.push_back(gather);
    return targets;
  }

  double& Cell(int rank, NodeId value, int64_t index) {
    return memory_.At(rank, homes_[value], index);
  }

  double Reduced(ReduceKind kind, NodeId reduction, int rank, int64_t index) {
    const NodeId operand = values_[g_.nodes[reduction].inputs[0]];
    const Members members = MembersOf(SpanOf(g_.nodes[reduction].op), rank, ranks_, of_node_);
    double result = Cell(members.first, operand, index);
    for (int i = 1; i < members.count; ++i)
      result = Combined(kind, result, Cell(members.first + i * members.stride, operand, index));
    return result;
  }

  // ---- Launches of one operation ----------------------------------------------------------------

  void RunAlone(NodeId id, int rank) {
    for (int64_t i = 0; i < NumElements(types_[id].shape); ++i) {
      if (Owns(rank, i, types_[id])) Cell(rank, id, i) = Alone(id, rank, i);
    }
  }

  static double NotHere() { CC_CHECK(false); }

  double Alone(NodeId id, int rank, int64_t i) {
    const NodeId operand = values_[g_.nodes[id].inputs[0]];
    const int first = FirstOfStage(rank);
    return std::visit(Match{
                          [&](const AllReduce& o) { return Reduced(o.kind, id, rank, i); },
                          [&](const ReduceScatter& o) { return Reduced(o.kind, id, rank, i); },
                          [&](const AllGather& o) {
                            const int owner = OwnerOf(i, types_[operand], ranks_);
                            // Of a place's parts: the rank of this node at that place.
                            return Cell(o.span == Span::kNode
                                            ? rank - rank % of_node_ + owner % of_node_
                                            : first + owner,
                                        operand, i);
                          },
                          [&](const ReduceTo& o) {
                            return rank - first == o.root ? Reduced(o.kind, id, rank, i) : 0.0;
                          },
                          [&](const Broadcast& o) { return Cell(first + o.root, operand, i); },
                          [&](const Send& o) {
                            const int from = rank - o.shift * ranks_;
                            return from >= 0 && from < world_ ? Cell(from, operand, i) : 0.0;
                          },
                          [&](const MatMul& o) { return Product(o, id, rank, i); },
                          [&](const Fold& o) { return Folded(o, id, rank, i); },
                          [&](const AllToAll&) {
                            return Cell(first + OwnerOf(i, types_[operand], ranks_), operand, i);
                          },
                          // Kernels run all others (Run).
                          [](const Input&) { return NotHere(); },
                          [](const State&) { return NotHere(); },
                          [](const Const&) { return NotHere(); },
                          [](const WorldSize&) { return NotHere(); },
                          [](const Pointwise&) { return NotHere(); },
                          [](const Cast&) { return NotHere(); },
                          [](const Iota&) { return NotHere(); },
                          [](const Total&) { return NotHere(); },
                          [](const Dropout&) { return NotHere(); },
                          [](const StochasticRound&) { return NotHere(); },
                          [](const Transpose&) { return NotHere(); },
                          [](const Reshape&) { return NotHere(); },
                          [](const SubTensor&) { return NotHere(); },
                          [](const Gather&) { return NotHere(); },
                          [](const Shard&) { return NotHere(); },
                          [](const Update&) { return NotHere(); },
                          [](const Output&) { return NotHere(); },
                      },
                      g_.nodes[id].op);
  }

  double Product(const MatMul& op, NodeId id, int rank, int64_t i) {
    const NodeId a = values_[g_.nodes[id].inputs[0]], b = values_[g_.nodes[id].inputs[1]];
    const Shape &sa = types_[a].shape, &sb = types_[b].shape, &shape = types_[id].shape;
    const int64_t n = shape.back().size, m = shape[shape.size() - 2].size;
    const int64_t k_size = op.transpose_a ? sa[sa.size() - 2].size : sa.back().size;
    const int64_t matrix = i / (m * n);
    double sum = 0;
    for (int64_t k = 0; k < k_size; ++k) {
      const int64_t at_a = (sa.size() > 2 ? matrix * m * k_size : 0) +
                           (op.transpose_a ? k * m + i / n % m : i / n % m * k_size + k);
      const int64_t at_b = (sb.size() > 2 ? matrix * n * k_size : 0) +
                           (op.transpose_b ? i % n * k_size + k : k * n + i % n);
      const bool contracts_slices = types_[id].layout.kind == Layout::Kind::kLocal;
      if (contracts_slices && !(Owns(rank, at_a, types_[a]) && Owns(rank, at_b, types_[b])))
        continue;
      sum += Cell(rank, a, at_a) * Cell(rank, b, at_b);
    }
    return sum;
  }

  double Folded(const Fold& op, NodeId id, int rank, int64_t i) {
    const NodeId operand = values_[g_.nodes[id].inputs[0]];
    const Shape &from = types_[operand].shape, &to = types_[id].shape;
    double result = FirstOf(op.kind, types_[id].dtype);
    for (int64_t at = 0; at < NumElements(from); ++at) {
      const bool belongs = to.empty() || OperandMap(Pointwise{}, from, to).Of(at) == i;
      if (belongs && Owns(rank, at, types_[operand]))
        result = Combined(AcrossRanks(op.kind), result, Cell(rank, operand, at));
    }
    return Mean(op, id, result);
  }

  double Mean(const Fold& op, NodeId id, double sum) const {
    if (op.kind != FoldKind::kMean) return sum;
    const int64_t results = NumElements(types_[id].shape);
    return results == 0 ? 0
                        : sum / static_cast<double>(
                                    NumElements(types_[g_.nodes[id].inputs[0]].shape) / results);
  }

  // ---- Kernels ----------------------------------------------------------------------------------

  /// Values that a task needs, each computed once from what is in memory now.
  class Computation {
   public:
    Computation(Simulation* simulation, int rank) : sim_(*simulation), rank_(rank) {}

    double Of(NodeId id, int64_t index) {
      id = sim_.values_[id];
      const auto at = known_.find({id, index});
      if (at != known_.end()) return at->second;
      const double value = Compute(id, index);
      known_[{id, index}] = value;
      return value;
    }

   private:
    double Compute(NodeId id, int64_t index) {
      const Graph& g = sim_.g_;
      if (const auto* constant = As<Const>(g, id)) return constant->value;
      if (As<WorldSize>(g, id)) return sim_.ranks_;
      const bool in_step = sim_.launches_.of[id] == sim_.launch_;
      const bool recomputed = sim_.launches_.of[id] < 0 && !As<Input>(g, id) && !As<State>(g, id);
      if (const auto scalar = sim_.scalars_.find({rank_, id});
          in_step && scalar != sim_.scalars_.end())
        return scalar->second;
      if ((!in_step && !recomputed) || As<AllGather>(g, id) || sim_.stored_.contains(id))
        return sim_.Cell(rank_, id, index);
      if (const auto* ar = As<AllReduce>(g, id)) return sim_.Reduced(ar->kind, id, rank_, index);
      if (const auto* rs = As<ReduceScatter>(g, id))
        return sim_.Reduced(rs->kind, id, rank_, index);
      if (const auto* fold = As<Fold>(g, id)) return Row(*fold, id, index);
      return Arithmetic(id, index);
    }

    double Row(const Fold& fold, NodeId id, int64_t row) {
      const NodeId operand = g().nodes[id].inputs[0];
      const int64_t length = NumElements(sim_.types_[operand].shape) /
                             std::max<int64_t>(1, NumElements(sim_.types_[id].shape));
      double result = FirstOf(fold.kind, sim_.types_[id].dtype);
      for (int64_t i = row * length; i < (row + 1) * length; ++i)
        result = Combined(AcrossRanks(fold.kind), result, Of(operand, i));
      return sim_.Mean(fold, id, result);
    }

    /// An element of a table on this rank; 0 where it has none.
    double TakenFrom(const Gather& gather, NodeId id, int64_t index) {
      const NodeId table = sim_.values_[g().nodes[id].inputs[0]], indices = g().nodes[id].inputs[1];
      const TensorType& type = sim_.types_[table];
      const int64_t inner = SlicingOf(type.shape, gather.dim, 1).inner;
      const double row = Of(indices, index / inner % NumElements(sim_.types_[indices].shape));
      if (row < 0 || row >= type.shape[gather.dim].size) return 0;
      const int64_t element = OperandMap(gather, sim_.types_[id].shape, type.shape).Of(index) +
                              static_cast<int64_t>(row) * inner;
      return sim_.Owns(rank_, element, type) ? sim_.Cell(rank_, table, element) : 0;
    }

    double Arithmetic(NodeId id, int64_t index) {
      if (const auto* gather = As<Gather>(g(), id)) return TakenFrom(*gather, id, index);
      std::vector<double> args;
      const auto& inputs = g().nodes[id].inputs;
      for (NodeId input : inputs) {
        args.push_back(
            Of(input, OperandMap(g().nodes[id].op, sim_.types_[id].shape, sim_.types_[input].shape)
                          .Of(index)));
      }
      const auto word = [&](int64_t stream) {
        return RandomWord(index, stream, static_cast<int64_t>(args[1]));
      };
      return std::visit(
          Match{
              [&](const Pointwise& o) {
                return EvalPointwise(o.fn, sim_.types_[inputs.back()].dtype, args.data());
              },
              [&](const Cast& o) { return Converted(o.dtype, args[0]); },
              [&](const Iota& o) -> double {
                const Shape& shape = sim_.types_[id].shape;
                return index / SlicingOf(shape, o.dim, 1).inner % shape[o.dim].size;
              },
              [&](const Dropout& o) {
                return word(o.stream) >= DropoutThreshold(o.rate) ? args[0] / (1 - o.rate) : 0;
              },
              [&](const StochasticRound& o) -> double {
                return absl::bit_cast<float>(RoundedByWord(
                    absl::bit_cast<uint32_t>(static_cast<float>(args[0])), word(o.stream)));
              },
              [&](const Total&) { return args[0]; },
              [&](const Transpose&) { return args[0]; },
              [&](const Reshape&) { return args[0]; },
              [&](const SubTensor&) { return args[0]; },
              [&](const Shard&) { return args[0]; },
              [&](const Send&) { return args[0]; },
              [&](const Update&) { return args[0]; },
              [&](const Output&) { return args[0]; },
              [](const Gather&) { return NotHere(); },  // TakenFrom
              // Compute has these.
              [](const Input&) { return NotHere(); },
              [](const State&) { return NotHere(); },
              [](const Const&) { return NotHere(); },
              [](const WorldSize&) { return NotHere(); },
              [](const AllReduce&) { return NotHere(); },
              [](const ReduceScatter&) { return NotHere(); },
              [](const AllGather&) { return NotHere(); },
              [](const Fold&) { return NotHere(); },
              [](const MatMul&) { return NotHere(); },
              [](const Broadcast&) { return NotHere(); },
              [](const ReduceTo&) { return NotHere(); },
              [](const AllToAll&) { return NotHere(); },
          },
          g().nodes[id].op);
    }

    /// Floats are not rounded.
    static double Converted(DType dtype, double value) {
      if (IsFloat(dtype)) return value;
      alignas(8) char held[8];
      StoreElement(dtype, held, 0, value);
      return LoadElement(dtype, held, 0);
    }

    const Graph& g() const { return sim_.g_; }

    Simulation& sim_;
    const int rank_;
    std::map<std::pair<NodeId, int64_t>, double> known_;
  };

  /// A row of a kernel's elements, or one element, in one phase on one rank.
  struct Task {
    const KernelPhase* phase;
    int rank;
    int64_t row;
  };

  void RunKernel(const std::vector<NodeId>& nodes) {
    const KernelPhases phases = PhasesOf(s_.program(), nodes);
    const IterationSpace space = SpaceOf(s_.program(), nodes);
    row_length_ = 1;
    for (size_t d = space.shape.size() - space.row_dims; d < space.shape.size(); ++d)
      row_length_ *= space.shape[d].size;
    rows_ = NumElements(space.rows());
    scalars_.clear();
    stored_.clear();
    reached_ = ranks_;
    for (NodeId id : nodes) reached_ = SpanOf(g_.nodes[id].op) == Span::kNode ? of_node_ : reached_;
    std::vector<Task> tasks;
    for (size_t p = 0; p < phases.phases.size(); ++p) {
      const KernelPhase& phase = phases.phases[p];
      AddTasks(phase, tasks);
      if (phase.folds.empty() && p + 1 < phases.phases.size()) continue;
      RunTasks(tasks);
      tasks.clear();
      FinishFolds(nodes, phase);
      for (const auto& [id, stored] : phases.stored_in) {
        if (stored <= static_cast<int>(p)) stored_.insert(id);
      }
    }
    for (NodeId id : phases.scalars) {
      const bool is_value = !As<Update>(g_, id) && !As<Output>(g_, id);
      for (int rank = 0; rank < world_; ++rank) {
        const double value =
            Computation(this, rank).Of(is_value ? id : g_.nodes[id].inputs.back(), 0);
        (is_value ? Cell(rank, id, 0) : memory_.At(rank, Target(id), 0)) = value;
      }
    }
    stored_.clear();
  }

  void AddTasks(const KernelPhase& phase, std::vector<Task>& tasks) {
    NodeId cut = -1;  // a sliced value of the phase
    for (NodeId id : phase.stores) cut = types_[id].layout.sliced() ? id : cut;
    for (NodeId id : phase.gathers) cut = g_.nodes[id].inputs[0];
    for (NodeId id : phase.sends) cut = types_[id].layout.sliced() ? id : cut;
    for (NodeId id : phase.folds)
      cut = types_[g_.nodes[id].inputs[0]].layout.sliced() ? g_.nodes[id].inputs[0] : cut;
    for (int64_t row = 0; row < rows_; ++row) {
      for (int rank = 0; rank < world_; ++rank) {
        // A row's values are cut as the row is.
        const bool of_rows = cut >= 0 && NumElements(types_[cut].shape) == rows_;
        if (phase.on_slices && !Owns(rank, of_rows ? row : row * row_length_, types_[cut]))
          continue;
        tasks.push_back({&phase, rank, row});
      }
    }
  }

  void RunTasks(std::vector<Task>& tasks) {
    std::shuffle(tasks.begin(), tasks.end(), random_);
    std::vector<int> missing(
        rows_ *
        (world_ / reached_));  // tasks on slices, by stage (or node) and row, that have not run
    for (const Task& task : tasks)
      missing[task.rank / reached_ * rows_ + task.row] += task.phase->on_slices;
    std::vector<Task> waiting;
    for (const Task& task : tasks) {
      int& left = missing[task.rank / reached_ * rows_ + task.row];
      const auto& evaluated = task.phase->evaluated;
      const bool waits = !task.phase->on_slices &&
                         std::any_of(evaluated.begin(), evaluated.end(),
                                     [&](NodeId id) { return As<AllGather>(g_, id) != nullptr; });
      if (waits && left > 0) {
        waiting.push_back(task);
        continue;
      }
      RunTask(task);
      left -= task.phase->on_slices;
    }
    for (const Task& task : waiting) RunTask(task);
  }

  /// All loads of a row, then all its stores.
  void RunTask(const Task& task) {
    Computation computation(this, task.rank);
    std::vector<std::pair<double*, double>> writes;
    const int64_t begin = task.row * row_length_;
    for (NodeId id : task.phase->stores) {
      const bool is_value = !As<Update>(g_, id) && !As<Output>(g_, id);
      const bool of_rows = row_length_ != 1 && NumElements(types_[id].shape) == rows_;
      for (int64_t at = of_rows ? task.row : begin;
           at < (of_rows ? task.row + 1 : begin + row_length_); ++at) {
        double* cell = is_value ? &Cell(task.rank, id, at) : &memory_.At(task.rank, Target(id), at);
        writes.emplace_back(cell, computation.Of(is_value ? id : g_.nodes[id].inputs.back(), at));
      }
    }
    for (int64_t i = begin; i < begin + row_length_; ++i) {
      for (NodeId id : task.phase->gathers) {
        const double value = computation.Of(g_.nodes[id].inputs[0], i);
        const int first = task.rank - task.rank % reached_;
        for (int rank = first; rank < first + reached_; ++rank) {
          for (NodeId target : PushTargets(id))
            writes.emplace_back(&memory_.At(rank, target, i), value);
        }
      }
      for (NodeId id : task.phase->sends)
        Push(task.rank, id, i, computation.Of(g_.nodes[id].inputs[0], i), writes);
      for (NodeId id : task.phase->folds) {
        const auto [sum, is_new] =
            sums_.try_emplace({task.rank, id}, FirstOf(As<Fold>(g_, id)->kind, types_[id].dtype));
        sum->second = Combined(AcrossRanks(As<Fold>(g_, id)->kind), sum->second,
                               computation.Of(g_.nodes[id].inputs[0], i));
      }
    }
    for (const auto& [cell, value] : writes) *cell = value;
  }

  /// Element `i` of what a kernel sends; where nothing comes from another stage, zero.
  void Push(int rank, NodeId send, int64_t i, double value,
            std::vector<std::pair<double*, double>>& writes) {
    const int shift = As<Send>(g_, send)->shift * ranks_, to = rank + shift, from = rank - shift;
    std::vector<NodeId> homes = {homes_[send]};
    for (NodeId id = send; id < g_.size(); ++id) {
      const bool stores = (As<Update>(g_, id) || As<Output>(g_, id)) && launches_.of[id] == launch_;
      if (stores && values_[g_.nodes[id].inputs.back()] == send) homes.push_back(Target(id));
    }
    for (NodeId home : homes) {
      if (to >= 0 && to < world_) writes.emplace_back(&memory_.At(to, home, i), value);
      if (from < 0 || from >= world_) writes.emplace_back(&memory_.At(rank, home, i), 0);
    }
  }

  /// All ranks have what the phase's folds add up to, and what AllReduces of the kernel make of it.
  void FinishFolds(const std::vector<NodeId>& nodes, const KernelPhase& phase) {
    for (NodeId id : phase.folds) {
      const auto* fold = As<Fold>(g_, id);
      for (int rank = 0; rank < world_; ++rank) {
        const auto at = sums_.find({rank, id});
        scalars_[{rank, id}] =
            Mean(*fold, id, at != sums_.end() ? at->second : FirstOf(fold->kind, types_[id].dtype));
      }
      for (NodeId sum : nodes) {
        const auto* all_reduce = As<AllReduce>(g_, sum);
        if (all_reduce == nullptr || FoldBelow(s_.program(), sum) != id) continue;
        for (int rank = 0; rank < world_; ++rank) {
          const int first = FirstOfStage(rank);
          double result = scalars_[{first, id}];
          for (int r = first + 1; r < first + ranks_; ++r)
            result = Combined(all_reduce->kind, result, scalars_[{r, id}]);
          scalars_[{rank, sum}] = result;
        }
      }
    }
    sums_.clear();
  }

  const Schedule& s_;
  const Graph& g_;
  const std::vector<TensorType>& types_;
  const int ranks_, of_node_;
  std::mt19937_64 random_;
  const std::vector<NodeId>& values_;
  const Launches& launches_;
  SimulatedMemory memory_;
  const int world_;
  int launch_ = -1;                    // that runs
  std::vector<NodeId> homes_;          // by value: the node in whose memory it is kept
  int64_t row_length_ = 1, rows_ = 0;  // of the kernel that runs
  int reached_ = 1;                    // ranks that gather from each other in it
  std::map<std::pair<int, NodeId>, double> sums_,
      scalars_;              // by rank: of folds that are not complete; known ones
  std::set<NodeId> stored_;  // values that an earlier phase of the kernel stored
};

}  // namespace

std::map<std::string, std::vector<std::vector<double>>> Simulate(const Schedule& schedule,
                                                                 int ranks,
                                                                 const ElementSource& source,
                                                                 uint64_t seed, int stages,
                                                                 int nodes) {
  Simulation simulation(schedule, ranks, nodes, stages, source, seed);
  simulation.Run();
  return simulation.Results();
}

}  // namespace coconet
