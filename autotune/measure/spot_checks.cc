#include "autotune/measure/spot_checks.h"

#include <algorithm>
#include <random>
#include <vector>

#include "coconet/ir/lists.h"

namespace coconet {
namespace {

/// Number of elements that the interpreter sums within seconds.
constexpr int64_t kSmall = int64_t{1} << 24;

int64_t ElementsOf(const SizeLists& lists) {
  int64_t most = 0;
  for (const auto& [symbol, sizes] : lists) {
    int64_t all = 0;
    for (const int64_t size : sizes) all += size;
    most = std::max(most, all);
  }
  return most;
}

/// Results that exist once per tensor and sum over its elements, but not over other tensors.
std::vector<std::string> SummingResults(const Graph& g) {
  const std::vector<bool> each = EachNodes(g);
  std::vector<bool> sums(g.size()), totals(g.size());
  std::vector<std::string> names;
  for (NodeId id = 0; id < g.size(); ++id) {
    const Node& node = g.nodes[id];
    const auto* output = std::get_if<Output>(&node.op);
    const bool updates = std::holds_alternative<Update>(node.op);
    sums[id] = std::holds_alternative<Fold>(node.op);
    totals[id] = std::holds_alternative<Total>(node.op);
    for (const NodeId input : node.inputs) {
      sums[id] = sums[id] || sums[input];
      totals[id] = totals[id] || totals[input];
    }
    if ((output == nullptr && !updates) || !each[node.inputs[0]] || !sums[id] || totals[id])
      continue;
    names.push_back(updates ? std::get<State>(g.nodes[node.inputs[0]].op).name : output->name);
  }
  return names;
}

}  // namespace

std::set<std::string> NotSpotChecked(const Graph& program, uint64_t seed) {
  std::set<std::string> names;
  if (TensorCount(program) == 0 || ElementsOf(program.lists) <= kSmall) return names;
  const TensorKinds kinds = KindsOf(program);
  std::vector<int> left = kinds.count;  // per kind: tensors before the one that is checked
  std::mt19937_64 random(seed);
  for (int& count : left) count = static_cast<int>(random() % static_cast<uint64_t>(count));
  const std::vector<std::string> results = SummingResults(program);
  for (size_t tensor = 0; tensor < kinds.of.size(); ++tensor) {
    if (left[kinds.of[tensor]]-- == 0) continue;
    for (const std::string& name : results)
      names.insert(TensorName(name, static_cast<int>(tensor)));
  }
  return names;
}

}  // namespace coconet
