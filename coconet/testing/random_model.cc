#include "coconet/testing/random_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/testing/value_pool.h"

namespace coconet {
namespace {

constexpr int kMostRanks = 8;
constexpr int kMostCollectives = 3;  // each may double the schedules
constexpr int kExtents[] = {1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 63, 65, 129, 257};

/// Draws one operation after the other on values that are there.
class Generator : private ValuePool {
 public:
  Generator(uint64_t seed, const RandomModelOptions& options)
      : ValuePool(seed, absl::StrCat("model", seed)), options_(options) {}

  Graph Run() {
    Declare();
    const int draws = 20 * options_.operations;  // most fit
    for (int done = 0, drawn = 0; done < options_.operations && drawn < draws; ++drawn)
      done += Keep(Draw());
    for (Drafted state : draft_.states()) {
      if (Chance(85)) Keep(UpdateOf(state));
      if (Chance(25)) Keep(Draw());
    }
    AddOutputs();
    return Canonicalize(draft_.graph()).graph;
  }

 private:
  // ---- Declarations -----------------------------------------------------------------------------

  void Declare() {
    const int dims = Pick({0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4});
    for (int d = 0; d < dims; ++d) shape_.push_back(Pick(kExtents));
    for (int d = 0; d < dims; ++d) {
      while (NumElements(shape_) > options_.max_elements && shape_[d].size > 1)
        shape_[d] = shape_[d].size / 2;
    }
    if (dims > 0 && Chance(4)) shape_[Below(dims)] = 0;
    dim_ = dims == 0 ? 0 : Pick({Layout::kFlat, 0, dims - 1, Below(dims)});
    seed_ = draft_.NewInput(DType::kI64, {}, Layout::Replicated());
    const int states = 1 + Below(3), inputs = 2 + Below(3);
    for (int i = 0; i < states; ++i) Keep(NewState());
    for (int i = 0; i < inputs; ++i) {
      const TensorType type = AnyType();
      Keep(draft_.NewInput(type.dtype, type.shape, type.layout));
    }
    Keep(draft_.NewInput(DType::kF32, shape_, Layout::Local()));
    CC_CHECK(!values().empty());
  }

  DType AnyDType() {
    static constexpr DType kUsual[] = {DType::kF32, DType::kF32, DType::kF16, DType::kBF16};
    return Chance(80) ? Pick(kUsual) : Pick(kAllDTypes);
  }

  /// What broadcasts into the program's shape.
  Shape AnyShape() {
    Shape shape = shape_;
    const int kind = Below(10);
    if (kind < 3)
      shape.erase(shape.begin(), shape.begin() + Below(static_cast<int64_t>(shape.size()) + 1));
    if (kind == 3 && !shape.empty()) shape[Below(static_cast<int64_t>(shape.size()))] = 1;
    return shape;
  }

  Layout AnyLayout() {
    const int kind = Below(10);
    if (kind < 5) return Layout::Local();
    return kind < 8 ? Layout::Replicated() : Layout::Sliced(dim_);
  }

  TensorType AnyType() {
    TensorType type;  // not in one expression, whose order of draws would be the compiler's
    type.dtype = AnyDType();
    type.shape = AnyShape();
    type.layout = AnyLayout();
    return type;
  }

  Drafted NewState() {
    const TensorType type = AnyType();
    return draft_.NewState(type.dtype, type.shape, Chance(60) ? Layout::Auto() : type.layout);
  }

  // ---- Operations -------------------------------------------------------------------------------

  int AnyDim(Drafted v) {
    const int dims = static_cast<int>(draft_.type(v).shape.size());
    return Chance(25) ? Layout::kFlat : dim_ >= 0 && dim_ < dims && Chance(60) ? dim_ : Below(dims);
  }

  Drafted Draw() {
    struct Row {
      int weight;
      Drafted (Generator::*draw)();
    };
    static constexpr Row kRows[] = {
        {30, &Generator::Combined}, {6, &Generator::OfOne},    {5, &Generator::Chosen},
        {6, &Generator::CastOf},    {10, &Generator::Folded},  {6, &Generator::Normalized},
        {10, &Generator::Product},  {6, &Generator::Viewed},   {6, &Generator::Dropped},
        {4, &Generator::Sharded},   {16, &Generator::Reduced}, {6, &Generator::Gathered},
        {4, &Generator::Rooted},    {4, &Generator::Sent},     {3, &Generator::RoundedAtRandom},
        {4, &Generator::Indices},   {6, &Generator::Looked},
    };
    int total = 0;
    for (const Row& row : kRows) total += row.weight;
    int at = Below(total);
    for (const Row& row : kRows) {
      if ((at -= row.weight) < 0) return (this->*row.draw)();
    }
    return {};
  }

  Drafted Combined() {
    const Drafted a = Numbers(Any());
    for (int i = 0; i < 6; ++i) {
      const Drafted b = draft_.Cast(draft_.type(a).dtype, Numbers(Any()));
      if (!b.there()) continue;
      const Drafted result =
          IsFloat(draft_.type(a).dtype) ? CombinedFloats(a, b) : CombinedIntegers(a, b);
      if (result.there()) return result;
    }
    return {};
  }

  Drafted CombinedIntegers(Drafted a, Drafted b) {
    const double sum = a.bound + b.bound, most = std::max(a.bound, b.bound);
    switch (Below(7)) {
      case 0:
        return draft_.Apply(Pw::kAdd, {a, b}, sum);
      case 1:
        return draft_.Apply(Pw::kSub, {a, b}, sum);
      case 2:
        return draft_.Apply(Pw::kMul, {a, b}, a.bound * b.bound);
      case 3:
        return draft_.Apply(Pw::kDiv, {a, b}, a.bound);
      case 4:
        return draft_.Apply(Pw::kMin, {a, b}, most);
      case 5:
        return draft_.Apply(Pw::kMul, {draft_.Apply(Pw::kSign, {a}, 1), b}, b.bound);
      default:
        return draft_.Apply(Pw::kMax, {a, draft_.Apply(Pw::kNeg, {b}, b.bound)}, most);
    }
  }

  Drafted CombinedFloats(Drafted a, Drafted b) {
    const double sum = a.bound + b.bound, most = std::max(a.bound, b.bound),
                 product = a.bound * b.bound;
    switch (Below(10)) {
      case 0:
      case 1:
        return draft_.Apply(Pw::kAdd, {a, b}, sum);
      case 2:
        return draft_.Apply(Pw::kSub, {a, b}, sum);
      case 3:
      case 4:
      case 5:
        return draft_.Apply(Pw::kMul, {a, b}, product);
      case 6:
        return draft_.Apply(Pw::kDiv,
                            {a, draft_.Plus(draft_.Apply(Pw::kMul, {b, b}, b.bound * b.bound), 1)},
                            a.bound);
      case 7:
        return draft_.Apply(Pw::kMin, {a, b}, most);
      case 8:
        return draft_.Apply(Pw::kMax, {b, draft_.Apply(Pw::kNeg, {a}, a.bound)}, most);
      default: {
        const Drafted base = draft_.Plus(draft_.Apply(Pw::kAbs, {a}, a.bound), 0.5);
        const double exponent = Pick({2.0, 0.75, 1.0});
        const double bound = std::max(2.0, std::pow(base.bound, exponent));
        return draft_.Apply(Pw::kPow, {base, draft_.Number(exponent, draft_.type(a).dtype)}, bound);
      }
    }
  }

  Drafted OfOne() {
    const Drafted a = Floats(Any());
    if (!a.there()) return a;
    const Drafted magnitude = draft_.Apply(Pw::kAbs, {a}, a.bound);
    switch (Below(11)) {
      case 0:
        return draft_.Apply(Pw::kSqrt, {draft_.Plus(magnitude, 0.25)}, std::sqrt(a.bound + 0.25));
      case 1:
        return draft_.Apply(Pw::kRsqrt, {draft_.Plus(magnitude, 0.25)}, 2);
      case 2:
        return draft_.Apply(Pw::kExp, {draft_.Apply(Pw::kNeg, {magnitude}, a.bound)}, 1);
      case 3:
        return draft_.Apply(Pw::kLog, {draft_.Plus(magnitude, 1)}, std::log(a.bound + 1));
      case 4:
        return draft_.Apply(Pw::kTanh, {a}, 1);
      case 5:
        return draft_.Apply(Pw::kSigmoid, {a}, 1);
      case 6:
        return draft_.Apply(Pw::kRelu, {a}, a.bound);
      case 7:
        return draft_.Apply(Pw::kGelu, {a}, a.bound);
      case 8:
        return draft_.Apply(Pw::kSilu, {a}, a.bound);
      case 9:
        return draft_.Apply(Pw::kSign, {a}, 1);
      default: {
        const DType dtype = draft_.type(a).dtype;
        const Drafted world = draft_.Add(WorldSize{dtype}, {}, kMostRanks);
        return draft_.Apply(Pw::kDiv, {a, world}, a.bound);
      }
    }
  }

  Drafted Chosen() {
    const Drafted a = Numbers(Any());
    const Drafted b = draft_.Cast(draft_.type(a).dtype, Numbers(Any()));
    const Drafted condition =
        draft_.Apply(Pick({Pw::kLt, Pw::kLe, Pw::kGt, Pw::kGe, Pw::kEq, Pw::kNe}), {a, b}, 1);
    if (Chance(25)) return condition;
    return draft_.Apply(Pw::kSelect, {condition, a, b}, std::max(a.bound, b.bound));
  }

  Drafted CastOf() {
    return draft_.Cast(
        Chance(70) ? Pick({DType::kF32, DType::kF16, DType::kBF16}) : Pick(kAllDTypes), Any());
  }

  Drafted Folded() {
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

  Drafted Normalized() {
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

  /// With another value that fits, or with a new input that does.
  Drafted Product() {
    Drafted a = Floats(AnyOf([](const TensorType& type) { return type.shape.size() >= 2; }));
    if (!a.there()) return a;
    if (draft_.type(a).dtype == DType::kF64) a = draft_.Cast(DType::kF32, a);
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

  Drafted ProductOf(const MatMul& op, Drafted a, Drafted b, bool first) {
    if (!first) std::swap(a, b);
    if (!a.there() || !b.there() || draft_.type(a).shape.size() < 2) return {};
    const Shape& shape = draft_.type(a).shape;
    const int64_t sums = shape[shape.size() - (op.transpose_a ? 2 : 1)].size;
    return draft_.Add(op, {a, b},
                      a.bound * b.bound * static_cast<double>(std::max<int64_t>(1, sums)));
  }

  /// Of a new operand that meets `a` as the product's first (or second) one.
  Shape FactorFor(const MatMul& op, Drafted a, bool first) {
    const Shape& shape = draft_.type(a).shape;
    const bool a_transposed = first ? op.transpose_a : op.transpose_b,
               b_transposed = first ? op.transpose_b : op.transpose_a;
    const Dim summed = shape[shape.size() - (first != a_transposed ? 1 : 2)];
    const Dim other = Pick({1, 2, 3, 5, 8, 16, 17});
    Shape result;
    if (Chance(40)) result.assign(shape.begin(), shape.end() - 2);
    const bool summed_first = first != b_transposed;
    result.push_back(summed_first ? summed : other);
    result.push_back(summed_first ? other : summed);
    return result;
  }

  Drafted Viewed() {
    const Drafted a = AnyWhole();
    if (!a.there()) return a;
    Shape shape = draft_.type(a).shape;
    const int rank = static_cast<int>(shape.size());
    switch (Below(3)) {
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
      default:
        return draft_.Add(Reshape{Reshaped(shape)}, {a}, a.bound);
    }
  }

  /// Back to the program's shape, flat, or with one dimension cut in two.
  Shape Reshaped(Shape shape) {
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

  Drafted Dropped() {
    const Drafted a = Floats(Any());
    const double rate = Pick({0.0, 0.1, 0.25, 0.5, 0.9});
    const Drafted seed = Chance(80) ? seed_ : draft_.Plus(seed_, 1);
    return draft_.Add(Dropout{rate, Below(3)}, {a, seed}, a.bound / (1 - rate));
  }

  Drafted RoundedAtRandom() {
    const Drafted a = draft_.Cast(DType::kF32, Floats(Any()));
    return draft_.Add(StochasticRound{Below(3)}, {a, seed_}, 1.01 * a.bound);
  }

  Drafted Indices() {
    const Drafted a = AnyTensor();
    if (!a.there()) return a;
    const Shape& shape = draft_.type(a).shape;
    const int dim = Below(static_cast<int64_t>(shape.size()));
    return draft_.Add(Iota{Chance(80) ? DType::kI32 : DType::kI64, dim}, {a},
                      static_cast<double>(shape[dim].size));
  }

  /// As many rows as the table has, mostly, so that the result meets other values; some of them out
  /// of range.
  Drafted Looked() {
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

  Drafted LookedUp(Drafted table, Drafted indices, int dim) {
    if (!indices.there()) return {};
    const int64_t rows = std::max<int64_t>(1, draft_.type(table).shape[dim].size),
                  elements = NumElements(draft_.type(table).shape) / rows *
                             NumElements(draft_.type(indices).shape);
    if (elements > options_.max_elements) return {};
    return draft_.Add(Gather{dim}, {table, indices}, table.bound);
  }

  Drafted Sharded() {
    const Drafted a = AnyWhole();
    return a.there() ? draft_.Add(Shard{AnyDim(a)}, {a}, a.bound) : a;
  }

  Drafted Reduced() {
    const Drafted a = AnyLocal();
    if (!a.there() || collectives_ >= kMostCollectives) return {};
    const ReduceKind kind = Chance(75) ? ReduceKind::kSum : Pick(kAllReduceKinds);
    const double bound = kind == ReduceKind::kSum ? kMostRanks * a.bound : a.bound;
    const bool scatters = !draft_.type(a).shape.empty() && Chance(35);
    const Drafted result = scatters ? draft_.Add(ReduceScatter{kind, AnyDim(a)}, {a}, bound)
                                    : draft_.Add(AllReduce{kind}, {a}, bound);
    collectives_ += result.there();
    return result;
  }

  Drafted Gathered() {
    const Drafted a = AnyOf([](const TensorType& type) { return type.layout.sliced(); });
    return draft_.Add(AllGather{}, {a}, a.bound);
  }

  Drafted Rooted() {
    if (!options_.rooted || collectives_ >= kMostCollectives) return {};
    const Drafted a = AnyLocal();
    Drafted result;
    switch (Below(3)) {
      case 0:
        result = draft_.Add(Broadcast{0}, {a}, a.bound);
        break;
      case 1:
        result = draft_.Add(ReduceTo{ReduceKind::kSum, 0}, {a}, kMostRanks * a.bound);
        break;
      default: {
        const Drafted sliced = AnyOf(
            [](const TensorType& type) { return type.layout.sliced() && type.shape.size() > 1; });
        if (sliced.there())
          result =
              draft_.Add(AllToAll{Below(static_cast<int64_t>(draft_.type(sliced).shape.size()))},
                         {sliced}, sliced.bound);
      }
    }
    collectives_ += result.there();
    return result;
  }

  Drafted Sent() {
    if (!options_.sends || collectives_ >= kMostCollectives) return {};
    const Drafted a = Any(), sent = draft_.Add(Send{Pick({1, -1})}, {a}, a.bound);
    collectives_ += sent.there();
    return sent;
  }

  // ---- Results ----------------------------------------------------------------------------------

  /// From the youngest value that fits.
  Drafted UpdateOf(Drafted state) {
    const DType dtype = draft_.type(state).dtype;
    for (size_t i = values().size(); i-- > 0;) {
      const Drafted term = draft_.Cast(dtype, values()[i]);
      Drafted next = term;
      if (IsFloat(dtype))
        next = draft_.Apply(Pw::kAdd, {draft_.Times(state, 0.75), draft_.Times(term, 0.125)}, 2);
      if (!IsFloat(dtype) && dtype != DType::kBool)
        next = draft_.Apply(Pw::kMin, {term, state}, std::max(term.bound, state.bound));
      const Drafted update = draft_.Add(Update{}, {state, next}, next.bound);
      if (update.there()) return update;
    }
    return {};
  }

  void AddOutputs() {
    const int outputs = 1 + Below(3);
    for (int i = 0; i < outputs; ++i) draft_.Add(Output{absl::StrCat("y", i)}, {Any()}, 0);
  }

  const RandomModelOptions options_;
  Shape shape_;          // that most tensors have
  int dim_ = 0;          // over which most slices are
  Drafted seed_;         // of dropout
  int collectives_ = 0;  // that reduce or move
};

}  // namespace

Graph RandomModel(uint64_t seed, const RandomModelOptions& options) {
  return Generator(seed, options).Run();
}

}  // namespace coconet
