#include <algorithm>
#include <utility>

#include "coconet/base/status.h"
#include "coconet/reference/evaluation.h"

namespace coconet {
namespace {

/// Elements evaluated together.
constexpr size_t kBlock = 1024;

/// Runs through the elements of a row-major tensor with each coordinate in a range.
class Odometer {
 public:
  Odometer(const Shape& shape, std::vector<Range> ranges)
      : ranges_(std::move(ranges)), strides_(shape.size()) {
    int64_t stride = 1;
    for (size_t d = shape.size(); d-- > 0; stride *= shape[d].size) strides_[d] = stride;
    for (const Range& range : ranges_) {
      at_.push_back(range.begin);
      done_ |= range.size() <= 0;
    }
  }
  bool done() const { return done_; }
  int64_t Next() {
    int64_t index = 0;
    for (size_t d = 0; d < at_.size(); ++d) index += at_[d] * strides_[d];
    size_t d = at_.size();
    while (d > 0 && ++at_[d - 1] == ranges_[d - 1].end) {
      --d;
      at_[d] = ranges_[d].begin;
    }
    done_ = d == 0;
    return index;
  }

 private:
  std::vector<Range> ranges_;
  std::vector<int64_t> strides_, at_;
  bool done_ = false;
};

}  // namespace

Bounded Evaluation::Folded(NodeId id, const Part& part) {
  auto& known = cache_.folds[{id, part.second}];
  std::vector<int64_t> missing;
  for (int64_t output : lists_[part.first]) {
    if (known.try_emplace(output).second) missing.push_back(output);
  }
  FoldOutputs(id, part.second, missing);
  Bounded result;
  for (int64_t output : lists_[part.first]) {
    const BoundedValue& v = known[output];
    result.value.push_back(v.value);
    result.error.push_back(v.error);
    result.exact &= v.error == 0;
  }
  return result;
}

void Evaluation::FoldOutputs(NodeId id, int rank, const std::vector<int64_t>& outputs) {
  const auto& op = std::get<Fold>(e_.program.graph().nodes[id].op);
  const NodeId operand = e_.program.graph().nodes[id].inputs[0];
  const TensorType& from = type(operand);
  Shape shape = from.shape;  // a flat slicing is of the tensor as one dimension
  const bool flat = from.layout.sliced() && from.layout.dim == Layout::kFlat;
  if (flat) shape = {NumElements(from.shape)};
  const bool all = type(id).shape.empty();
  std::vector<BoundedFold> folds(outputs.size(), BoundedFold(op.kind, from.dtype));
  std::vector<int64_t> block;
  std::vector<size_t> owners;  // of the block's elements
  const auto flush = [&] {
    Evaluation evaluation(e_, cache_);
    const Bounded& values = evaluation.Of(operand, rank, block);
    for (size_t i = 0; i < block.size(); ++i) {
      const size_t at = values.size() == 1 ? 0 : i;
      folds[owners[i]].Add(values.value[at], values.error[at]);
    }
    block.clear();
    owners.clear();
  };
  int64_t count = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (all || std::find(op.dims.begin(), op.dims.end(), static_cast<int>(d)) != op.dims.end())
      count *= shape[d].size;
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    std::vector<Range> ranges(shape.size());
    int64_t rest = outputs[o];
    for (size_t d = shape.size(); d-- > 0;) {
      const bool folded =
          all || std::find(op.dims.begin(), op.dims.end(), static_cast<int>(d)) != op.dims.end();
      if (folded) {
        ranges[d] = flat
                        ? SlicingOf(from.shape, Layout::kFlat, e_.ranks).slicing.Of(rank % e_.ranks)
                        : PartOfDim(operand, static_cast<int>(d), rank);
        continue;
      }
      ranges[d] = {rest % shape[d].size, rest % shape[d].size + 1};
      rest /= shape[d].size;
    }
    for (Odometer odometer(shape, std::move(ranges)); !odometer.done();) {
      block.push_back(odometer.Next());
      owners.push_back(o);
      if (block.size() == kBlock) flush();
    }
  }
  if (!block.empty()) flush();
  auto& known = cache_.folds[{id, rank}];
  const bool all_have_it = !from.layout.sliced() && from.layout != Layout::Local();
  const int parts =
      all && all_have_it ? e_.ranks : 1;  // a schedule may give each rank a part of the sum
  for (size_t o = 0; o < outputs.size(); ++o) known[outputs[o]] = folds[o].Finish(count, parts);
}

Bounded Evaluation::Product(NodeId id, const Part& part) {
  const Shape& shape = type(id).shape;
  const int64_t columns = shape.back().size, rows = shape[shape.size() - 2].size;
  Bounded result{{}, {}, false};
  for (int64_t index : lists_[part.first]) {
    const int64_t matrix = index / columns / rows;
    // Of an operand without leading dimensions there is one matrix.
    const auto line = [&](int which, int64_t at, int64_t lines) {
      const bool one = type(e_.program.graph().nodes[id].inputs[which]).shape.size() == 2;
      return (one ? 0 : matrix) * lines + at;
    };
    const BoundedLine& a = LineOf(id, 0, part.second, line(0, index / columns % rows, rows));
    const BoundedLine& b = LineOf(id, 1, part.second, line(1, index % columns, columns));
    const BoundedValue dot = BoundedDot(type(id).dtype, a, b);
    result.value.push_back(dot.value);
    result.error.push_back(dot.error);
  }
  return result;
}

const BoundedLine& Evaluation::LineOf(NodeId id, int which, int rank, int64_t line) {
  const auto& op = std::get<MatMul>(e_.program.graph().nodes[id].op);
  const NodeId operand = e_.program.graph().nodes[id].inputs[which];
  const TensorType& t = type(operand);
  const bool local = t.layout.kind == Layout::Kind::kLocal;
  // Lines of a sliced sum differ by rank.
  const int owner =
      local || type(id).layout.kind == Layout::Kind::kLocal ? rank : FirstOfStage(rank);
  EvaluationCache::Lines& lines = cache_.lines[{operand, owner}];
  const bool transposed = which == 0 ? op.transpose_a : op.transpose_b;
  const bool is_row = (which == 0) != transposed;  // in memory
  auto& known = is_row ? lines.rows : lines.columns;
  const auto [at, is_new] = known.try_emplace(line);
  BoundedLine& kept = at->second;
  if (!is_new) return kept;
  const int dims = static_cast<int>(t.shape.size());
  const int64_t rows = t.shape[dims - 2].size, columns = t.shape[dims - 1].size;
  const Range summed = PartOfDim(operand, is_row ? dims - 1 : dims - 2, rank);
  std::vector<int64_t> indices;
  for (int64_t k = summed.begin; k < summed.end; ++k) {
    const int64_t across = is_row ? rows : columns;
    const int64_t base = line / across * rows * columns;
    indices.push_back(base + (is_row ? line % across * columns + k : k * columns + line % across));
  }
  Bounded values;
  if (!indices.empty()) values = Evaluation(e_, cache_).Of(operand, rank, indices);
  kept.value = values.size() == 1 ? std::vector<double>(indices.size(), values.value[0])
                                  : std::move(values.value);
  if (!values.exact) {
    kept.error = values.size() == 1 ? std::vector<double>(indices.size(), values.error[0])
                                    : std::move(values.error);
  }
  cache_.line_elements += static_cast<int64_t>(indices.size());
  return kept;
}

}  // namespace coconet
