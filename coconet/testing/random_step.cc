#include "coconet/testing/random_step.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/language/language.h"

namespace coconet {
namespace {

constexpr double kMostRanks = 8;

/// A tensor, and what its magnitude does not exceed.
struct Value {
  Tensor tensor;
  double bound;
};

/// Writes a program operation by operation, from values that are already there.
class Generator {
 public:
  Generator(uint64_t seed, const RandomStepOptions& options)
      : options_(options), random_(seed), program_(absl::StrCat("random", seed)) {
    static constexpr int kExtents[] = {1, 3, 5, 17, 63, 65, 129, 257};
    static constexpr int kColumns[] = {1, 3, 9, 33, 65};
    const int extent = Pick(kExtents);
    shape_ = {extent};
    if (options.matrices && Chance(40)) shape_ = {Pick(kColumns), Pick(kColumns)};
  }

  Graph Run() {
    Declare();
    const int reductions = 1 + Below(options_.max_reductions);
    for (int i = 0; i < reductions; ++i) {
      AddReduction();
      for (int k = 0; k < options_.operations / reductions; ++k) AddComputation();
    }
    for (const Value& state : states_) {
      if (Chance(85)) UpdateState(state);
      if (Chance(30)) AddComputation();
    }
    const bool has_local_output = Chance(20);
    program_.Output("result", Pick(shared_).tensor);
    if (has_local_output) program_.Output("own", Pick(local_).tensor);
    absl::StatusOr<Graph> graph = program_.graph();
    CC_CHECK(graph.ok());
    return *std::move(graph);
  }

 private:
  // Not the standard's distributions: those differ between libraries.
  int Below(int limit) { return static_cast<int>(random_() % limit); }
  bool Chance(int percent) { return Below(100) < percent; }
  template <class T>
  const T& Pick(const T* choices, size_t size) {
    return choices[random_() % size];
  }
  template <class T, size_t kSize>
  const T& Pick(const T (&choices)[kSize]) {
    return Pick(choices, kSize);
  }
  template <class T>
  const T& Pick(const std::vector<T>& choices) {
    return Pick(choices.data(), choices.size());
  }

  DType AnyDType() {
    static constexpr DType kTypes[] = {DType::kF32, DType::kF32, DType::kF16, DType::kBF16};
    return options_.narrow_types ? Pick(kTypes) : DType::kF32;
  }

  void Declare() {
    local_.push_back({program_.Input("g", AnyDType(), shape_, Layout::Local()), 1});
    if (Chance(50)) local_.push_back({program_.Input("h", AnyDType(), shape_, Layout::Local()), 1});
    states_.push_back({program_.State("p", AnyDType(), shape_, Layout::Replicated()), 1});
    states_.push_back({program_.State("m", DType::kF32, shape_), 1});
    if (Chance(60)) states_.push_back({program_.State("w", AnyDType(), shape_), 1});
    shared_ = states_;
    shared_.push_back({program_.Scalar("lr"), 1});
    if (Chance(40))
      shared_.push_back({program_.Input("x", AnyDType(), shape_, Layout::Replicated()), 1});
    if (Chance(20)) {
      const Tensor loss = program_.Input("loss", DType::kF32, {}, Layout::Local());
      shared_.push_back({AllReduce(ReduceKind::kSum, 0.125 * loss), 1});
    }
    if (shape_.size() == 2) DeclareRow();
    if (Chance(40)) DeclareAccumulator();
  }

  /// A vector that broadcasts into the matrices, with a state and a reduction of its own.
  void DeclareRow() {
    const Tensor gradient = program_.Input("gr", AnyDType(), {shape_[1]}, Layout::Local());
    const Tensor state = program_.State("r", DType::kF32, {shape_[1]});
    const Tensor sum = CastTo(DType::kF32, AllReduce(ReduceKind::kSum, gradient));
    const Tensor updated = Update(state, 0.5 * state + 0.25 * sum);
    shared_.push_back({Chance(50) ? state : updated, 0.5 + 0.25 * kMostRanks});
  }

  /// A state that each rank has for itself; its old or its new value is reduced.
  void DeclareAccumulator() {
    const Value gradient = local_[0];
    const Tensor sum = program_.State("acc", gradient.tensor.type().dtype, shape_, Layout::Local());
    const Tensor updated = Update(sum, 0.5 * sum + gradient.tensor);
    local_.push_back(Chance(50) ? Value{sum, 1} : Value{updated, 1.5});
  }

  void AddReduction() {
    Value value = Pick(local_);
    if (Chance(50)) {
      value = Computed(value, Pick(shared_));
      local_.push_back(value);
    }
    const ReduceKind kind = Chance(80) ? ReduceKind::kSum : Pick(kAllReduceKinds);
    const Tensor reduced = AllReduce(kind, value.tensor);
    const double bound = kind == ReduceKind::kSum ? value.bound * kMostRanks : value.bound;
    shared_.push_back(
        Tamed(Chance(50) ? Value{reduced / program_.world(), value.bound} : Value{reduced, bound}));
  }

  /// Prefers young values, so that chains get long.
  Value Operand() {
    const size_t youngest = std::min<size_t>(shared_.size(), 4);
    return Chance(60) ? Pick(shared_.data() + shared_.size() - youngest, youngest) : Pick(shared_);
  }

  void AddComputation() {
    shared_.push_back(Computed(Operand(), Operand()));
    if (options_.narrow_types && Chance(15)) {
      Value& value = shared_.back();
      value.tensor = CastTo(AnyDType(), value.tensor);
    }
  }

  Value Computed(Value a, Value b) {
    if (a.tensor.type().dtype != b.tensor.type().dtype) {
      a.tensor = CastTo(DType::kF32, a.tensor);
      b.tensor = CastTo(DType::kF32, b.tensor);
    }
    return Tamed(options_.choices && Chance(10) ? Chosen(a, b) : Combined(a, b));
  }

  Value Combined(const Value& a, const Value& b) {
    const Tensor &x = a.tensor, &y = b.tensor;
    switch (Below(18)) {
      case 0:
      case 1:
        return {x + y, a.bound + b.bound};
      case 2:
      case 3:
        return {x - y, a.bound + b.bound};
      case 4:
      case 5:
      case 6:
        return {x * y, a.bound * b.bound};
      case 7:
        return {x / (1.0 + y * y), a.bound};
      case 8:
        return {Min(x, y), std::max(a.bound, b.bound)};
      case 9:
        return {Max(-x, Relu(y)), std::max(a.bound, b.bound)};
      case 10:
        return {Sqrt(Abs(x) + 0.25), a.bound + 1};
      case 11:
        return {Rsqrt(x * x + 0.25), 2};
      case 12:
        return {Exp(-Abs(x)) + Log(1.0 + Abs(y)), 1 + b.bound};
      case 13:
        return {Tanh(x) * Sigmoid(y), 1};
      case 14:
        return {Gelu(x) - Silu(y), a.bound + b.bound};
      case 15:
        return {Sign(x) * y, b.bound};
      case 16: {
        if (x.type().shape.empty()) return {x * y, a.bound * b.bound};
        const Tensor at = CastTo(y.type().dtype, Iota(DType::kI32, x, 0));
        return {Select(at < 2.0, x, y), std::max(a.bound, b.bound)};
      }
      default:
        return {Pow(Abs(x) + 0.5, y.type().shape.empty() ? Tensor(2.0) : Tensor(0.75)),
                (a.bound + 1) * (a.bound + 1)};
    }
  }

  Value Chosen(const Value& a, const Value& b) {
    const Tensor condition = Chance(50) ? a.tensor < b.tensor : a.tensor >= 0.5 * b.tensor;
    return {Select(condition, b.tensor, 2.0 * a.tensor), std::max(2 * a.bound, b.bound)};
  }

  static Value Tamed(Value value) {
    if (value.bound <= 8) return value;
    const double scale = std::exp2(-std::ceil(std::log2(value.bound / 4)));
    return {scale * value.tensor, value.bound * scale};
  }

  void UpdateState(const Value& state) {
    const Value value = Operand();
    const Tensor old = state.tensor;
    const Tensor term = CastTo(DType::kF32, value.tensor) * 0.125;
    const Tensor updated =
        Update(old, CastTo(old.type().dtype, CastTo(DType::kF32, old) * 0.75 + term));
    if (Chance(50)) shared_.push_back({updated, 2});
  }

  const RandomStepOptions options_;
  std::mt19937_64 random_;
  Program program_;
  Shape shape_;
  std::vector<Value> local_, shared_, states_;
};

uint64_t Mixed(uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

}  // namespace

Graph RandomStep(uint64_t seed, const RandomStepOptions& options) {
  return Generator(seed, options).Run();
}

ElementSource RandomElements(uint64_t seed) {
  return [seed](const std::string& name, int rank, int64_t index) -> double {
    if (name == "step") return 1;
    uint64_t bits = Mixed(seed);
    for (char c : name) bits = Mixed(bits ^ static_cast<unsigned char>(c));
    bits = Mixed(bits ^ static_cast<uint64_t>(rank) << 48 ^ static_cast<uint64_t>(index));
    // Seven bits of mantissa fit into every float type.
    const double magnitude = static_cast<double>(bits % 129) / 128;
    const bool negative = (bits >> 32 & 1) && name != "v" && name != "lr";
    return negative ? -magnitude : magnitude;
  };
}

}  // namespace coconet
