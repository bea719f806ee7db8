#include "autotune/runner/launch_programs.h"

#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/ir/op_table.h"
#include "jit/launches/rows_in_use.h"

namespace coconet {
namespace {

/// The steps of a launch, with buffers numbered in the order in which they are met.
std::string KindOf(const Plan& plan, int begin, int end) {
  Plan steps = StepsOf(plan, begin, end);
  std::map<int, int> numbers;
  std::vector<Buffer> buffers;
  for (Step& step : steps.steps) {
    ForBuffers(step, [&](int& buffer) {
      const auto [at, is_new] = numbers.try_emplace(buffer, static_cast<int>(numbers.size()));
      if (is_new) {
        buffers.push_back(plan.buffers[buffer]);
        buffers.back().name = absl::StrCat("b", at->second);
      }
      buffer = at->second;
    });
  }
  steps.buffers = std::move(buffers);
  return Print(steps);
}

std::string LabelOf(const Plan& plan, int begin, int end) {
  std::vector<std::string> labels;
  for (int step = begin; step < end; ++step) {
    std::visit(
        [&](const auto& any) {
          if (!absl::c_linear_search(labels, any.label)) labels.push_back(any.label);
        },
        plan.steps[step]);
  }
  return absl::StrJoin(labels, "; ");
}

/// A name with which no name of the program begins.
std::string PrefixFor(const Graph& graph) {
  std::string prefix = "v";
  const auto is_taken = [&](const Node& node) {
    const std::string* name = DeclaredName(node.op);
    return name != nullptr && absl::StartsWith(*name, prefix);
  };
  while (absl::c_any_of(graph.nodes, is_taken)) prefix += "_";
  return prefix;
}

/// Cuts the programs of launches out of that of the step.
class Cutter {
 public:
  explicit Cutter(const TypedGraph& program)
      : program_(program), rows_(FindRowsInUse(program)), prefix_(PrefixFor(program.graph())) {}

  void Cut(const PlacedLaunch& launch, const Plan& plan, LaunchProgram& cut) const {
    const auto tensor = [&](NodeId id, int buffer) {
      return PlacedTensor{absl::StrCat(prefix_, id), plan.buffers[buffer].role, TypeOf(id), buffer,
                          false};
    };
    std::map<NodeId, NodeId> copies;  // by node: its value in the program that is cut
    cut.program.name = program_.graph().name;
    const auto copy_of = [&](NodeId id) {
      Node node = program_.graph().nodes[id];
      const NodeId value = program_.value(id);
      if (DeclaredType(node.op) != nullptr)
        return cut.program.Add(Input{*DeclaredName(node.op), TypeOf(id)});
      if (IsRead(launch, value)) {
        if (const auto copy = copies.find(value); copy != copies.end()) return copy->second;
        cut.reads.push_back(tensor(value, launch.reads.at(value)));
        return copies[value] = cut.program.Add(Input{cut.reads.back().name, TypeOf(value)});
      }
      if (StoresOperand(id)) return copies.at(Stored(id));
      for (NodeId& input : node.inputs) input = copies.at(input);
      return cut.program.Add(std::move(node.op), std::move(node.inputs));
    };
    for (const NodeId id : NeededBy(launch)) copies[id] = copy_of(id);
    for (const auto& [id, buffer] : launch.writes) {
      if (!IsChecked(id)) continue;
      LaunchResult& result =
          cut.writes.emplace_back(LaunchResult{tensor(id, buffer), "", RowsOf(id).dim});
      // What is read has the same name where it is written.
      result.tensor.name += "_";
      cut.program.Add(Output{result.tensor.name}, {copies.at(id)});
      if (RowsOf(id).all()) continue;
      result.rows = absl::StrCat(result.tensor.name, "rows");
      cut.program.Add(Output{result.rows}, {copies.at(RowsOf(id).counts)});
    }
  }

 private:
  TensorType TypeOf(NodeId id) const {
    TensorType type = program_.type(id);
    if (type.layout.kind == Layout::Kind::kAuto) type.layout = Layout::Replicated();
    return type;
  }
  bool StoresOperand(NodeId id) const {
    return RoleOf(program_.graph().nodes[id].op) == Role::kStore;
  }
  NodeId Stored(NodeId id) const { return program_.graph().nodes[id].inputs.back(); }
  /// Its value is in memory as its type says.
  bool IsChecked(NodeId id) const { return !program_.type(id).layout.by_place(); }
  const RowsInUse& RowsOf(NodeId id) const { return rows_[program_.value(id)]; }
  bool IsRead(const PlacedLaunch& launch, NodeId value) const {
    return launch.reads.contains(value) && IsChecked(value);
  }

  /// The nodes that the launch's results are computed from, down to what it reads. Ascending.
  std::set<NodeId> NeededBy(const PlacedLaunch& launch) const {
    std::set<NodeId> needed;
    std::vector<NodeId> pending;
    for (const auto& [id, buffer] : launch.writes) {
      if (!IsChecked(id)) continue;
      pending.push_back(id);
      if (!RowsOf(id).all()) pending.push_back(RowsOf(id).counts);
    }
    while (!pending.empty()) {
      const NodeId id = pending.back();
      pending.pop_back();
      const Node& node = program_.graph().nodes[id];
      if (!needed.insert(id).second || IsRead(launch, program_.value(id))) continue;
      if (StoresOperand(id)) {
        pending.push_back(Stored(id));
      } else {
        pending.insert(pending.end(), node.inputs.begin(), node.inputs.end());
      }
    }
    return needed;
  }

  const TypedGraph& program_;
  const std::vector<RowsInUse> rows_;
  const std::string prefix_;
};

}  // namespace

std::vector<LaunchProgram> LaunchPrograms(const TypedGraph& program, const Lowered& lowered) {
  const Plan& plan = lowered.plan;
  const Cutter cutter(program);
  std::vector<LaunchProgram> programs;
  for (const PlacedLaunch& launch : lowered.launches) {
    LaunchProgram& cut = programs.emplace_back();
    cut.begin = launch.begin;
    cut.end = launch.end;
    cut.label = LabelOf(plan, launch.begin, launch.end);
    cut.kind = KindOf(plan, launch.begin, launch.end);
    cutter.Cut(launch, plan, cut);
  }
  return programs;
}

}  // namespace coconet
