#include "coconet/testing/random_program.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/testing/tensor_draws.h"

namespace coconet {
namespace {

constexpr int kExtents[] = {1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 63, 65, 129, 257};

/// Draws one operation after the other on values that are there.
class Generator : private TensorDraws {
 public:
  Generator(uint64_t seed, const RandomProgramOptions& options)
      : TensorDraws(seed, absl::StrCat("random", seed), options) {}

  Graph Run() {
    Declare();
    const int draws = 20 * options_.operations;  // most fit
    for (int done = 0, drawn = 0; done < options_.operations && drawn < draws; ++drawn)
      done += Keep(Draw()).there();
    for (Drafted state : states_) {
      if (Chance(85)) Keep(UpdateOf(state));
      if (Chance(25)) Keep(Draw());
    }
    AddOutputs();
    return draft_.graph();
  }

 private:
  // ---- Declarations -----------------------------------------------------------------------------

  void Declare() {
    shape_ = AnyWholeShape();
    const int dims = static_cast<int>(shape_.size());
    dim_ = dims == 0 ? 0 : Pick({Layout::kFlat, 0, dims - 1, Below(dims)});
    if (Chance(20)) {
      share_.before = Below(6);
      share_.own = Below(6);
      share_.of = share_.before + share_.own + Below(6);
    }
    if (Chance(25)) {
      std::vector<int64_t> before(Below(4));
      for (int64_t& weight : before) weight = Below(6);
      owner_ = Cut::Owned();
      owner_->turn = Turn(std::move(before));
    }
    switch (options_.kind) {
      case ProgramKind::kSymbolic:
        return DeclareSymbolic();
      case ProgramKind::kStep:
        return DeclareStep();
      case ProgramKind::kModel:
        return DeclareModel();
    }
  }

  Shape AnyWholeShape() {
    if (options_.kind == ProgramKind::kSymbolic)
      return options_.max_dims > 1 && Chance(50) ? Shape{"M", "N"} : Shape{"N"};
    const bool is_step = options_.kind == ProgramKind::kStep;
    const int drawn = is_step ? Pick({1, 1, 1, 2, 2}) : Pick({0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4});
    const int dims = std::min(drawn, options_.max_dims);
    Shape shape;
    for (int d = 0; d < dims; ++d) shape.push_back(Pick(kExtents));
    for (int d = 0; d < dims; ++d) {
      while (NumElements(shape) > options_.max_elements && shape[d].size > 1)
        shape[d] = shape[d].size / 2;
    }
    if (!is_step && dims > 0 && Chance(4)) shape[Below(dims)] = 0;
    return shape;
  }

  Drafted NewInput(DType dtype, const Shape& shape, Layout layout) {
    return Keep(draft_.NewInput(dtype, shape, layout));
  }

  void NewState(DType dtype, const Shape& shape, Layout layout) {
    const Drafted state = Keep(draft_.NewState(dtype, shape, layout));
    if (state.there()) states_.push_back(state);
  }

  void DeclareSymbolic() {
    static constexpr DType kFloats[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kF64};
    const DType dtype = options_.all_dtypes ? Pick(kFloats) : DType::kF32;
    NewInput(dtype, shape_, Layout::Local());
    NewInput(dtype, {"N"}, Layout::Replicated());
    NewState(dtype, shape_, Layout::Auto());
    NewState(dtype, {"N"}, Layout::Replicated());
    NewInput(dtype, {}, Layout::Replicated());
  }

  void DeclareStep() {
    const Drafted gradient = NewInput(AnyDType(), shape_, Layout::Local());
    if (Chance(50)) NewInput(AnyDType(), shape_, Layout::Local());
    NewState(AnyDType(), shape_, Layout::Replicated());
    NewState(DType::kF32, shape_, Layout::Auto());
    if (Chance(60)) NewState(AnyDType(), shape_, Layout::Auto());
    NewInput(DType::kF32, {}, Layout::Replicated());
    if (Chance(40)) NewInput(AnyDType(), shape_, Layout::Replicated());
    if (Chance(20)) Keep(Sum(draft_.NewInput(DType::kF32, {}, Layout::Local())));
    // A vector that broadcasts into the matrices, with a state and a reduction of its own.
    if (shape_.size() == 2)
      Accumulate(Sum(draft_.NewInput(AnyDType(), {shape_[1]}, Layout::Local())), Layout::Auto());
    if (Chance(40)) Accumulate(gradient, Layout::Local());
    Keep(ReducedGradient());
  }

  Drafted Sum(Drafted a) {
    return draft_.Add(AllReduce{ReduceKind::kSum}, {a}, kMostRanks * a.bound);
  }

  /// Into a state of its own, whose old or new value later operations take.
  void Accumulate(Drafted term, Layout layout) {
    const TensorType& type = draft_.type(term);
    const Drafted state = draft_.NewState(type.dtype, type.shape, layout),
                  updated = draft_.Add(Update{}, {state, Next(state, term)}, 2);
    Keep(Chance(50) ? state : updated);
  }

  void DeclareModel() {
    seed_ = draft_.NewInput(DType::kI64, {}, Layout::Replicated());
    const int states = 1 + Below(3), inputs = 2 + Below(3);
    for (int i = 0; i < states; ++i) {
      const TensorType type = AnyType();
      NewState(type.dtype, type.shape, Chance(60) ? Layout::Auto() : type.layout);
    }
    for (int i = 0; i < inputs; ++i) {
      const TensorType type = AnyType();
      NewInput(type.dtype, type.shape, type.layout);
    }
    NewInput(DType::kF32, shape_, Layout::Local());
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
    if (kind < 8) return Layout::Replicated();
    if (owner_.has_value() && Chance(60)) return Layout::Sliced(*owner_);
    Layout sliced = Layout::Sliced(dim_);
    sliced.share = share_;
    return sliced;
  }

  TensorType AnyType() {
    TensorType type;  // not in one expression, whose order of draws would be the compiler's
    type.dtype = AnyDType();
    type.shape = AnyShape();
    type.layout = AnyLayout();
    return type;
  }

  // ---- Operations -------------------------------------------------------------------------------

  Drafted Draw() {
    struct Row {
      Drafted (Generator::*draw)();
      int weights[3];  // by kind
    };
    static constexpr Row kRows[] = {
        // symbolic, step, model
        {&Generator::Function, {60, 0, 0}},
        {&Generator::Constant, {6, 0, 0}},
        {&Generator::World, {6, 0, 0}},
        {&Generator::Combined, {0, 44, 30}},
        {&Generator::OfOne, {0, 36, 8}},
        {&Generator::Chosen, {0, 8, 5}},
        {&Generator::Masked, {0, 4, 2}},
        {&Generator::BitsOf, {0, 2, 2}},
        {&Generator::CastOf, {6, 10, 7}},
        {&Generator::AllReduced, {12, 0, 8}},
        {&Generator::Scattered, {6, 0, 6}},
        {&Generator::Gathered, {6, 0, 6}},
        {&Generator::ReducedGradient, {0, 8, 3}},
        {&Generator::Sharded, {0, 0, 4}},
        {&Generator::Rooted, {0, 0, 3}},
        {&Generator::Exchanged, {0, 0, 4}},
        {&Generator::Sent, {0, 0, 4}},
        {&Generator::Folded, {0, 0, 10}},
        {&Generator::Normalized, {0, 0, 6}},
        {&Generator::Product, {0, 0, 10}},
        {&Generator::Viewed, {0, 0, 6}},
        {&Generator::Dropped, {0, 0, 6}},
        {&Generator::RoundedAtRandom, {0, 0, 3}},
        {&Generator::Indices, {0, 0, 4}},
        {&Generator::Looked, {0, 0, 6}},
        {&Generator::Bagged, {0, 0, 5}},
        {&Generator::Counted, {4, 2, 4}},
        {&Generator::Added, {0, 0, 5}},
    };
    const auto weight = [this](const Row& row) {
      return row.weights[static_cast<size_t>(options_.kind)];
    };
    int total = 0;
    for (const Row& row : kRows) total += weight(row);
    int at = Below(total);
    for (const Row& row : kRows) {
      if ((at -= weight(row)) < 0) return (this->*row.draw)();
    }
    return {};
  }

  Cut AnyCut(Drafted v) {
    const int dims = static_cast<int>(draft_.type(v).shape.size());
    if (owner_.has_value() && Chance(60)) return *owner_;
    return Chance(25) ? Layout::kFlat : dim_ >= 0 && dim_ < dims && Chance(60) ? dim_ : Below(dims);
  }

  /// Absent once the program has as many reductions as it may have.
  Drafted Communicated(Op op, Drafted a, double bound) {
    if (communications_ >= options_.max_communications) return {};
    const Drafted result = draft_.Add(std::move(op), {a}, bound);
    communications_ += result.there();
    return result;
  }

  ReduceKind AnyReduceKind() {
    const bool is_sum = options_.kind != ProgramKind::kSymbolic && Chance(75);
    return is_sum ? ReduceKind::kSum : Pick(kAllReduceKinds);
  }

  static double BoundOf(ReduceKind kind, Drafted a) {
    return kind == ReduceKind::kSum ? kMostRanks * a.bound : a.bound;
  }

  Drafted Reduced(Drafted a) {
    const ReduceKind kind = AnyReduceKind();
    return Communicated(AllReduce{kind}, a, BoundOf(kind, a));
  }

  Drafted AllReduced() { return Reduced(AnyLocal()); }

  /// Reduces a local value or what is computed from it, and may average it.
  Drafted ReducedGradient() {
    Drafted a = AnyLocal();
    if (a.there() && Chance(50)) a = Keep(Combined(a, Any()));
    const Drafted reduced = Reduced(a);
    return Chance(50) ? Averaged(reduced, a.bound) : reduced;
  }

  Drafted Scattered() {
    const Drafted a = AnyLocal();
    if (!a.there() || draft_.type(a).shape.empty()) return {};
    const ReduceKind kind = AnyReduceKind();
    return Communicated(ReduceScatter{kind, AnyCut(a)}, a, BoundOf(kind, a));
  }

  Drafted Gathered() {
    const Drafted a = AnyOf([](const TensorType& type) { return type.layout.sliced(); });
    return draft_.Add(AllGather{}, {a}, a.bound);
  }

  Drafted Sharded() {
    const Drafted a = AnyWhole();
    return a.there() ? draft_.Add(Shard{AnyCut(a)}, {a}, a.bound) : a;
  }

  Drafted Rooted() {
    const Drafted a = AnyLocal();
    return Chance(50) ? Communicated(Broadcast{0}, a, a.bound)
                      : Communicated(ReduceTo{ReduceKind::kSum, 0}, a, kMostRanks * a.bound);
  }

  Drafted Exchanged() {
    const Drafted a =
        AnyOf([](const TensorType& type) { return type.layout.sliced() && type.shape.size() > 1; });
    if (!a.there()) return a;
    const Cut other = Below(static_cast<int64_t>(draft_.type(a).shape.size())),
              to =
                  owner_.has_value() && draft_.type(a).layout.cut() && Chance(50) ? *owner_ : other;
    return Communicated(AllToAll{to}, a, a.bound);
  }

  Drafted Sent() {
    const Drafted a = Any();
    return Communicated(Send{Pick({1, -1})}, a, a.bound);
  }

  // ---- Results ----------------------------------------------------------------------------------

  /// A state's next value, in which some of the term is.
  Drafted Next(Drafted state, Drafted term) {
    const DType dtype = draft_.type(state).dtype;
    if (options_.kind == ProgramKind::kSymbolic || dtype == DType::kBool)
      return draft_.Cast(dtype, term);
    if (!IsFloat(dtype)) {
      term = draft_.Cast(dtype, term);
      return draft_.Apply(Pw::kMin, {term, state}, std::max(term.bound, state.bound));
    }
    const DType wide = Chance(50) ? DType::kF32 : dtype;
    const Drafted old = draft_.Times(draft_.Cast(wide, state), 0.75),
                  moved = draft_.Times(draft_.Cast(wide, term), 0.125);
    return draft_.Cast(dtype, draft_.Apply(Pw::kAdd, {old, moved}, 2));
  }

  /// With one of the youngest values that fit.
  Drafted UpdateOf(Drafted state) {
    const int64_t all = static_cast<int64_t>(values().size());
    for (int64_t i = all - Below(std::min<int64_t>(all, 5)); i-- > 0;) {
      const Drafted next = Next(state, values()[i]),
                    update = draft_.Add(Update{}, {state, next}, next.bound);
      if (update.there()) return update;
    }
    return {};
  }

  void AddOutputs() {
    const int outputs = 1 + Below(3);
    for (int i = 0; i < outputs; ++i) {
      const Drafted result = Chance(10) ? AnyLocal() : Any();
      draft_.Add(Output{absl::StrCat("y", i)}, {result}, 0);
    }
  }

  int dim_ = 0;               // over which most slices are
  Share share_;               // and by which weights
  std::optional<Cut> owner_;  // of some tensors
  int communications_ = 0;
  std::vector<Drafted> states_;  // to be updated
};

}  // namespace

Graph RandomProgram(uint64_t seed, const RandomProgramOptions& options) {
  return Generator(seed, options).Run();
}

}  // namespace coconet
