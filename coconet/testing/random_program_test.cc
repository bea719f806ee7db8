#include "coconet/testing/random_program.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "coconet/ir/infer.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr uint64_t kSeeds = 800;

TEST(RandomProgram, DependsOnItsArgumentsAlone) {
  for (ProgramKind kind : kProgramKinds)
    EXPECT_EQ(RandomProgram(7, {.kind = kind}), RandomProgram(7, {.kind = kind}));
}

TEST(RandomProgram, UsesTheWholeLanguage) {
  std::set<size_t> operations, dims;
  std::set<std::string> functions, layouts, dtypes, products;
  int empty = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Graph g = RandomProgram(seed);
    const std::vector<TensorType> types = InferTypes(g).value();
    for (NodeId id = 0; id < g.size(); ++id) {
      operations.insert(g.nodes[id].op.index());
      if (const auto* pointwise = As<Pointwise>(g, id))
        functions.insert(std::string(Info(pointwise->fn).name));
      dims.insert(types[id].shape.size());
      layouts.insert(Text(types[id].layout));
      dtypes.insert(std::string(Name(types[id].dtype)));
      empty += NumElements(types[id].shape) == 0;
      if (As<MatMul>(g, id) == nullptr) continue;
      const auto layout = [&](int operand) {
        return Text(types[g.nodes[id].inputs[operand]].layout);
      };
      products.insert(absl::StrCat(layout(0), " x ", layout(1)));
    }
  }
  // All but Total, which is of lists of tensors (tests/random_programs_test.cc draws those), and
  // Opaque, which does not run.
  EXPECT_EQ(operations.size(), std::variant_size_v<Op> - 2);
  EXPECT_EQ(functions.size(), AllPointwise().size());
  for (size_t d = 0; d <= 4; ++d) EXPECT_TRUE(dims.contains(d)) << d;
  for (const char* layout : {"local", "replicated", "auto", "sliced(flat)", "sliced(0)",
                             "sliced(1)", "sliced(2)", "sliced(3)"}) {
    EXPECT_TRUE(layouts.contains(layout)) << layout;
  }
  EXPECT_EQ(dtypes.size(), std::size(kAllDTypes));
  EXPECT_GT(empty, 0);
  // Products of rows, of columns, of sliced sums, of batches.
  for (const char* product : {"replicated x local", "sliced(0) x replicated",
                              "replicated x sliced(1)", "sliced(1) x sliced(0)"}) {
    EXPECT_TRUE(products.contains(product)) << product;
  }
}

TEST(RandomProgram, StepsReduceAndUpdate) {
  uint64_t updates = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Graph g = RandomProgram(seed, {.kind = ProgramKind::kStep});
    int reductions = 0;
    for (NodeId id = 0; id < g.size(); ++id) {
      reductions += As<AllReduce>(g, id) != nullptr;
      updates += As<Update>(g, id) != nullptr;
    }
    EXPECT_GT(reductions, 0) << seed;
  }
  EXPECT_GT(updates, 2 * kSeeds);
}

TEST(RandomProgram, KeepsToItsLimits) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (ProgramKind kind : kProgramKinds) {
      const Graph g = RandomProgram(
          seed, {.kind = kind, .max_dims = 1, .max_elements = 20, .all_dtypes = false});
      for (const Node& node : g.nodes) {
        const auto* state = std::get_if<State>(&node.op);
        if (state == nullptr) continue;
        EXPECT_EQ(state->type.dtype, DType::kF32);
        EXPECT_LE(state->type.shape.size(), 1u);
        EXPECT_TRUE(!IsBound(state->type.shape) || NumElements(state->type.shape) <= 20);
      }
    }
  }
}

}  // namespace
}  // namespace coconet
