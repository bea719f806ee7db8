#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "coconet/base/status.h"
#include "coconet/ir/operand_index.h"
#include "coconet/reference/evaluation.h"
#include "coconet/reference/rounding.h"

namespace coconet {
namespace {

using KnownElements = std::unordered_map<int64_t, BoundedValue>;

/// Elements that the cache is to keep.
class ElementsJob : public EvaluationJob {
 public:
  ElementsJob(EvaluationCache& cache, NodeId node, int rank, std::vector<int64_t> elements)
      : EvaluationJob(node, rank), known_(cache.elements[{node, rank}]) {
    block_ = std::move(elements);
  }
  bool Next() override { return false; }

 private:
  void Use(const Bounded& values) override {
    for (size_t i = 0; i < block_.size(); ++i) {
      const size_t at = values.size() == 1 ? 0 : i;
      known_[block_[i]] = {values.value[at], values.error[at]};
    }
  }

  KnownElements& known_;
};

/// The rows that a gather or an embedding bag takes, as one rank has them.
class Rows {
 public:
  Rows(const Evaluated& e, NodeId gather, int rank) {
    const NodeId table = e.input(gather, 0);
    const int dim = *RowDimOf(e.program.op(gather), e.type(table).shape.size());
    // A bag's rows are those of a gather with one index per bag.
    map_ = OperandMap(Gather{dim}, e.type(gather).shape, e.type(table).shape);
    count_ = e.type(table).shape[dim].size;
    stride_ = SlicingOf(e.type(table).shape, dim, 1).inner;
    indices_ = NumElements(e.type(e.input(gather, 1)).shape);
    held_ = e.PartOfDim(table, dim, rank);
  }

  /// The element of the indices that element `at` of the result depends on.
  int64_t IndexOf(int64_t at) const { return at / stride_ % indices_; }
  bool Has(int64_t index) const { return index >= held_.begin && index < held_.end; }
  bool IsInTable(int64_t index) const { return index >= 0 && index < count_; }
  /// The element of the table. Requires Has(index).
  int64_t ElementOf(int64_t at, int64_t index) const { return map_.Of(at) + index * stride_; }

 private:
  IndexMap map_;
  int64_t stride_ = 0, indices_ = 0, count_ = 0;
  Range held_;
};

/// The bags that one rank reduces, and what it knows of their indices.
class Bags {
 public:
  /// A bag as elements of the operand of indices.
  struct Bag {
    int64_t begin = 0, end = 0;
    bool certain = true;  // whether its offsets are
  };

  Bags(const Evaluated& e, NodeId id, int rank)
      : e_(e), op_(std::get<EmbeddingBag>(e.program.op(id))), rows_(e, id, rank) {
    const Shape& shape = e.type(id).shape;
    columns_ = shape.back().size;
    bags_ = shape[shape.size() - 2].size;
    indices_ = NumElements(e.type(e.input(id, 1)).shape);
    length_ = e.type(e.input(id, 1)).shape.back().size;
    for (size_t i = 2; i < e.program.inputs(id).size(); ++i) {
      const bool is_offsets = e.type(e.input(id, i)).dtype == DType::kI32;
      (is_offsets ? offsets_ : weights_) = static_cast<int>(i);
    }
  }

  int offsets() const { return offsets_; }
  int weights() const { return weights_; }
  /// The bag of element `at` of the result, counted over all leading dimensions.
  int64_t BagOf(int64_t at) const { return at / columns_; }
  /// The elements of the offsets that say where a bag lies.
  std::vector<int64_t> OffsetsOf(int64_t bag) const {
    return bag + 1 < bags_ ? std::vector<int64_t>{bag, bag + 1} : std::vector<int64_t>{bag};
  }
  Bag At(int64_t bag, const KnownElements* offsets) const {
    if (offsets == nullptr) return {bag * length_, (bag + 1) * length_};
    Bag found;
    const auto offset = [&](int64_t of) {
      const BoundedValue& value = offsets->at(of);
      found.certain &= value.error == 0;
      return std::clamp<int64_t>(value.value.word(), 0, indices_);
    };
    found.begin = offset(bag);
    found.end = bag + 1 < bags_ ? offset(bag + 1) : indices_;
    found.end = std::max(found.begin, found.end);
    return found;
  }

  const Rows& rows() const { return rows_; }
  /// Whether a mean counts the index: the whole table has a row for it.
  bool Counts(int64_t index) const { return rows_.IsInTable(index); }
  Pooling pooling() const { return op_.pooling; }

 private:
  const Evaluated& e_;
  const EmbeddingBag& op_;
  Rows rows_;
  int offsets_ = -1, weights_ = -1;  // operands; -1: absent
  int64_t columns_ = 1, bags_ = 0, indices_ = 0, length_ = 0;
};

}  // namespace

int Evaluation::TableRankOf(NodeId id, int64_t at, int rank) const {
  return e_.TakesOwnValues(id, 0) ? e_.OwnerOf(id, at, rank) : rank;
}

void Evaluation::WantTaken(NodeId id, const Part& part) {
  const auto [list, rank] = part;
  const NodeId indices = e_.input(id, 1);
  const int holder = PartOf(indices, list, rank).second;
  const KnownElements& known = cache_.elements[{indices, holder}];
  const Rows rows(e_, id, rank);
  std::vector<int64_t> unknown;
  std::map<int, std::vector<int64_t>> elements;  // key: the rank whose copy of the table is read
  for (int64_t at : *lists_[list]) {
    const auto index = known.find(rows.IndexOf(at));
    if (index == known.end()) {
      unknown.push_back(rows.IndexOf(at));
    } else if (const int64_t row = index->second.value.word(); rows.Has(row)) {
      elements[TableRankOf(id, at, rank)].push_back(rows.ElementOf(at, row));
    }
  }
  if (!unknown.empty()) {
    missing_.push_back(std::make_unique<ElementsJob>(cache_, indices, holder, std::move(unknown)));
    return;
  }
  for (auto& [of, list_of] : elements) Want(e_.input(id, 0), Listed(std::move(list_of)), of);
}

Bounded Evaluation::Taken(NodeId id, const Part& part) {
  const auto [list, rank] = part;
  const NodeId indices = e_.input(id, 1);
  const KnownElements& known = cache_.elements.at({indices, PartOf(indices, list, rank).second});
  const Rows rows(e_, id, rank);
  struct Elements {
    std::vector<int64_t> of_table;
    std::vector<size_t> places;  // in the result
  };
  std::map<int, Elements> elements;  // key: the rank whose copy of the table is read
  Bounded result;
  result.value.resize(lists_[list]->size());
  result.error.resize(lists_[list]->size());
  for (size_t i = 0; i < lists_[list]->size(); ++i) {
    const int64_t at = (*lists_[list])[i];
    const BoundedValue& index = known.at(rows.IndexOf(at));
    if (index.error > 0) result.error[i] = kUndetermined;
    const int64_t row = index.value.word();
    if (!rows.Has(row)) continue;
    Elements& own = elements[TableRankOf(id, at, rank)];
    own.of_table.push_back(rows.ElementOf(at, row));
    own.places.push_back(i);
  }
  for (auto& [of, own] : elements) {
    const Bounded& taken = Get(e_.input(id, 0), Listed(std::move(own.of_table)), of);
    for (size_t k = 0; k < own.places.size(); ++k) {
      const size_t from = taken.size() == 1 ? 0 : k;
      result.value[own.places[k]] = taken.value[from];
      result.error[own.places[k]] += taken.error[from];
    }
  }
  result.exact = absl::c_all_of(result.error, [](double error) { return error == 0; });
  return result;
}

bool Evaluation::HasElements(NodeId id, size_t i, int list, int rank,
                             const std::vector<int64_t>& elements) {
  const NodeId operand = e_.input(id, i);
  const int holder = PartOf(operand, list, rank).second;
  const KnownElements& known = cache_.elements[{operand, holder}];
  std::vector<int64_t> unknown;
  for (int64_t element : elements) {
    if (!known.contains(element)) unknown.push_back(element);
  }
  if (unknown.empty()) return true;
  absl::c_sort(unknown);
  unknown.erase(std::unique(unknown.begin(), unknown.end()), unknown.end());
  missing_.push_back(std::make_unique<ElementsJob>(cache_, operand, holder, std::move(unknown)));
  return false;
}

void Evaluation::WantPooled(NodeId id, const Part& part) {
  const auto [list, rank] = part;
  const Bags bags(e_, id, rank);
  const auto known = [&, list = list, rank = rank](size_t i) -> const KnownElements& {
    return cache_.elements[{e_.input(id, i), PartOf(e_.input(id, i), list, rank).second}];
  };
  std::vector<int64_t> offsets, indices;
  std::map<int, std::vector<int64_t>> rows;  // key: the rank whose copy of the table is read
  for (int64_t at : *lists_[list]) {
    for (int64_t offset : bags.OffsetsOf(bags.BagOf(at))) offsets.push_back(offset);
  }
  if (bags.offsets() >= 0 && !HasElements(id, bags.offsets(), list, rank, offsets)) return;
  const KnownElements* const ends = bags.offsets() < 0 ? nullptr : &known(bags.offsets());
  for (int64_t at : *lists_[list]) {
    const Bags::Bag bag = bags.At(bags.BagOf(at), ends);
    for (int64_t index = bag.begin; index < bag.end; ++index) indices.push_back(index);
  }
  const bool has_indices = HasElements(id, 1, list, rank, indices);
  const bool has_weights =
      bags.weights() < 0 || HasElements(id, bags.weights(), list, rank, indices);
  if (!has_indices || !has_weights) return;
  for (int64_t at : *lists_[list]) {
    const Bags::Bag bag = bags.At(bags.BagOf(at), ends);
    for (int64_t index = bag.begin; index < bag.end; ++index) {
      const int64_t row = known(1).at(index).value.word();
      if (bags.rows().Has(row))
        rows[TableRankOf(id, at, rank)].push_back(bags.rows().ElementOf(at, row));
    }
  }
  for (auto& [of, elements] : rows) Want(e_.input(id, 0), Listed(std::move(elements)), of);
}

Bounded Evaluation::Pooled(NodeId id, const Part& part) {
  const auto [list, rank] = part;
  const Bags bags(e_, id, rank);
  const auto known = [&, list = list, rank = rank](size_t i) -> const KnownElements& {
    return cache_.elements[{e_.input(id, i), PartOf(e_.input(id, i), list, rank).second}];
  };
  const KnownElements* const ends = bags.offsets() < 0 ? nullptr : &known(bags.offsets());
  // Per result: the elements of its rows, their weights, and the number of rows.
  struct Sum {
    BoundedLine rows, weights;
    int64_t count = 0;
    bool certain = true;
  };
  std::vector<Sum> sums(lists_[list]->size());
  struct Elements {
    std::vector<int64_t> of_table;
    std::vector<size_t> sums;
  };
  std::map<int, Elements> elements;  // key: the rank whose copy of the table is read
  for (size_t i = 0; i < sums.size(); ++i) {
    const int64_t at = (*lists_[list])[i];
    const Bags::Bag bag = bags.At(bags.BagOf(at), ends);
    sums[i].certain = bag.certain;
    for (int64_t index = bag.begin; index < bag.end; ++index) {
      const BoundedValue& taken = known(1).at(index);
      const int64_t row = taken.value.word();
      sums[i].certain &= taken.error == 0;
      sums[i].count += bags.Counts(row);
      if (!bags.rows().Has(row)) continue;
      const BoundedValue weight =
          bags.weights() < 0 ? BoundedValue{1, 0} : known(bags.weights()).at(index);
      sums[i].weights.value.push_back(weight.value.real());
      sums[i].weights.error.push_back(weight.error);
      Elements& own = elements[TableRankOf(id, at, rank)];
      own.of_table.push_back(bags.rows().ElementOf(at, row));
      own.sums.push_back(i);
    }
  }
  for (auto& [of, own] : elements) {
    const Bounded& taken = Get(e_.input(id, 0), Listed(std::move(own.of_table)), of);
    for (size_t k = 0; k < own.sums.size(); ++k) {
      const size_t from = taken.size() == 1 ? 0 : k;
      sums[own.sums[k]].rows.value.push_back(taken.value[from].real());
      sums[own.sums[k]].rows.error.push_back(taken.error[from]);
    }
  }
  Bounded result;
  for (const Sum& sum : sums) {
    BoundedValue pooled = BoundedDot(DType::kF32, sum.rows, sum.weights);
    if (bags.pooling() == Pooling::kMean && sum.count > 0) {
      const double count = static_cast<double>(sum.count);
      const double mean = pooled.value.real() / count;
      pooled.value = mean;
      if (std::isfinite(mean))
        pooled.error =
            ErrorOf(mean, pooled.error / count, std::fabs(mean), RoundingOf(DType::kF32, 1));
    }
    result.value.push_back(pooled.value);
    result.error.push_back(sum.certain ? pooled.error : kUndetermined);
  }
  result.exact = absl::c_all_of(result.error, [](double error) { return error == 0; });
  return result;
}

namespace {

/// The elements of the indices of scatter `id` that `rank` adds by.
std::vector<int64_t> IndicesOf(const Evaluated& e, NodeId id, int rank) {
  const NodeId indices = e.input(id, 1);
  const Shape& shape = e.type(indices).shape;
  const int dim = e.type(indices).layout.cut() ? e.type(indices).layout.dim : 0;
  const Range own = shape.empty() ? Range{0, 1} : e.PartOfDim(indices, dim, rank);
  const int64_t inner = shape.empty() ? 1 : SlicingOf(shape, dim, 1).inner;
  std::vector<int64_t> elements;
  for (int64_t at = 0; at < NumElements(shape); ++at) {
    const int64_t along = shape.empty() ? 0 : at / inner % shape[dim].size;
    if (along >= own.begin && along < own.end) elements.push_back(at);
  }
  return elements;
}

}  // namespace

void Evaluation::WantAdded(NodeId id, const Part& part) {
  const auto [list, rank] = part;
  const std::vector<int64_t> indices = IndicesOf(e_, id, rank);
  const bool weighted = e_.program.inputs(id).size() > 2;
  const bool has_indices = HasElements(id, 1, list, rank, indices);
  const bool has_weights = !weighted || HasElements(id, 2, list, rank, indices);
  if (!has_indices || !has_weights) return;
  std::vector<int64_t> updates = UpdatesOf(id, part).elements;
  if (!updates.empty()) Want(e_.input(id, 0), Listed(std::move(updates)), rank);
}

Evaluation::Updates Evaluation::UpdatesOf(NodeId id, const Part& part) {
  const auto [list, rank] = part;
  const NodeId indices = e_.input(id, 1);
  const KnownElements& known = cache_.elements.at({indices, PartOf(indices, list, rank).second});
  Updates updates;
  std::unordered_map<int64_t, std::vector<int64_t>> by_row;
  for (int64_t at : IndicesOf(e_, id, rank)) {
    const BoundedValue& index = known.at(at);
    updates.certain &= index.error == 0;
    by_row[index.value.word()].push_back(at);
  }
  const int64_t columns = SlicingOf(type(id).shape, 0, 1).inner;  // the result may have no rows
  const int64_t per_update =
      ScatterAdd::IndicesPerUpdate(type(e_.input(id, 0)).shape, type(indices).shape);
  for (size_t i = 0; i < lists_[list]->size(); ++i) {
    const int64_t at = (*lists_[list])[i];
    const auto row = by_row.find(at / columns);
    if (row == by_row.end()) continue;
    for (int64_t index : row->second) {
      updates.elements.push_back(index / per_update * columns + at % columns);
      updates.indices.push_back(index);
      updates.places.push_back(i);
    }
  }
  return updates;
}

Bounded Evaluation::Added(NodeId id, const Part& part) {
  const auto [list, rank] = part;
  Updates updates = UpdatesOf(id, part);
  const bool weighted = e_.program.inputs(id).size() > 2;
  const NodeId weights = weighted ? e_.input(id, 2) : -1;
  const KnownElements* const known =
      weighted ? &cache_.elements.at({weights, PartOf(weights, list, rank).second}) : nullptr;
  std::vector<BoundedLine> rows(lists_[list]->size()), factors(lists_[list]->size());
  if (!updates.elements.empty()) {
    const Bounded& values = Get(e_.input(id, 0), Listed(std::move(updates.elements)), rank);
    for (size_t k = 0; k < updates.places.size(); ++k) {
      const size_t from = values.size() == 1 ? 0 : k, place = updates.places[k];
      const BoundedValue factor = weighted ? known->at(updates.indices[k]) : BoundedValue{1, 0};
      rows[place].value.push_back(values.value[from].real());
      rows[place].error.push_back(values.error[from]);
      factors[place].value.push_back(factor.value.real());
      factors[place].error.push_back(factor.error);
    }
  }
  Bounded result;
  for (size_t i = 0; i < rows.size(); ++i) {
    const BoundedValue sum = BoundedDot(DType::kF32, rows[i], factors[i]);
    result.value.push_back(sum.value);
    result.error.push_back(updates.certain ? sum.error : kUndetermined);
  }
  result.exact = absl::c_all_of(result.error, [](double error) { return error == 0; });
  return result;
}

}  // namespace coconet
