#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "coconet/base/status.h"
#include "coconet/ir/operand_index.h"
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

class FoldJob : public EvaluationJob {
 public:
  FoldJob(const Evaluated& e, EvaluationCache& cache, NodeId id, int rank,
          std::vector<int64_t> outputs)
      : EvaluationJob(e.input(id, 0), rank),
        e_(e),
        known_(cache.elements[{id, rank}]),
        id_(id),
        op_(std::get<Fold>(e.program.graph().nodes[id].op)),
        from_(e.type(node())),
        is_flat_(from_.layout.sliced() &&
                 (from_.layout.dim == Layout::kFlat || (from_.layout.owned() && FoldsAll()))),
        outputs_(std::move(outputs)),
        shape_(from_.shape) {
    if (is_flat_) shape_ = {NumElements(from_.shape)};
  }

  bool Next() override {
    if (!started_) Start();
    while (block_.size() < kBlock) {
      if (odometer_.has_value() && !odometer_->done()) {
        block_.push_back(odometer_->Next());
        owners_.push_back(at_ - 1);
        continue;
      }
      if (at_ == outputs_.size()) break;
      odometer_.emplace(shape_, RangesOf(outputs_[at_++]));
    }
    if (block_.empty()) Finish();
    return !block_.empty();
  }

 private:
  void Start() {
    started_ = true;
    // Another job may have computed some of them meanwhile.
    std::erase_if(outputs_, [&](int64_t output) { return known_.contains(output); });
    folds_.assign(outputs_.size(), BoundedFold(op_.kind, from_.dtype));
  }

  bool FoldsAll() const { return e_.type(id_).shape.empty(); }
  bool Folds(size_t dim) const {
    return FoldsAll() || absl::c_linear_search(op_.dims, static_cast<int>(dim));
  }

  /// By dimension: the elements that the rank folds to `output`.
  std::vector<Range> RangesOf(int64_t output) const {
    std::vector<Range> ranges(shape_.size());
    for (size_t d = shape_.size(); d-- > 0;) {
      if (!Folds(d)) {
        ranges[d] = {output % shape_[d].size, output % shape_[d].size + 1};
        output /= shape_[d].size;
      } else if (is_flat_) {
        ranges[d] = SlicingOf(from_, e_.ranks).slicing.Of(rank() % e_.ranks);
      } else {
        ranges[d] = e_.PartOfDim(node(), static_cast<int>(d), rank());
      }
    }
    return ranges;
  }

  void Use(const Bounded& values) override {
    for (size_t i = 0; i < block_.size(); ++i) {
      const size_t at = values.size() == 1 ? 0 : i;
      folds_[owners_[i]].Add(values.value[at], values.error[at]);
    }
    owners_.clear();
  }

  void Finish() {
    int64_t count = 1;
    for (size_t d = 0; d < shape_.size(); ++d) count *= Folds(d) ? shape_[d].size : 1;
    const bool all_have_it = !from_.layout.sliced() && from_.layout != Layout::Local();
    // A schedule may give each rank a part of the sum.
    const int parts = FoldsAll() && all_have_it ? e_.ranks : 1;
    for (size_t o = 0; o < outputs_.size(); ++o)
      known_[outputs_[o]] = folds_[o].Finish(count, parts);
  }

  const Evaluated& e_;
  std::unordered_map<int64_t, BoundedValue>& known_;
  const NodeId id_;
  const Fold& op_;
  const TensorType& from_;
  const bool is_flat_;
  bool started_ = false;
  std::vector<int64_t> outputs_;
  Shape shape_;    // of the operand; one sliced flat is one dimension
  size_t at_ = 0;  // the output that comes next
  std::vector<BoundedFold> folds_;
  std::optional<Odometer> odometer_;  // over the elements of the output before it
  std::vector<size_t> owners_;        // of the block's elements
};

/// The elements of the operand that a line has.
std::vector<int64_t> ElementsOf(const Evaluated& e, const ProductLine& line) {
  const Shape& shape = e.type(line.operand).shape;
  const int dims = static_cast<int>(shape.size());
  const int64_t rows = shape[dims - 2].size, columns = shape[dims - 1].size;
  const Range summed = e.PartOfDim(line.operand, line.is_row ? dims - 1 : dims - 2, line.rank);
  const int64_t across = line.is_row ? rows : columns, at = line.line % across;
  const int64_t base = line.line / across * rows * columns;
  std::vector<int64_t> elements;
  for (int64_t k = summed.begin; k < summed.end; ++k)
    elements.push_back(base + (line.is_row ? at * columns + k : k * columns + at));
  return elements;
}

class LineJob : public EvaluationJob {
 public:
  LineJob(const Evaluated& e, EvaluationCache& cache, const ProductLine& line)
      : EvaluationJob(line.operand, line.rank), e_(e), cache_(cache), line_(line) {}

  bool Next() override {
    if (line_.In(cache_).contains(line_.line)) return false;
    block_ = ElementsOf(e_, line_);
    if (block_.empty()) line_.In(cache_)[line_.line];
    return !block_.empty();
  }

 private:
  void Use(const Bounded& values) override {
    BoundedLine& kept = line_.In(cache_)[line_.line];
    for (size_t i = 0; i < block_.size(); ++i) {
      const size_t at = values.size() == 1 ? 0 : i;
      kept.value.push_back(values.value[at].real());
      if (!values.exact) kept.error.push_back(values.error[at]);
    }
    cache_.line_elements += static_cast<int64_t>(block_.size());
  }

  const Evaluated& e_;
  EvaluationCache& cache_;
  const ProductLine line_;
};

/// Where the lines are that operands 0 and 1 of a product have for its elements, without a search
/// for each element.
class LineSlots {
 public:
  LineSlots(const Evaluated& e, NodeId id) {
    const Shape& shape = e.type(id).shape;
    columns_ = shape.back().size;
    rows_ = shape[shape.size() - 2].size;
    for (int which : {0, 1}) is_slotted_[which] = !e.TakesOwnValues(id, which);
  }

  /// The line of the operand for the element, which find() looks for if no slot has it.
  template <class Find>
  const BoundedLine* Of(int which, int64_t index, const Find& find) {
    if (which > 1 || !is_slotted_[which]) return find();
    const int64_t row = index / columns_;
    const int64_t key = which == 0 ? row : row / rows_ * columns_ + index % columns_;
    Slot& slot = slots_[which][static_cast<size_t>(key) % kSlots];
    if (slot.key == key) return slot.line;
    const BoundedLine* line = find();
    if (line != nullptr) slot = {key, line};
    return line;
  }

 private:
  static constexpr size_t kSlots = 256;
  struct Slot {
    int64_t key = -1;
    const BoundedLine* line = nullptr;
  };
  int64_t columns_, rows_;
  bool is_slotted_[2];
  Slot slots_[2][kSlots];
};

}  // namespace

std::unique_ptr<EvaluationJob> NewFoldJob(const Evaluated& e, EvaluationCache& cache, NodeId id,
                                          int rank, std::vector<int64_t> outputs) {
  return std::make_unique<FoldJob>(e, cache, id, rank, std::move(outputs));
}

void Evaluation::NeedFolds(NodeId id, const Part& part) {
  const auto& known = cache_.elements[{id, part.second}];
  std::vector<int64_t> outputs = *lists_[part.first];
  std::sort(outputs.begin(), outputs.end());
  outputs.erase(std::unique(outputs.begin(), outputs.end()), outputs.end());
  std::erase_if(outputs, [&](int64_t output) { return known.contains(output); });
  if (!outputs.empty())
    missing_.push_back(NewFoldJob(e_, cache_, id, part.second, std::move(outputs)));
}

Bounded Evaluation::Folded(NodeId id, const Part& part) const {
  const auto& known = cache_.elements.at({id, part.second});
  Bounded result;
  for (int64_t output : *lists_[part.first]) {
    const BoundedValue& v = known.at(output);
    result.value.push_back(v.value);
    result.error.push_back(v.error);
    result.exact &= v.error == 0;
    result.sole.push_back(v.sole);
  }
  return result;
}

std::unordered_map<int64_t, BoundedLine>& ProductLine::In(EvaluationCache& cache) const {
  EvaluationCache::Lines& lines = cache.lines[{operand, owner}];
  return is_row ? lines.rows : lines.columns;
}

ProductLine LineOf(const Evaluated& e, NodeId id, int which, int rank, int64_t index) {
  const auto& op = std::get<MatMul>(e.program.graph().nodes[id].op);
  const Shape& shape = e.type(id).shape;
  const int64_t columns = shape.back().size, rows = shape[shape.size() - 2].size;
  const bool of_a = which % 2 == 0;
  const NodeId operand = e.input(id, which);
  const Shape& of = e.type(e.input(id, of_a ? 0 : 1)).shape;
  // Lines of a sliced sum differ by rank.
  const bool by_rank = e.type(operand).layout.kind == Layout::Kind::kLocal ||
                       e.type(id).layout.kind == Layout::Kind::kLocal;
  const bool is_row = of_a != (of_a ? op.transpose_a : op.transpose_b);
  int64_t matrix = MatrixOf(shape, of, index / columns / rows), lines = of_a ? rows : columns,
          line = of_a ? index / columns % rows : index % columns;
  if (which > 1) {
    const Shape& scales = e.type(operand).shape;
    const size_t dim = scales.size() - (is_row ? 2 : 1);
    matrix = ScalesOfMatrix(of, scales, matrix);
    line /= BlocksOf(of, scales)[dim];
    lines = scales[dim].size;
  }
  if (e.TakesOwnValues(id, which)) rank = e.OwnerOf(id, index, rank);
  return {.operand = operand,
          .rank = rank,
          .owner = by_rank ? rank : e.FirstOfStage(rank),
          .is_row = is_row,
          .line = matrix * lines + line};
}

std::unique_ptr<EvaluationJob> NewLineJob(const Evaluated& e, EvaluationCache& cache,
                                          const ProductLine& line) {
  return std::make_unique<LineJob>(e, cache, line);
}

const BoundedLine* Evaluation::FindLine(const ProductLine& line) {
  auto& lines = line.In(cache_);
  if (const auto known = lines.find(line.line); known != lines.end()) return &known->second;
  if (!IsWhole(line.operand)) return nullptr;
  const auto whole = cache_.whole.find({line.operand, PartOf(line.operand, 0, line.rank).second});
  if (whole == cache_.whole.end()) return nullptr;
  const Bounded& values = whole->second;
  BoundedLine& kept = lines[line.line];
  for (const int64_t element : ElementsOf(e_, line)) {
    kept.value.push_back(values.value[element].real());
    if (!values.exact) kept.error.push_back(values.error[element]);
  }
  cache_.line_elements += static_cast<int64_t>(kept.value.size());
  return &kept;
}

void Evaluation::NeedLines(NodeId id, const Part& part) {
  LineSlots slots(e_, id);
  for (int which = 0; which < static_cast<int>(e_.program.inputs(id).size()); ++which) {
    std::set<std::pair<int, int64_t>> asked;  // by owner
    for (int64_t index : *lists_[part.first]) {
      slots.Of(which, index, [&] {
        const ProductLine line = LineOf(e_, id, which, part.second, index);
        const BoundedLine* known = FindLine(line);
        if (known == nullptr && asked.emplace(line.owner, line.line).second)
          missing_.push_back(NewLineJob(e_, cache_, line));
        return known;
      });
    }
  }
}

namespace {

/// The lines of operands that a product multiplies, with their scales.
class Factors {
 public:
  Factors(const Evaluated& e, EvaluationCache& cache, NodeId id, int rank)
      : e_(e),
        cache_(cache),
        id_(id),
        rank_(rank),
        is_scaled_(IsScaledProduct(e.program.graph(), id)),
        slots_(e, id) {}

  const BoundedLine& Of(int which, int64_t index) {
    const BoundedLine& plain = *slots_.Of(which, index, [&] {
      const ProductLine line = LineOf(e_, id_, which, rank_, index);
      return &line.In(cache_).at(line.line);
    });
    if (!is_scaled_) return plain;
    const ProductLine line = LineOf(e_, id_, which, rank_, index);
    const ProductLine scales = LineOf(e_, id_, which + 2, rank_, index);
    const auto [scaled, is_new] =
        scaled_.try_emplace({which, line.owner, line.line, scales.owner}, BoundedLine());
    if (is_new) {
      const Shape &of = e_.type(line.operand).shape, &by = e_.type(scales.operand).shape;
      const size_t summed = of.size() - (line.is_row ? 1 : 2);
      // A rank's slice begins with a block.
      scaled->second =
          BoundedScaled(plain, scales.In(cache_).at(scales.line), BlocksOf(of, by)[summed]);
    }
    return scaled->second;
  }

 private:
  const Evaluated& e_;
  EvaluationCache& cache_;
  const NodeId id_;
  const int rank_;
  const bool is_scaled_;
  LineSlots slots_;
  std::map<std::tuple<int, int, int64_t, int>, BoundedLine> scaled_;  // by operand, line and owners
};

}  // namespace

Bounded Evaluation::Product(NodeId id, const Part& part) const {
  Bounded result{{}, {}, false};
  Factors factors(e_, cache_, id, part.second);
  for (int64_t index : *lists_[part.first]) {
    const BoundedValue dot = BoundedDot(type(id).dtype, factors.Of(0, index), factors.Of(1, index),
                                        IsFloat8(e_.type(e_.input(id, 0)).dtype));
    result.value.push_back(dot.value);
    result.error.push_back(dot.error);
  }
  return result;
}

}  // namespace coconet
