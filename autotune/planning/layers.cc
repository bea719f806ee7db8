#include "autotune/planning/layers.h"

#include <algorithm>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace coconet {
namespace {

/// Numbers of layers in the order of their first declarations.
class Names {
 public:
  /// The number of the layer of a state; its moments ("l0.weight.m") are of its layer.
  int Of(const std::string& state) {
    std::string base = state;
    for (const std::string& other : states_) {
      if (absl::StartsWith(state, other + ".")) base = other;
    }
    states_.push_back(state);
    const std::string layer = base.substr(0, base.rfind('.'));
    const auto at = absl::c_find(layers_, layer);
    if (at != layers_.end()) return static_cast<int>(at - layers_.begin());
    layers_.push_back(layer);
    return static_cast<int>(layers_.size()) - 1;
  }
  const std::string& operator[](int layer) const { return layers_[layer]; }

 private:
  std::vector<std::string> states_, layers_;
};

}  // namespace

std::vector<std::string> LayersOf(const Graph& program) {
  constexpr int kNone = -1;
  Names names;
  std::vector<int> state(program.size(), kNone);  // the layer of a node that is a state
  for (NodeId id = 0; id < program.size(); ++id) {
    if (const State* of = As<State>(program, id)) state[id] = names.Of(of->name);
  }
  // The first and the last layer whose states depend on a node.
  std::vector<int> first(program.size(), std::numeric_limits<int>::max());
  std::vector<int> reached(program.size(), kNone);
  for (NodeId id = program.size() - 1; id >= 0; --id) {
    const std::vector<NodeId>& inputs = program.nodes[id].inputs;
    if (As<Update>(program, id) != nullptr) {
      reached[id] = std::max(reached[id], state[inputs[0]]);
      if (state[inputs[0]] != kNone) first[id] = std::min(first[id], state[inputs[0]]);
    }
    for (NodeId input : inputs) {
      reached[input] = std::max(reached[input], reached[id]);
      first[input] = std::min(first[input], first[id]);
    }
  }
  std::vector<int> layer = state;
  for (NodeId id = 0; id < program.size(); ++id) {
    if (state[id] != kNone) continue;
    int read = kNone, before = kNone;
    for (NodeId input : program.nodes[id].inputs) {
      read = std::max(read, state[input]);
      before = std::max(before, layer[input]);
    }
    const bool is_for_reached = reached[id] == first[id] || reached[id] <= before;
    layer[id] = read != kNone                            ? read
                : reached[id] != kNone && is_for_reached ? reached[id]
                                                         : before;
  }
  std::vector<std::string> words;
  for (int of : layer) words.push_back(of == kNone ? "" : names[of]);
  return words;
}

std::string LayersText(const std::vector<std::string>& layers, absl::Span<const NodeId> nodes) {
  std::vector<std::string> distinct;
  for (NodeId id : nodes) {
    if (!layers[id].empty() && !absl::c_linear_search(distinct, layers[id]))
      distinct.push_back(layers[id]);
  }
  const size_t more = distinct.size() > 2 ? distinct.size() - 1 : 0;
  distinct.resize(distinct.size() - more);
  return absl::StrCat(absl::StrJoin(distinct, ", "),
                      more == 0 ? "" : absl::StrCat(" and ", more, " more"));
}

}  // namespace coconet
