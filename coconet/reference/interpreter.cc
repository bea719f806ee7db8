#include "coconet/reference/interpreter.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "coconet/reference/evaluation.h"
#include "coconet/reference/whole_values.h"

namespace coconet {
namespace {

/// Elements evaluated together: the values of some tens of nodes fit into a second-level cache.
constexpr size_t kBlock = 1024;
/// Elements of matrix products' lines that are kept from block to block.
constexpr int64_t kMostLineElements = int64_t{1} << 26;
/// Elements of values that all ranks of the world together keep whole: 1.5 GiB.
constexpr int64_t kMostWhole = int64_t{1} << 26;

/// The positions of `indices` in the order of evaluation. In a matrix that depends on a product,
/// they go in square tiles side by side, as large as a block: a tile's elements share the lines of
/// the operands.
std::vector<size_t> OrderOf(const Graph& g, const Shape& shape, absl::Span<const int64_t> indices) {
  std::vector<size_t> order(indices.size());
  absl::c_iota(order, 0);
  const bool multiplies = absl::c_any_of(
      g.nodes, [](const Node& node) { return std::holds_alternative<MatMul>(node.op); });
  if (!multiplies || shape.size() < 2 || indices.size() <= kBlock) return order;
  constexpr int64_t kTile = 32;
  static_assert(kTile * kTile == kBlock);
  const int64_t columns = shape.back().size, rows = shape[shape.size() - 2].size;
  const auto place = [&](size_t i) {
    const int64_t row = indices[i] / columns % rows, column = indices[i] % columns;
    return std::make_tuple(indices[i] / columns / rows, row / kTile, column / kTile, row, column);
  };
  absl::c_sort(order, [&](size_t a, size_t b) { return place(a) < place(b); });
  return order;
}

}  // namespace

void EvaluationCache::DropLines(const Graph& g) {
  int64_t computed = 0;
  for (auto at = lines.begin(); at != lines.end();) {
    if (g.nodes[at->first.first].inputs.empty()) {
      at = lines.erase(at);
      continue;
    }
    for (const auto* side : {&at->second.rows, &at->second.columns})
      for (const auto& [number, line] : *side) computed += static_cast<int64_t>(line.value.size());
    ++at;
  }
  line_elements = computed;
  if (computed <= kMostLineElements) return;
  lines.clear();
  line_elements = 0;
}

absl::StatusOr<Interpreter> Interpreter::Create(Graph program, int ranks, int stages, int nodes,
                                                const Numerics& numerics) {
  if (ranks < 1)
    return absl::InvalidArgumentError(
        absl::StrCat("interpret: want 1 or more ranks, have ", ranks));
  if (stages < 1)
    return absl::InvalidArgumentError(
        absl::StrCat("interpret: want 1 or more stages, have ", stages));
  if (nodes < 1 || ranks % nodes != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "interpret: want nodes that have equally many of ", ranks, " ranks, have ", nodes));
  }
  Interpreter interpreter;
  ASSIGN_OR_RETURN(interpreter.program_, TypedGraph::Of(std::move(program)));
  const Graph& graph = interpreter.program_.graph();
  RETURN_IF_ERROR(WithContext(CheckRuns(graph, ranks), "interpret"));
  interpreter.ranks_ = ranks;
  interpreter.stages_ = stages;
  interpreter.nodes_ = nodes;
  interpreter.numerics_ = numerics;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (!IsBound(interpreter.program_.type(id).shape)) {
      return absl::InvalidArgumentError(absl::StrCat("interpret ", NodeText(graph, id), ": shape ",
                                                     Text(interpreter.program_.type(id).shape),
                                                     " holds a symbol; bind sizes first"));
    }
    std::string name;
    if (As<Update>(graph, id)) name = As<State>(graph, graph.nodes[id].inputs[0])->name;
    if (const auto* output = As<Output>(graph, id)) name = output->name;
    if (name.empty()) continue;
    interpreter.results_.push_back(name);
    interpreter.result_node_.emplace(name, id);
  }
  return interpreter;
}

const TensorType& Interpreter::type(const std::string& result) const {
  const auto node = result_node_.find(result);
  CC_CHECK(node != result_node_.end());
  return program_.type(node->second);
}

absl::StatusOr<Expected> Interpreter::Evaluate(const std::string& result, int rank,
                                               absl::Span<const int64_t> indices,
                                               const ElementSource& source) const {
  return Evaluator(*this, source).Evaluate(result, rank, indices);
}

Evaluator::Evaluator(const Interpreter& interpreter, ElementSource source)
    : interpreter_(interpreter),
      source_(std::move(source)),
      cache_(std::make_unique<EvaluationCache>()) {
  cache_->runs = RunsOf(InProgram(), {});
}

Evaluated Evaluator::InProgram() const {
  const Interpreter& in = interpreter_;
  return {in.program_, in.ranks_, in.nodes_, in.stages_, source_, in.numerics_};
}

Evaluator::~Evaluator() = default;

void Evaluator::StopWhen(std::function<bool()> stop) { cache_->stop = std::move(stop); }

void Evaluator::KeepWholeValues() {
  const Evaluated evaluated = InProgram();
  cache_->whole_nodes =
      WholeNodes(evaluated, kMostWhole / (interpreter_.ranks_ * interpreter_.stages_));
  cache_->runs = RunsOf(evaluated, cache_->whole_nodes);
}

void Evaluator::Forget() {
  *cache_ = {.whole_nodes = std::move(cache_->whole_nodes),
             .runs = std::move(cache_->runs),
             .stop = std::move(cache_->stop)};
}

absl::StatusOr<Expected> Evaluator::Evaluate(const std::string& result, int rank,
                                             absl::Span<const int64_t> indices) {
  const Interpreter& in = interpreter_;
  const int world = in.ranks_ * in.stages_;
  const auto node = in.result_node_.find(result);
  if (node == in.result_node_.end()) {
    return absl::NotFoundError(absl::StrCat("evaluate ", result, ": the program's results are ",
                                            absl::StrJoin(in.results_, ", ")));
  }
  if (rank < 0 || rank >= world) {
    return absl::InvalidArgumentError(
        absl::StrCat("evaluate ", result, ": want a rank below ", world, ", have ", rank));
  }
  const int64_t elements = NumElements(in.program_.type(node->second).shape);
  for (int64_t index : indices) {
    if (index < 0 || index >= elements) {
      return absl::InvalidArgumentError(
          absl::StrCat("evaluate ", result, ": want an index below ", elements, ", have ", index));
    }
  }
  const Evaluated evaluated = InProgram();
  Expected expected{std::vector<Number>(indices.size()), std::vector<double>(indices.size())};
  const std::vector<size_t> order =
      OrderOf(in.program_.graph(), in.program_.type(node->second).shape, indices);
  for (size_t begin = 0; begin < order.size(); begin += kBlock) {
    const size_t end = std::min(begin + kBlock, order.size());
    std::vector<int64_t> block;
    for (size_t i = begin; i < end; ++i) block.push_back(indices[order[i]]);
    if (cache_->line_elements > kMostLineElements) cache_->DropLines(in.program_.graph());
    const std::optional<Bounded> values =
        EvaluateBlock(evaluated, *cache_, node->second, rank, block);
    if (!values.has_value())
      return absl::CancelledError(absl::StrCat("evaluate ", result, ": interrupted"));
    for (size_t i = begin; i < end; ++i) {
      const size_t at = values->size() == 1 ? 0 : i - begin;
      expected.value[order[i]] = values->value[at];
      expected.error[order[i]] = values->error[at];
    }
  }
  return expected;
}

}  // namespace coconet
