#include "autotune/planning/plan_graph.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/ir/op_table.h"

namespace coconet {
namespace {

/// Numbers of texts, in the order of their first use.
class Numbers {
 public:
  int Of(std::string text) {
    return numbers_.try_emplace(std::move(text), static_cast<int>(numbers_.size())).first->second;
  }

 private:
  absl::flat_hash_map<std::string, int> numbers_;
};

/// The operation without the names of declarations, and its type.
std::string ClassText(const TypedGraph& program, NodeId id) {
  const Op& op = program.op(id);
  const std::string type = Text(program.type(id));
  if (DeclaredName(op) != nullptr) return absl::StrCat(RowOf(op).spelling.name, " ", type);
  return absl::StrCat(OpText(op, std::vector<std::string>(program.inputs(id).size())), " ", type);
}

}  // namespace

absl::StatusOr<PlanGraph> PlanGraph::Of(Schedule schedule, const Target& target,
                                        const CostModel& model) {
  if (!schedule.kernels().empty() || !schedule.overlaps().empty())
    return absl::InvalidArgumentError(absl::StrCat(
        "plan ", NameForMessages(schedule.graph()),
        ": want a schedule without kernels and overlaps, have ", schedule.kernels().size(), " and ",
        schedule.overlaps().size(), "; plan before they are made"));
  PlanGraph graph(std::move(schedule), target, model);
  graph.FindClasses();
  graph.FindItems();
  graph.FindAlike();
  return graph;
}

void PlanGraph::FindClasses() {
  Numbers numbers;
  const TypedGraph& program = schedule_.program();
  for (NodeId id = 0; id < program.size(); ++id)
    classes_.push_back(numbers.Of(ClassText(program, id)));
  place_.resize(program.size());
  stamp_.resize(program.size());
}

void PlanGraph::FindItems() {
  const TypedGraph& program = schedule_.program();
  Numbers buckets;
  before_.resize(size());
  bucket_.resize(size());
  works_.resize(size());
  for (int item = 0; item < size(); ++item) {
    const Launch& launch = (*this)[item];
    for (int before : launch.after) before_[before].push_back(item);
    const NodeId id = launch.nodes[0];
    collective_.push_back(Communicates(program.graph(), id));
    const bool is_computed = JoinsKernels(program.graph(), id) && !program.type(id).shape.empty();
    joins_.push_back(!IsCollective(item) && (is_computed || As<Fold>(program.graph(), id)));
    if (!IsCollective(item)) continue;
    works_[item] = WorkOf(program, launch.nodes, target_);
    // One call does AllReduces of whatever shapes (Bucket), and one collective of another kind.
    const TensorType& type = program.type(program.inputs(id)[0]);
    const std::vector<std::string> no_operands(program.inputs(id).size());
    bucket_[item] =
        buckets.Of(As<AllReduce>(program.graph(), id) != nullptr
                       ? absl::StrCat(OpText(program.op(id), no_operands), " ", Name(type.dtype))
                       : absl::StrCat(item));
  }
  for (const Launch& launch : schedule_.launches().list) {
    waits_.push_back(
        absl::c_any_of(launch.after, [&](int before) { return IsCollective(before); }));
  }
}

void PlanGraph::FindAlike() {
  // Refinement of colours by those of neighbours (Weisfeiler and Leman, 1968): layers in the middle
  // of a model look alike from a few steps away.
  constexpr int kSteps = 3;
  std::vector<size_t> colours;
  for (int item = 0; item < size(); ++item) {
    std::vector<int> classes;
    for (NodeId id : (*this)[item].nodes) classes.push_back(classes_[id]);
    colours.push_back(absl::HashOf(classes));
  }
  for (int step = 0; step < kSteps; ++step) {
    std::vector<size_t> refined;
    for (int item = 0; item < size(); ++item) {
      std::vector<size_t> after, before;
      for (int other : (*this)[item].after) after.push_back(colours[other]);
      for (int other : before_[item]) before.push_back(colours[other]);
      absl::c_sort(after);
      absl::c_sort(before);
      refined.push_back(absl::HashOf(colours[item], after, before));
    }
    colours = std::move(refined);
  }
  absl::flat_hash_map<size_t, int> numbers;
  for (size_t colour : colours)
    alike_.push_back(numbers.try_emplace(colour, static_cast<int>(numbers.size())).first->second);
}

std::vector<NodeId> PlanGraph::NodesOf(absl::Span<const int> items) const {
  std::vector<NodeId> nodes;
  for (int item : items) {
    const std::vector<NodeId>& own = (*this)[item].nodes;
    nodes.insert(nodes.end(), own.begin(), own.end());
  }
  absl::c_sort(nodes);
  return nodes;
}

const std::vector<int>& PlanGraph::KeyOf(const std::vector<NodeId>& nodes) const {
  const TypedGraph& program = schedule_.program();
  ++asked_;
  int inside = 0, outside = 0;
  for (NodeId id : nodes) {
    stamp_[id] = asked_;
    place_[id] = inside++;
  }
  key_.clear();
  for (NodeId id : nodes) {
    key_.push_back(classes_[id]);
    for (NodeId operand : program.inputs(id)) {
      if (stamp_[operand] != asked_) {
        stamp_[operand] = asked_;
        place_[operand] = -1 - outside++;
        key_.push_back(-1 - classes_[operand]);
      }
      key_.push_back(place_[operand]);
    }
    // Whether others take the value, and whether one of these stores it.
    bool taken = false, stored = false;
    for (NodeId user : program.users()[id]) {
      if (stamp_[user] == asked_ && place_[user] >= 0) continue;
      taken = true;
      stored |= As<Update>(program.graph(), user) && program.inputs(user)[1] == id;
    }
    key_.push_back((taken ? 1 : 0) + (stored ? 2 : 0));
  }
  return key_;
}

double PlanGraph::UsOf(absl::Span<const int> items) const {
  if (IsCollective(items[0])) {
    Work work = works_[items[0]];
    for (int item : items.subspan(1)) {
      work.bytes += works_[item].bytes;
      work.tensors += works_[item].tensors;
    }
    return model_->Us(work);
  }
  const std::vector<NodeId> nodes = NodesOf(items);
  Facts& facts = FactsOf(nodes);
  if (facts.us < 0) facts.us = model_->Us(WorkOf(schedule_.program(), nodes, target_));
  return facts.us;
}

bool PlanGraph::Fits(absl::Span<const int> items) const {
  if (items.size() == 1) return true;
  if (absl::c_any_of(items, [&](int item) { return !Joins(item); })) return false;
  const std::vector<NodeId> nodes = NodesOf(items);
  if (nodes.size() > kMostInKernel) return false;
  Facts& facts = FactsOf(nodes);
  if (facts.fits < 0) facts.fits = CheckFuse(schedule_.program(), Fuse{nodes}).ok();
  return facts.fits > 0;
}

}  // namespace coconet
