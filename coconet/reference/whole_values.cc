#include "coconet/reference/whole_values.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/algorithm/container.h"

namespace coconet {
namespace {

/// Elements computed together.
constexpr int64_t kBlock = 1024;

/// Whether an element of the result needs many elements of the operands, or some that depend on
/// values.
bool IsCut(const Op& op) {
  return std::holds_alternative<Fold>(op) || std::holds_alternative<MatMul>(op) ||
         std::holds_alternative<Gather>(op) || std::holds_alternative<EmbeddingBag>(op) ||
         std::holds_alternative<ScatterAdd>(op);
}

class WholeJob : public EvaluationJob {
 public:
  WholeJob(const Evaluated& e, EvaluationCache& cache, NodeId node, int rank)
      : EvaluationJob(node, rank, /*is_whole=*/true),
        cache_(cache),
        count_(NumElements(e.type(node).shape)) {}

  bool Next() override {
    if (cache_.whole.contains({node(), rank()})) return false;
    for (const int64_t end = std::min(count_, next_ + kBlock); next_ < end; ++next_)
      block_.push_back(next_);
    if (!block_.empty()) return true;
    cache_.whole.emplace(std::pair(node(), rank()), std::move(values_));
    return false;
  }

 private:
  void Use(const Bounded& values) override {
    const bool is_one = values.size() == 1;
    for (size_t i = 0; i < block_.size(); ++i) {
      values_.value.push_back(values.value[is_one ? 0 : i]);
      values_.error.push_back(values.error[is_one ? 0 : i]);
      if (!values.sole.empty()) values_.sole.push_back(values.sole[is_one ? 0 : i]);
    }
    values_.exact &= values.exact;
  }

  EvaluationCache& cache_;
  const int64_t count_;
  int64_t next_ = 0;
  Bounded values_;
};

}  // namespace

std::vector<bool> WholeNodes(const Evaluated& e, int64_t most) {
  const Graph& g = e.program.graph();
  const int count = g.size();
  std::vector<bool> leads_to_cut(count), is_kept(count);
  std::vector<int> users(count);
  int64_t elements = 0;
  bool any = false;
  for (NodeId id = count - 1; id >= 0; --id) {
    const Node& node = g.nodes[id];
    const bool is_cut = IsCut(node.op);
    const bool is_computed = !node.inputs.empty() && !e.type(id).shape.empty();
    is_kept[id] = is_computed && leads_to_cut[id] && (is_kept[id] || is_cut || users[id] > 1);
    if (is_kept[id]) {
      const bool is_local = e.type(id).layout.kind == Layout::Kind::kLocal;
      elements += NumElements(e.type(id).shape) * (is_local ? e.ranks : 1);
      any = true;
    }
    for (const NodeId input : node.inputs) {
      ++users[input];
      leads_to_cut[input] = leads_to_cut[input] || leads_to_cut[id] || is_cut;
      is_kept[input] = is_kept[input] || is_cut;
    }
  }
  return any && elements <= most ? is_kept : std::vector<bool>();
}

std::unique_ptr<EvaluationJob> NewWholeJob(const Evaluated& e, EvaluationCache& cache, NodeId node,
                                           int rank) {
  return std::make_unique<WholeJob>(e, cache, node, rank);
}

Bounded ElementsOf(const Bounded& whole, const std::vector<int64_t>& elements) {
  const size_t count = elements.size();
  Bounded result{std::vector<Number>(count), std::vector<double>(count), whole.exact};
  for (size_t i = 0; i < count; ++i) {
    result.value[i] = whole.value[elements[i]];
    result.error[i] = whole.error[elements[i]];
  }
  if (whole.sole.empty()) return result;
  for (const int64_t element : elements) result.sole.push_back(whole.sole[element]);
  return result;
}

}  // namespace coconet
