#include "coconet/testing/tensor_draws.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace coconet {

Drafted TensorDraws::Folded() {
  const Drafted a = Numbers(AnyTensor());
  if (!a.there()) return a;
  const int rank = static_cast<int>(draft_.type(a).shape.size());
  std::vector<int> dims;
  for (int d = 0; d < rank && Chance(80); ++d) {
    if (Chance(50)) dims.push_back(d);
  }
  if (Chance(30)) dims = {rank - 1};
  const FoldKind kind = Pick({FoldKind::kSum, FoldKind::kMean, FoldKind::kMax, FoldKind::kMin});
  if (Chance(75)) return draft_.Whole(kind, a, dims);
  if (static_cast<int>(dims.size()) == rank) dims.clear();
  const double factor = kind == FoldKind::kSum ? static_cast<double>(draft_.Folded(a, dims)) : 1;
  return draft_.Add(Fold{kind, dims}, {a}, a.bound * factor);
}

Drafted TensorDraws::Normalized() {
  if (Chance(20)) {
    const Drafted of = Numbers(AnyTensor());
    if (!of.there()) return of;
    return draft_.ArgMax(Pick({DType::kI32, DType::kI64}), of,
                         Below(static_cast<int64_t>(draft_.type(of).shape.size())));
  }
  const Drafted a = Floats(AnyTensor());
  switch (Below(4)) {
    case 0:
      return draft_.Softmax(a);
    case 1:
      return draft_.LayerNorm(a);
    case 2:
      return draft_.RmsNorm(a);
    default:
      return draft_.Norm(a);
  }
}

Drafted TensorDraws::Product() {
  Drafted a = Floats(AnyOf([](const TensorType& type) { return type.shape.size() >= 2; }));
  if (!a.there()) return a;
  // GPUs' libraries take products of 8-bit floats of some shapes only.
  if (const DType dtype = draft_.type(a).dtype; dtype == DType::kF64 || IsFloat8(dtype))
    a = draft_.Cast(DType::kF32, a);
  MatMul op;
  op.transpose_a = Chance(30);
  op.transpose_b = Chance(30);
  const bool first = Chance(70);
  for (int i = 0; i < 4 && Chance(60); ++i) {
    const Drafted product = ProductOf(op, a, draft_.Cast(draft_.type(a).dtype, Any()), first);
    if (product.there()) return product;
  }
  const Shape shape = FactorFor(op, a, first);
  for (int i = 0; i < 6; ++i) {
    const int dim = Below(static_cast<int64_t>(shape.size()));
    const Layout layout = Pick({Layout::Replicated(), Layout::Local(), Layout::Sliced(dim)});
    const Drafted b = draft_.NewInput(draft_.type(a).dtype, shape, layout);
    const Drafted product = ProductOf(op, a, b, first);
    if (product.there()) return product;
    if (b.there()) draft_.Pop();
  }
  return {};
}

Drafted TensorDraws::ProductOf(const MatMul& op, Drafted a, Drafted b, bool first) {
  if (!first) std::swap(a, b);
  if (!a.there() || !b.there() || draft_.type(a).shape.size() < 2) return {};
  const Shape& shape = draft_.type(a).shape;
  const int64_t sums = shape[shape.size() - (op.transpose_a ? 2 : 1)].size;
  return draft_.Add(op, {a, b},
                    a.bound * b.bound * static_cast<double>(std::max<int64_t>(1, sums)));
}

Shape TensorDraws::FactorFor(const MatMul& op, Drafted a, bool first) {
  const Shape& shape = draft_.type(a).shape;
  const bool a_transposed = first ? op.transpose_a : op.transpose_b,
             b_transposed = first ? op.transpose_b : op.transpose_a;
  const Dim summed = shape[shape.size() - (first != a_transposed ? 1 : 2)];
  const Dim other = Pick({1, 2, 3, 5, 8, 16, 17});
  Shape result;
  if (Chance(50)) result.assign(shape.begin(), shape.end() - 2);
  for (Dim& extent : result) {
    if (Chance(20)) extent = 1;
  }
  if (!result.empty() && Chance(10)) result.erase(result.begin());
  const bool summed_first = first != b_transposed;
  result.push_back(summed_first ? summed : other);
  result.push_back(summed_first ? other : summed);
  return result;
}

Drafted TensorDraws::Viewed() {
  if (Chance(25)) return Joined();
  const Drafted a = Chance(70) ? AnyWhole() : AnyTensor();
  if (!a.there()) return a;
  Shape shape = draft_.type(a).shape;
  const int rank = static_cast<int>(shape.size());
  switch (Below(5)) {
    case 0: {
      std::vector<int> order(rank);
      std::iota(order.begin(), order.end(), 0);
      for (int d = rank; d > 1; --d) std::swap(order[d - 1], order[Below(d)]);
      return draft_.Add(Transpose{order}, {a}, a.bound);
    }
    case 1: {
      const int dim = Below(rank), begin = Below(shape[dim].size + 1);
      const int64_t end = begin + Below(shape[dim].size - begin + 1);
      return draft_.Add(SubTensor{dim, begin, end}, {a}, a.bound);
    }
    case 2: {
      std::vector<int> dims;
      for (int d = 0; d < rank; ++d) {
        if (Chance(50)) dims.push_back(d);
      }
      if (dims.empty()) dims.push_back(0);
      return draft_.Add(Reverse{dims}, {a}, a.bound);
    }
    case 3: {
      for (Dim& dim : shape) {
        if (dim.size == 1) dim = Below(4);
      }
      if (Chance(60)) shape.insert(shape.begin(), Below(4));
      return draft_.Add(Expand{shape}, {a}, a.bound);
    }
    default:
      return draft_.Add(Reshape{Reshaped(shape)}, {a}, a.bound);
  }
}

Shape TensorDraws::Reshaped(Shape shape) {
  if (Chance(30) && NumElements(shape) == NumElements(shape_)) return shape_;
  if (Chance(30)) return {NumElements(shape)};
  const int dim = Below(static_cast<int64_t>(shape.size()));
  for (int factor : {2, 3, 5}) {
    if (shape[dim].size % factor != 0) continue;
    shape[dim] = shape[dim].size / factor;
    shape.insert(shape.begin() + dim, factor);
    return shape;
  }
  shape.insert(shape.begin() + dim, 1);
  return shape;
}

Drafted TensorDraws::Joined() {
  const Drafted a = AnyTensor();
  if (!a.there()) return a;
  const TensorType type = draft_.type(a);
  const int dim = Below(static_cast<int64_t>(type.shape.size()));
  if (Chance(50)) {
    const int64_t extent = type.shape[dim].size, middle = Below(extent + 1);
    const Drafted last = draft_.Add(SubTensor{dim, middle, extent}, {a}, a.bound);
    if (!last.there()) return last;
    const Drafted first = draft_.Add(SubTensor{dim, 0, middle}, {a}, a.bound);
    return draft_.Add(Concat{dim}, {last, first}, a.bound);
  }
  std::vector<Drafted> operands = {a};
  int64_t elements = NumElements(type.shape);
  int inputs = 0;
  double bound = a.bound;
  for (int more = Below(4); more > 0; --more) {
    Shape shape = type.shape;
    shape[dim] = Pick({0, 1, 2, 5, 16});
    Drafted other = AnyOf([&](const TensorType& of) {
      return of.dtype == type.dtype && of.shape == type.shape && of.layout == type.layout;
    });
    if (!other.there() || Chance(50)) {
      other = draft_.NewInput(type.dtype, shape,
                              Pick({type.layout, Layout::Local(), Layout::Replicated()}));
      inputs += other.there();
    }
    if (!other.there()) continue;
    elements += NumElements(draft_.type(other).shape);
    bound = std::max(bound, other.bound);
    operands.insert(operands.begin() + Below(static_cast<int64_t>(operands.size()) + 1), other);
  }
  if (elements <= options_.max_elements) {
    const Drafted joined = draft_.Add(Concat{dim}, operands, bound);
    if (joined.there()) return joined;
  }
  for (; inputs > 0; --inputs) draft_.Pop();
  return {};
}

Drafted TensorDraws::Dropped() {
  const Drafted a = Floats(Any());
  const double rate = Pick({0.0, 0.1, 0.25, 0.5, 0.9});
  const Drafted seed = Chance(80) ? seed_ : draft_.Plus(seed_, 1);
  return draft_.Add(Dropout{rate, Below(3)}, {a, seed}, a.bound / (1 - rate));
}

Drafted TensorDraws::RoundedAtRandom() {
  const Drafted a = draft_.Cast(DType::kF32, Floats(Any()));
  return draft_.Add(StochasticRound{Below(3)}, {a, seed_}, 1.01 * a.bound);
}

Drafted TensorDraws::Looked() {
  const Drafted table = AnyTensor();
  if (!table.there()) return table;
  const Shape& shape = draft_.type(table).shape;
  const int dim = Below(static_cast<int64_t>(shape.size()));
  for (int i = 0; i < 3 && Chance(40); ++i) {
    const Drafted gathered = LookedUp(
        table, AnyOf([](const TensorType& type) { return type.dtype == DType::kI32; }), dim);
    if (gathered.there()) return gathered;
  }
  Shape rows = {Chance(70) ? shape[dim] : Dim(Pick({1, 2, 5, 8}))};
  if (Chance(25)) rows = Pick({Shape{}, Shape{2, 3}, Shape{4, 1}});
  for (int i = 0; i < 4; ++i) {
    const Layout sliced = rows.empty() ? Layout::Local() : Layout::Sliced(0);
    const Drafted indices =
        draft_.NewInput(DType::kI32, rows, Pick({Layout::Replicated(), Layout::Local(), sliced}));
    const bool inside = Chance(60);
    const Drafted gathered =
        LookedUp(table, inside ? draft_.Apply(Pw::kAbs, {indices}, indices.bound) : indices, dim);
    if (gathered.there()) return gathered;
    if (inside) draft_.Pop();
    draft_.Pop();
  }
  return {};
}

Drafted TensorDraws::Bagged() {
  Drafted table = Floats(AnyOf([](const TensorType& type) { return type.shape.size() >= 2; }));
  if (!table.there()) return table;
  if (draft_.type(table).dtype == DType::kF64) table = draft_.Cast(DType::kF32, table);
  const Shape& rows = draft_.type(table).shape;
  const bool ragged = rows.size() == 2 && Chance(50), weighted = Chance(30);
  const int bags = Chance(60) ? static_cast<int>(rows[rows.size() - 2].size) : Pick({1, 2, 5, 8}),
            length = Pick({0, 1, 2, 3, 7});
  Shape shape = {bags * length};
  if (!ragged) {
    shape.assign(rows.begin(), rows.end() - 2);
    shape.insert(shape.end(), {bags, length});
  }
  const double bound = table.bound * std::max(1, ragged ? bags * length : length);
  for (int i = 0; i < 4; ++i) {
    const int dim = Below(static_cast<int64_t>(shape.size()));
    const Layout layout = Pick({Layout::Replicated(), Layout::Local(), Layout::Sliced(dim)});
    std::vector<Drafted> operands = {table, draft_.NewInput(DType::kI32, shape, layout)};
    if (ragged) operands.push_back(draft_.NewInput(DType::kI32, {bags}, layout));
    if (weighted) operands.push_back(draft_.NewInput(DType::kF32, shape, layout));
    const bool means = !weighted && Chance(40);
    const Drafted bag =
        draft_.Add(EmbeddingBag{means ? Pooling::kMean : Pooling::kSum}, operands, bound);
    if (bag.there()) return bag;
    for (size_t pop = 1; pop < operands.size(); ++pop) {
      if (operands[pop].there()) draft_.Pop();
    }
  }
  return {};
}

Drafted TensorDraws::Added() {
  Drafted updates = Floats(AnyOf([](const TensorType& type) { return !type.shape.empty(); }));
  if (!updates.there()) return updates;
  if (draft_.type(updates).dtype == DType::kF64) updates = draft_.Cast(DType::kF32, updates);
  const TensorType type = draft_.type(updates);
  const int dims = 1 + Below(static_cast<int64_t>(type.shape.size()));
  Shape indexed(type.shape.begin(), type.shape.begin() + dims);
  if (Chance(30)) {
    Shape one_per_bag = type.shape;
    one_per_bag.insert(one_per_bag.begin() + dims, 1);
    updates = draft_.Add(Reshape{one_per_bag}, {updates}, updates.bound);
    if (!updates.there()) return updates;
    indexed.push_back(Pick({0, 1, 2, 3}));
  }
  Shape shape = {Chance(70) ? type.shape[0] : Dim(Pick({1, 2, 5, 8}))};
  shape.insert(shape.end(), type.shape.begin() + dims, type.shape.end());
  const bool alike = type.layout.sliced() && type.layout.dim < dims && type.layout.dim >= 0;
  const Layout layout =
      alike ? type.layout : Pick({Layout::Replicated(), Layout::Replicated(), Layout::Local()});
  std::vector<Drafted> operands = {updates, draft_.NewInput(DType::kI32, indexed, layout)};
  if (Chance(40)) operands.push_back(draft_.NewInput(DType::kF32, indexed, layout));
  const double bound =
      updates.bound * static_cast<double>(std::max<int64_t>(1, NumElements(indexed)));
  const Drafted added = draft_.Add(ScatterAdd{shape}, operands, bound);
  for (size_t pop = 1; pop < operands.size() && !added.there(); ++pop) {
    if (operands[pop].there()) draft_.Pop();
  }
  return added;
}

Drafted TensorDraws::LookedUp(Drafted table, Drafted indices, int dim) {
  if (!indices.there()) return {};
  const int64_t rows = std::max<int64_t>(1, draft_.type(table).shape[dim].size),
                elements = NumElements(draft_.type(table).shape) / rows *
                           NumElements(draft_.type(indices).shape);
  if (elements > options_.max_elements) return {};
  return draft_.Add(Gather{dim}, {table, indices}, table.bound);
}

}  // namespace coconet
