#include "coconet/testing/random_model.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "coconet/ir/infer.h"
#include "coconet/language/text.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr uint64_t kSeeds = 400;
constexpr RandomModelOptions kAll = {.rooted = true, .sends = true};

TEST(RandomModel, IsAProgramThatPrintsAndParsesBack) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Graph g = RandomModel(seed, kAll);
    ASSERT_TRUE(InferTypes(g).ok()) << seed << ": " << InferTypes(g).status();
    const absl::StatusOr<Graph> read = Parse(Print(g));
    ASSERT_TRUE(read.ok()) << seed << ": " << read.status();
    ASSERT_EQ(*read, g) << seed;
    ASSERT_EQ(RandomModel(seed, kAll), g) << seed;
  }
}

TEST(RandomModel, UsesTheWholeLanguage) {
  std::set<size_t> operations, dims;
  std::set<std::string> functions, layouts, dtypes, products;
  int empty = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Graph g = RandomModel(seed, kAll);
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
  // All but Total, which is of lists of tensors: tests/random_programs_test.cc draws those.
  EXPECT_EQ(operations.size(), std::variant_size_v<Op> - 1);
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

TEST(RandomModel, LeavesOutWhatIsSwitchedOff) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Graph g = RandomModel(seed);
    for (NodeId id = 0; id < g.size(); ++id) {
      ASSERT_FALSE(As<Broadcast>(g, id) || As<ReduceTo>(g, id) || As<AllToAll>(g, id) ||
                   As<Send>(g, id))
          << seed;
    }
  }
}

}  // namespace
}  // namespace coconet
