#include "coconet/interpreter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/status.h"
#include "coconet/bounded.h"
#include "coconet/infer.h"

namespace coconet {
namespace {

/// Elements evaluated together: the values of some tens of nodes fit into a second-level cache.
constexpr size_t kBlock = 1024;

/// Indices of a tensor of shape `to` that broadcasting pairs with the indices `list` of a tensor of shape `from`.
std::vector<int64_t> Broadcast(absl::Span<const int64_t> list, const Shape& from, const Shape& to) {
  struct Axis {
    int64_t extent, stride;  // in `from`; of `to`, 0 where it is broadcast
  };
  std::vector<Axis> axes;  // innermost first
  int64_t stride = 1;
  for (size_t k = 0; k < from.size(); ++k) {
    const int64_t have = k < to.size() ? to[to.size() - 1 - k].size : 1;
    axes.push_back({from[from.size() - 1 - k].size, have == 1 ? 0 : stride});
    stride *= have;
  }
  std::vector<int64_t> mapped;
  mapped.reserve(list.size());
  for (int64_t index : list) {
    int64_t there = 0;
    for (const Axis& axis : axes) {
      there += index % axis.extent * axis.stride;
      index /= axis.extent;
    }
    mapped.push_back(there);
  }
  return mapped;
}

/// The values of one block of elements of one result and of all that it needs: each node once for every list
/// of elements that is asked of it and, where it is Local, every rank.
class Evaluation {
 public:
  Evaluation(const Graph& g, const std::vector<TensorType>& types, int ranks, const ElementSource& source)
      : g_(g), types_(types), ranks_(ranks), source_(source), values_(g.nodes.size()) {}

  const Bounded& Of(NodeId result, int rank, absl::Span<const int64_t> indices) {
    lists_.emplace_back(indices.begin(), indices.end());
    Want(result, 0, rank);
    // Users come after their operands: one walk back finds what is needed, one walk forth computes it.
    for (NodeId id = result; id >= 0; --id) {
      for (const auto& [part, unused] : values_[id]) WantOperands(id, part);
    }
    for (NodeId id = 0; id <= result; ++id) {
      for (auto& [part, value] : values_[id]) value = Compute(id, part);
    }
    return Get(result, 0, rank);
  }

 private:
  /// Some elements of a node: an entry of lists_, and the rank (0 unless the node is Local).
  using Part = std::pair<int, int>;

  Part PartOf(NodeId id, int list, int rank) const {
    return {list, types_[id].layout.kind == Layout::Kind::kLocal ? rank : 0};
  }
  void Want(NodeId id, int list, int rank) { values_[id].try_emplace(PartOf(id, list, rank)); }
  const Bounded& Get(NodeId id, int list, int rank) const { return values_[id].at(PartOf(id, list, rank)); }

  bool IsReduction(NodeId id) const { return As<AllReduce>(g_, id) || As<ReduceScatter>(g_, id); }

  void WantOperands(NodeId id, const Part& part) {
    const auto [list, rank] = part;
    const auto& inputs = g_.nodes[id].inputs;
    // The old value of a state is not needed for its update.
    for (NodeId operand : absl::MakeSpan(inputs).subspan(As<Update>(g_, id) ? 1 : 0)) {
      const int mapped = MapList(list, types_[id].shape, types_[operand].shape);
      const int first = IsReduction(id) ? 0 : rank, last = IsReduction(id) ? ranks_ - 1 : rank;
      for (int r = first; r <= last; ++r) Want(operand, mapped, r);
    }
  }

  Bounded Compute(NodeId id, const Part& part) {
    const auto [list, rank] = part;
    const auto& inputs = g_.nodes[id].inputs;
    const DType dtype = types_[id].dtype;
    const auto operand = [&, list = list, rank = rank](size_t i) -> const Bounded& {
      return Get(inputs[i], MapList(list, types_[id].shape, types_[inputs[i]].shape), rank);
    };
    return std::visit(Match{
                          [&, list = list, rank = rank](const Input& op) { return Read(op.name, list, rank); },
                          [&, list = list, rank = rank](const State& op) { return Read(op.name, list, rank); },
                          [&](const Const& op) { return BoundedScalar(op.value, dtype); },
                          [&](const WorldSize&) { return BoundedScalar(ranks_, dtype); },
                          [&](const Pointwise& op) {
                            std::vector<const Bounded*> args;
                            for (size_t i = 0; i < inputs.size(); ++i) args.push_back(&operand(i));
                            return BoundedPointwise(op.fn, types_[inputs.back()].dtype, args);
                          },
                          [&](const Cast&) { return BoundedCast(types_[inputs[0]].dtype, dtype, operand(0)); },
                          [&, list = list](const AllReduce& op) { return Reduce(op.kind, inputs[0], list); },
                          [&, list = list](const ReduceScatter& op) { return Reduce(op.kind, inputs[0], list); },
                          [&](const AllGather&) { return operand(0); },
                          [&](const Update&) { return operand(1); },
                          [&](const Output&) { return operand(0); },
                      },
                      g_.nodes[id].op);
  }

  Bounded Reduce(ReduceKind kind, NodeId operand, int list) const {
    std::vector<const Bounded*> parts;
    for (int rank = 0; rank < ranks_; ++rank) parts.push_back(&Get(operand, list, rank));
    return BoundedReduce(kind, types_[operand].dtype, parts);
  }

  Bounded Read(const std::string& name, int list, int rank) const {
    const std::vector<int64_t>& indices = lists_[list];
    Bounded read{std::vector<double>(indices.size()), std::vector<double>(indices.size(), 0.0)};
    for (size_t i = 0; i < indices.size(); ++i) read.value[i] = source_(name, rank, indices[i]);
    return read;
  }

  /// The list of an operand's elements that those of `list` need.
  int MapList(int list, const Shape& from, const Shape& to) {
    if (from == to) return list;
    std::vector<int64_t> mapped = NumElements(to) == 1 ? std::vector<int64_t>{0} : Broadcast(lists_[list], from, to);
    const auto same = std::find(lists_.begin(), lists_.end(), mapped);
    if (same != lists_.end()) return static_cast<int>(same - lists_.begin());
    lists_.push_back(std::move(mapped));
    return static_cast<int>(lists_.size()) - 1;
  }

  const Graph& g_;
  const std::vector<TensorType>& types_;
  const int ranks_;
  const ElementSource& source_;
  std::vector<std::vector<int64_t>> lists_;      // 0: what was asked for
  std::vector<std::map<Part, Bounded>> values_;  // by node; a key is there as soon as it is wanted
};

}  // namespace

absl::StatusOr<Interpreter> Interpreter::Create(Graph graph, int ranks) {
  if (ranks < 1) return absl::InvalidArgumentError(absl::StrCat("interpret: want 1 or more ranks, have ", ranks));
  Interpreter interpreter;
  ASSIGN_OR_RETURN(interpreter.types_, InferTypes(graph));
  interpreter.ranks_ = ranks;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (!IsBound(interpreter.types_[id].shape)) {
      return absl::InvalidArgumentError(absl::StrCat("interpret ", NodeText(graph, id), ": shape ",
                                                     Text(interpreter.types_[id].shape),
                                                     " holds a symbol; bind sizes first"));
    }
    std::string name;
    if (As<Update>(graph, id)) name = As<State>(graph, graph.nodes[id].inputs[0])->name;
    if (const auto* output = As<Output>(graph, id)) name = output->name;
    if (name.empty()) continue;
    interpreter.results_.push_back(name);
    interpreter.result_node_.emplace(name, id);
  }
  interpreter.graph_ = std::move(graph);
  return interpreter;
}

const TensorType& Interpreter::type(const std::string& result) const {
  const auto node = result_node_.find(result);
  CC_CHECK(node != result_node_.end());
  return types_[node->second];
}

absl::StatusOr<Expected> Interpreter::Evaluate(const std::string& result, int rank, absl::Span<const int64_t> indices,
                                               const ElementSource& source) const {
  const auto node = result_node_.find(result);
  if (node == result_node_.end()) {
    return absl::NotFoundError(
        absl::StrCat("evaluate ", result, ": the program's results are ", absl::StrJoin(results_, ", ")));
  }
  if (rank < 0 || rank >= ranks_) {
    return absl::InvalidArgumentError(
        absl::StrCat("evaluate ", result, ": want a rank below ", ranks_, ", have ", rank));
  }
  const int64_t elements = NumElements(types_[node->second].shape);
  for (int64_t index : indices) {
    if (index < 0 || index >= elements) {
      return absl::InvalidArgumentError(
          absl::StrCat("evaluate ", result, ": want an index below ", elements, ", have ", index));
    }
  }
  Expected expected;
  expected.value.reserve(indices.size());
  expected.error.reserve(indices.size());
  for (size_t begin = 0; begin < indices.size(); begin += kBlock) {
    const absl::Span<const int64_t> block = indices.subspan(begin, kBlock);
    Evaluation evaluation(graph_, types_, ranks_, source);
    const Bounded& values = evaluation.Of(node->second, rank, block);
    for (size_t i = 0; i < block.size(); ++i) {
      const size_t at = values.size() == 1 ? 0 : i;
      expected.value.push_back(values.value[at]);
      expected.error.push_back(values.error[at]);
    }
  }
  return expected;
}

}  // namespace coconet
