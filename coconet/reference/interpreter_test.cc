#include "coconet/reference/interpreter.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <tuple>

#include "coconet/ir/infer.h"
#include "coconet/language/text.h"
#include "coconet/testing/random_elements.h"
#include "coconet/testing/random_program.h"
#include "coconet/workloads/workloads.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using testing::Test;

Graph Program(const std::string& statements) {
  absl::StatusOr<Graph> g = Parse("coconet 1\nprogram test\n" + statements);
  EXPECT_TRUE(g.ok()) << g.status();
  return g.ok() ? *g : Graph{};
}

/// 100 * rank + index, so that values tell where they come from.
double Telling(const std::string&, int rank, int64_t index) {
  return 100.0 * rank + static_cast<double>(index);
}

std::vector<Number> Values(const Graph& g, int ranks, const std::string& result, int rank,
                           const std::vector<int64_t>& indices,
                           const ElementSource& source = Telling) {
  absl::StatusOr<Interpreter> interpreter = Interpreter::Create(g, ranks);
  EXPECT_TRUE(interpreter.ok()) << interpreter.status();
  absl::StatusOr<Expected> expected = interpreter->Evaluate(result, rank, indices, source);
  EXPECT_TRUE(expected.ok()) << expected.status();
  return expected->value;
}

std::vector<int64_t> AllIndices(const TensorType& type) {
  std::vector<int64_t> indices(NumElements(type.shape));
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

TEST(Interpreter, ReducesOverRanks) {
  const std::string inputs = "input g : f32[8] local\n";
  EXPECT_EQ(Values(Program(inputs + "output y = all_reduce(sum, g)\n"), 3, "y", 1, {2, 5}),
            (std::vector<Number>{306, 315}));
  EXPECT_EQ(Values(Program(inputs + "output y = all_reduce(max, g)\n"), 3, "y", 0, {2}),
            std::vector<Number>{202});
  EXPECT_EQ(Values(Program(inputs + "output y = all_reduce(min, g) / world\n"), 4, "y", 0, {2}),
            std::vector<Number>{0.5});
}

TEST(Interpreter, ScheduledCommunicationMeansTheSame) {
  const Graph g =
      Program("input g : f32[8] local\noutput y = all_gather(2 * reduce_scatter(sum, g, 0))\n");
  EXPECT_EQ(Values(g, 3, "y", 2, {7}), std::vector<Number>{642});
}

TEST(Interpreter, LocalResultsDifferByRank) {
  const Graph g =
      Program("input g : f32[8] local\ninput x : f32[8] replicated\noutput y = g - x\n");
  EXPECT_EQ(Values(g, 3, "y", 2, {1, 3}), (std::vector<Number>{200, 200}));
}

TEST(Interpreter, BroadcastsAsNumPyDoes) {
  const Graph g = Program(R"(
input a : f32[3, 5] replicated
input row : f32[5] replicated
input column : f32[3, 1] replicated
input s : f32[] replicated
output y = a + 1000 * row + 100000 * column + s
)");
  // Element [2, 4].
  EXPECT_EQ(Values(g, 1, "y", 0, {14}), std::vector<Number>{14 + 4000 + 200000});
  EXPECT_EQ(Values(g, 1, "y", 0, {7, 0}), (std::vector<Number>{7 + 2000 + 100000, 0}));
}

TEST(Interpreter, AStateIsItsOldValueAndAnUpdateItsNewOne) {
  const Graph g = Program("state m : f32[8]\nnew = update(m, 2 * m)\noutput y = new - m\n");
  EXPECT_EQ(Values(g, 1, "m", 0, {3}), std::vector<Number>{6});
  EXPECT_EQ(Values(g, 1, "y", 0, {3}), std::vector<Number>{3});
}

TEST(Interpreter, ReadsNoMoreThanItNeeds) {
  const Graph g = Program("state p : f32[8]\ninput x : f32[8] replicated\nupdate(p, x)\n");
  std::vector<std::string> read;
  const ElementSource source = [&](const std::string& name, int, int64_t index) {
    read.push_back(name + std::to_string(index));
    return 0.0;
  };
  Values(g, 4, "p", 3, {5}, source);
  EXPECT_EQ(read, std::vector<std::string>{"x5"});
}

TEST(Interpreter, WindowsAgreeWithTheWhole) {
  const Graph g = RandomProgram(7, {.kind = ProgramKind::kStep});
  absl::StatusOr<Interpreter> interpreter = Interpreter::Create(g, 2);
  ASSERT_TRUE(interpreter.ok()) << interpreter.status();
  const std::string result = interpreter->results()[0];
  const std::vector<int64_t> all = AllIndices(interpreter->type(result));
  const absl::StatusOr<Expected> whole = interpreter->Evaluate(result, 0, all, RandomElements(7));
  for (int64_t index : {all.front(), all[all.size() / 2], all.back()}) {
    const absl::StatusOr<Expected> one =
        interpreter->Evaluate(result, 0, {index}, RandomElements(7));
    EXPECT_EQ(one->value[0], whole->value[index]);
    EXPECT_EQ(one->error[0], whole->error[index]);
  }
}

TEST(Interpreter, IsCertainOfIntegersThatWereFloats) {
  const Graph g = Program(
      "output y = cast(i64, cast(f32, const(9007199254740993, i64)))\n"
      "output bits = bit_cast(i32, cast(f32, const(16777217, i32)))\n");
  const absl::StatusOr<Interpreter> interpreter = Interpreter::Create(g, 1);
  ASSERT_TRUE(interpreter.ok()) << interpreter.status();
  for (const auto& [name, want] : {std::pair("y", int64_t{1} << 53), {"bits", 0x4b800000}}) {
    const absl::StatusOr<Expected> expected = interpreter->Evaluate(name, 0, {0}, Telling);
    ASSERT_TRUE(expected.ok()) << expected.status();
    EXPECT_EQ(expected->value[0], want);
    EXPECT_EQ(expected->error[0], 0);
  }
}

TEST(Interpreter, NamesResultsInGraphOrder) {
  absl::StatusOr<Interpreter> interpreter = Interpreter::Create(
      Program("state b : f32[2]\nstate a : f32[2]\noutput y = b\nupdate(b, a)\nupdate(a, b)\n"), 1);
  ASSERT_TRUE(interpreter.ok()) << interpreter.status();
  EXPECT_EQ(interpreter->results(), (std::vector<std::string>{"y", "b", "a"}));
  EXPECT_EQ(Text(interpreter->type("y")), "f32[2] replicated");
}

TEST(Interpreter, RefusesWhatItCannotEvaluate) {
  EXPECT_EQ(Interpreter::Create(Program("input x : f32[N] replicated\noutput y = x\n"), 1)
                .status()
                .message(),
            "interpret input x : f32[N] replicated: shape [N] holds a symbol; bind sizes first");
  const Graph g = Program("input x : f32[4] replicated\noutput y = x\n");
  EXPECT_EQ(Interpreter::Create(g, 0).status().message(),
            "interpret: want 1 or more ranks, have 0");
  absl::StatusOr<Interpreter> interpreter = Interpreter::Create(g, 2);
  ASSERT_TRUE(interpreter.ok()) << interpreter.status();
  EXPECT_EQ(interpreter->Evaluate("z", 0, {0}, Telling).status(),
            absl::NotFoundError("evaluate z: the program's results are y"));
  EXPECT_EQ(interpreter->Evaluate("y", 2, {0}, Telling).status().message(),
            "evaluate y: want a rank below 2, have 2");
  EXPECT_EQ(interpreter->Evaluate("y", 0, {4}, Telling).status().message(),
            "evaluate y: want an index below 4, have 4");
  EXPECT_TRUE(interpreter->Evaluate("y", 0, {}, Telling)->value.empty());
}

// ---- Error bounds -------------------------------------------------------------------------------

/// What an implementation may do: every operation is rounded to its dtype, or, where that is
/// narrower than f32, to f32 only; ranks are summed in some order.
class Implementation {
 public:
  Implementation(const Graph& g, int ranks, const ElementSource& source, bool keeps_f32,
                 uint64_t seed)
      : g_(g), types_(*InferTypes(g)), source_(source), keeps_f32_(keeps_f32), order_(ranks) {
    std::iota(order_.begin(), order_.end(), 0);
    std::shuffle(order_.begin(), order_.end(), std::mt19937_64(seed));
  }

  double Of(NodeId id, int rank, int64_t index) {
    const auto key = std::make_tuple(id, rank, index);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    return known_[key] = Compute(id, rank, index);
  }

 private:
  static double Rounded(DType dtype, double value) { return Stored(dtype, value).real(); }
  double Result(NodeId id, double value) const {
    const DType dtype = types_[id].dtype;
    const bool narrow = dtype == DType::kF16 || dtype == DType::kBF16;
    return Rounded(narrow && keeps_f32_ ? DType::kF32 : dtype, value);
  }

  /// An integer where the node's type has integers.
  Number Held(NodeId id, const Number& value) const {
    const DType dtype = types_[id].dtype;
    return IsFloat(dtype) ? value : Stored(dtype, value);
  }
  double Read(NodeId id, const std::string& name, int rank, int64_t index) const {
    return Held(id, source_(name, rank, index)).real();
  }

  /// All shapes of the programs here are vectors, matrices, rows or scalars.
  int64_t Broadcast(int64_t index, NodeId operand) const {
    return index % std::max<int64_t>(NumElements(types_[operand].shape), 1);
  }

  double Reduced(NodeId id, ReduceKind kind, int64_t index) {
    const NodeId operand = g_.nodes[id].inputs[0];
    double result = Of(operand, order_[0], index);
    for (size_t i = 1; i < order_.size(); ++i) {
      const double more = Of(operand, order_[i], index);
      switch (kind) {
        case ReduceKind::kSum:
          result = Rounded(types_[id].dtype, result + more);
          break;
        case ReduceKind::kMax:
          result = std::max(result, more);
          break;
        case ReduceKind::kMin:
          result = std::min(result, more);
          break;
      }
    }
    return result;
  }

  double Compute(NodeId id, int rank, int64_t index) {
    const auto& inputs = g_.nodes[id].inputs;
    if (const auto* op = As<Input>(g_, id)) return Read(id, op->name, rank, index);
    if (const auto* op = As<State>(g_, id)) {
      return Read(id, op->name, op->type.layout == Layout::Local() ? rank : 0, index);
    }
    if (const auto* op = As<Const>(g_, id)) return Result(id, op->value.real());
    if (const auto* op = As<Count>(g_, id))
      return Result(id, static_cast<double>(NumElements(op->shape)));
    if (As<WorldSize>(g_, id)) return static_cast<double>(order_.size());
    if (const auto* op = As<AllReduce>(g_, id)) return Reduced(id, op->kind, index);
    if (const auto* op = As<Pointwise>(g_, id)) {
      Number args[3];
      for (size_t i = 0; i < inputs.size(); ++i)
        args[i] = Held(inputs[i], Of(inputs[i], rank, Broadcast(index, inputs[i])));
      return Result(id, EvalPointwise(op->fn, types_[inputs.back()].dtype, args).real());
    }
    if (const auto* op = As<Iota>(g_, id)) {
      const Shape& shape = types_[id].shape;
      return index / SlicingOf(shape, op->dim, 1).inner % shape[op->dim].size;
    }
    const double operand = Of(inputs.back(), rank, index);
    if (const auto* op = As<BitCast>(g_, id))
      return BitCastElement(types_[inputs[0]].dtype, op->dtype, operand).real();
    return As<Cast>(g_, id) ? Result(id, operand) : operand;
  }

  const Graph& g_;
  const std::vector<TensorType> types_;
  const ElementSource source_;
  const bool keeps_f32_;
  std::vector<int> order_;
  std::map<std::tuple<NodeId, int, int64_t>, double> known_;
};

/// An input that is not Local is asked of rank 0.
ElementSource SameWhereReplicated(const Graph& g, const ElementSource& source) {
  std::map<std::string, bool> local;
  for (NodeId id = 0; id < g.size(); ++id) {
    if (const auto* op = As<Input>(g, id)) local[op->name] = op->type.layout == Layout::Local();
    if (const auto* op = As<State>(g, id)) local[op->name] = op->type.layout == Layout::Local();
  }
  return [local, source](const std::string& name, int rank, int64_t index) {
    return source(name, local.at(name) ? rank : 0, index);
  };
}

NodeId ResultNode(const Graph& g, const std::string& name) {
  for (NodeId id = 0; id < g.size(); ++id) {
    if (const auto* output = As<Output>(g, id); output != nullptr && output->name == name)
      return id;
    if (As<Update>(g, id) && As<State>(g, g.nodes[id].inputs[0])->name == name) return id;
  }
  ADD_FAILURE() << "no result " << name;
  return -1;
}

/// Checks every element of every result of one implementation, and returns how many bounds are
/// below `useful`.
double ShareOfUsefulBounds(const Graph& g, int ranks, uint64_t seed, double useful) {
  const ElementSource source = SameWhereReplicated(g, RandomElements(seed, g));
  absl::StatusOr<Interpreter> interpreter = Interpreter::Create(g, ranks);
  EXPECT_TRUE(interpreter.ok()) << interpreter.status();
  Implementation implementation(g, ranks, source, /*keeps_f32=*/seed % 2 == 0, seed);
  int64_t elements = 0, useful_bounds = 0;
  for (const std::string& result : interpreter->results()) {
    const int rank = static_cast<int>(seed % ranks);
    const std::vector<int64_t> indices = AllIndices(interpreter->type(result));
    const absl::StatusOr<Expected> expected = interpreter->Evaluate(result, rank, indices, source);
    for (int64_t i : indices) {
      const double got = implementation.Of(ResultNode(g, result), rank, i);
      EXPECT_LE(std::fabs(got - expected->value[i].real()), expected->error[i])
          << "seed " << seed << ", " << result << "[" << i << "] = " << got << ", want "
          << NumberText(expected->value[i]);
      ++elements;
      useful_bounds += expected->error[i] < useful;
    }
    if (Test::HasFailure()) break;
  }
  return static_cast<double>(useful_bounds) / static_cast<double>(elements);
}

TEST(ErrorBounds, HoldForRandomProgramsInF32) {
  double share = 0;
  constexpr int kPrograms = 40;
  for (uint64_t seed = 0; seed < kPrograms && !HasFailure(); ++seed) {
    const Graph g =
        RandomProgram(seed, {.kind = ProgramKind::kStep, .operations = 18, .all_dtypes = false});
    share += ShareOfUsefulBounds(g, 1 + static_cast<int>(seed % 5), seed, /*useful=*/1e-4);
  }
  EXPECT_GE(share / kPrograms, 0.9);
}

TEST(ErrorBounds, HoldForRandomProgramsInMixedPrecision) {
  double share = 0;
  constexpr int kPrograms = 40;
  for (uint64_t seed = 1000; seed < 1000 + kPrograms && !HasFailure(); ++seed) {
    const Graph g = RandomProgram(seed, {.kind = ProgramKind::kStep, .operations = 18});
    share += ShareOfUsefulBounds(g, 1 + static_cast<int>(seed % 5), seed, /*useful=*/0.5);
  }
  EXPECT_GE(share / kPrograms, 0.9);
}

/// Median of error / |value|.
double MedianRelativeBound(const Graph& g, const std::string& result) {
  absl::StatusOr<Interpreter> interpreter = Interpreter::Create(g, 4);
  EXPECT_TRUE(interpreter.ok()) << interpreter.status();
  const absl::StatusOr<Expected> expected =
      interpreter->Evaluate(result, 0, AllIndices(interpreter->type(result)), RandomElements(1));
  std::vector<double> relative;
  for (size_t i = 0; i < expected->value.size(); ++i) {
    relative.push_back(expected->error[i] / std::fabs(expected->value[i].real()));
  }
  std::nth_element(relative.begin(), relative.begin() + relative.size() / 2, relative.end());
  return relative[relative.size() / 2];
}

TEST(ErrorBounds, HoldAndAreTightForOptimizers) {
  for (const char* workload : {"sgd", "momentum", "adam", "adamw"}) {
    for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      const absl::StatusOr<Graph> g =
          BindSizes(*MakeWorkload(workload, {.dtype = dtype}), {{"N", 501}});
      ASSERT_TRUE(g.ok()) << g.status();
      ShareOfUsefulBounds(*g, 4, 3, 1);
    }
    const absl::StatusOr<Graph> g = BindSizes(*MakeWorkload(workload), {{"N", 501}});
    EXPECT_LE(MedianRelativeBound(*g, "p"), 1e-5) << workload;
  }
}

TEST(Interpreter, LongChainsNeedNoDeepStack) {
  constexpr int kLinks = 20000;
  Graph g;
  const NodeId one = g.Add(Input{"x", {DType::kF32, {1, 1}, Layout::Replicated()}});
  NodeId value = one;
  for (int i = 0; i < kLinks; ++i) {
    value = g.Add(MatMul{}, {value, one});
    value = g.Add(Fold{FoldKind::kMax, {1}}, {value});
    value = g.Add(Pointwise{Pw::kMax}, {value, one});
  }
  g.Add(Output{"y"}, {value});
  const absl::StatusOr<Interpreter> interpreter = Interpreter::Create(g, 1);
  ASSERT_TRUE(interpreter.ok()) << interpreter.status();
  const absl::StatusOr<Expected> y =
      interpreter->Evaluate("y", 0, {0}, [](const std::string&, int, int64_t) { return 1.0; });
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(y->value[0], 1);
}

}  // namespace
}  // namespace coconet
