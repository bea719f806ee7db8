#include "coconet/testing/random_program.h"

#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer.h"

namespace coconet {
namespace {

/// Draws operations at random and keeps those that infer.
class Generator {
 public:
  Generator(uint64_t seed, const RandomProgramOptions& options) : options_(options), random_(seed) {
    graph_.name = absl::StrCat("random", seed);
  }

  Graph Run() {
    Declare();
    const size_t wanted = graph_.nodes.size() + options_.operations;
    // Most draws infer or nearly do; the bound only keeps a bad seed from looping.
    for (int draws = 0; graph_.nodes.size() < wanted && draws < 100 * options_.operations; ++draws)
      Draw();
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (As<State>(graph_, id) != nullptr) UpdateWithSomething(id);
    }
    for (NodeId value = graph_.size(); --value >= 0;) {
      if (TryAdd(Output{"result"}, {value})) break;
    }
    return std::move(graph_);
  }

 private:
  template <class T>
  T Pick(absl::Span<const T> choices) {
    return choices[random_() %
                   choices.size()];  // not uniform_int_distribution: that differs between libraries
  }
  NodeId AnyValue() { return static_cast<NodeId>(random_() % graph_.nodes.size()); }
  bool Chance(int percent) { return static_cast<int>(random_() % 100) < percent; }

  bool TryAdd(Op op, std::vector<NodeId> inputs) {
    const NodeId id = graph_.Add(std::move(op), std::move(inputs));
    absl::StatusOr<TensorType> type = InferNode(graph_, id, types_);
    if (!type.ok()) {
      graph_.nodes.pop_back();
      return false;
    }
    types_.push_back(*std::move(type));
    return true;
  }

  DType AnyDType() { return options_.all_dtypes ? Pick<DType>(kAllDTypes) : DType::kF32; }

  void Declare() {
    static constexpr DType kFloats[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kF64};
    const DType dtype = options_.all_dtypes ? Pick<DType>(kFloats) : DType::kF32;
    const Shape vector = {"N"};
    const Shape other = options_.matrices && Chance(50) ? Shape{"M", "N"} : vector;
    CC_CHECK(TryAdd(Input{"g", {dtype, other, Layout::Local()}}, {}));
    CC_CHECK(TryAdd(Input{"x", {dtype, vector, Layout::Replicated()}}, {}));
    CC_CHECK(TryAdd(State{"s", {dtype, other, Layout::Auto()}}, {}));
    CC_CHECK(TryAdd(State{"t", {dtype, vector, Layout::Replicated()}}, {}));
    CC_CHECK(TryAdd(Input{"lr", {dtype, {}, Layout::Replicated()}}, {}));
  }

  void Draw() {
    static constexpr double kConstants[] = {-2, -0.75, 0, 0.5, 1, 3};
    static constexpr int kDims[] = {Layout::kFlat, 0, 1};
    switch (random_() % 16) {
      case 0:
        TryAdd(Const{Pick<double>(kConstants), types_[AnyValue()].dtype}, {});
        return;
      case 1:
        TryAdd(WorldSize{types_[AnyValue()].dtype}, {});
        return;
      case 2:
        TryAdd(Cast{AnyDType()}, {AnyValue()});
        return;
      case 3:
      case 4:
        TryAdd(AllReduce{Pick<ReduceKind>(kAllReduceKinds)}, {AnyValue()});
        return;
      case 5:
        if (options_.slices)
          TryAdd(ReduceScatter{Pick<ReduceKind>(kAllReduceKinds), Pick<int>(kDims)}, {AnyValue()});
        return;
      case 6:
        if (options_.slices) TryAdd(AllGather{}, {AnyValue()});
        return;
      default:
        DrawPointwise();
        return;
    }
  }

  void DrawPointwise() {
    const size_t row = random_() % AllPointwise().size();
    std::vector<NodeId> operands;
    for (int i = 0; i < AllPointwise()[row].arity; ++i) operands.push_back(AnyValue());
    TryAdd(Pointwise{static_cast<Pw>(row)}, std::move(operands));
  }

  /// The youngest value that fits, which may be the state itself.
  void UpdateWithSomething(NodeId state) {
    for (NodeId value = graph_.size(); --value >= 0;) {
      if (TryAdd(Update{}, {state, value})) return;
    }
  }

  const RandomProgramOptions options_;
  std::mt19937_64 random_;
  Graph graph_;
  std::vector<TensorType> types_;
};

}  // namespace

Graph RandomProgram(uint64_t seed, const RandomProgramOptions& options) {
  return Generator(seed, options).Run();
}

}  // namespace coconet
