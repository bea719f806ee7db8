#include "autotune/search/sizes/small_sizes.h"

#include <algorithm>

#include "autotune/search/variants.h"
#include "coconet/ir/infer.h"
#include "coconet/ir/lists.h"
#include "coconet/language/text.h"
#include "coconet/workloads/training_steps.h"
#include "coconet/workloads/workloads.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jit/lower/lower.h"

namespace coconet {
namespace {

Graph Bound(absl::string_view text, const Sizes& sizes) {
  const absl::StatusOr<Graph> parsed = Parse(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  const absl::StatusOr<Graph> bound = BindSizes(*parsed, sizes);
  EXPECT_TRUE(bound.ok()) << bound.status();
  return *bound;
}

Graph Adam(int64_t n) { return *BindSizes(*MakeWorkload("adam"), {{"N", n}}); }

/// The most elements of a value.
int64_t LargestOf(const Graph& program) {
  int64_t most = 0;
  const std::vector<TensorType> types = *InferTypes(program);
  for (const TensorType& type : types) most = std::max(most, NumElements(type.shape));
  return most;
}

TEST(Shrink, KeepsWhatEqualsAndWhatBroadcasts) {
  const Graph g = Bound(
      "coconet 1\nprogram p\ninput a : f32[B, N] local\ninput b : f32[1, N] replicated\nstate c : "
      "f32[N] replicated\n"
      "output o = all_reduce(sum, a) * b + c\n",
      {{"B", 2000}, {"N", 3000}});
  const Graph small = Shrink(g);
  const Shape a = std::get<Input>(small.nodes[0].op).type.shape,
              b = std::get<Input>(small.nodes[1].op).type.shape;
  EXPECT_EQ(b[0].size, 1);
  EXPECT_EQ(a[1].size, b[1].size);
  EXPECT_EQ(std::get<State>(small.nodes[2].op).type.shape[0].size, a[1].size);
  EXPECT_NE(a[0].size, a[1].size);
  EXPECT_EQ(a[0].size % 2, 1);
  EXPECT_EQ(a[1].size % 2, 1);
  EXPECT_LE(a[0].size * a[1].size, 20000);
  EXPECT_GE(a[0].size * a[1].size, 5000);
}

TEST(Shrink, LeavesTheTinyAlone) {
  for (int64_t n : {0, 1, 2, 999}) EXPECT_TRUE(Shrink(Adam(n)) == Adam(n)) << n;
  EXPECT_EQ(std::get<Input>(Shrink(Adam(1000)).nodes[0].op).type.shape[0].size, 999);
}

TEST(Shrink, CanTakeMultiples) {
  const Graph g =
      Bound("coconet 1\nprogram p\ninput a : f32[B, N] local\noutput o = all_reduce(sum, a)\n",
            {{"B", 2000}, {"N", 7}});
  const Shape a = std::get<Input>(Shrink(g, {.multiple = 64}).nodes[0].op).type.shape;
  EXPECT_EQ(a[0].size % 128, 64);
  EXPECT_LE(a[0].size, 200);
  EXPECT_EQ(a[1].size, 7);
  EXPECT_TRUE(Shrink(Adam(5), {.multiple = 8}) == Adam(5));
}

TEST(Shrink, TakesAFewTensorsOfAList) {
  std::vector<int64_t> sizes(50, 1 << 20);
  sizes[3] = 1;
  sizes[7] = 12345;
  const Graph small = Shrink(*BindSizes(*MakeWorkload("adam"), {{"N", sizes}}));
  EXPECT_THAT(small.lists.at("N"), testing::ElementsAre(10005, 1, 10007, 10005));
  EXPECT_TRUE(CheckLists(small).ok());
}

/// What makes the check at a small size worth something: the very same kernels.
TEST(Shrink, GivesTheSameKernels) {
  for (const Graph& adam :
       {Adam(1 << 24), *BindSizes(*MakeWorkload("adam"), {{"N", {1 << 24, 1000, 1 << 20}}})}) {
    const absl::StatusOr<VariantSet> set = EnumerateVariants(adam, {.ranks = 2, .cores = 2});
    ASSERT_TRUE(set.ok());
    for (const Variant& v : set->variants) {
      const Schedule small = v.schedule.Resized(*TypedGraph::Of(Shrink(v.schedule.graph())));
      EXPECT_EQ(Lower(v.schedule, v.config, 2)->kernels.text(),
                Lower(small, v.config, 2)->kernels.text())
          << Describe(v).schedule;
    }
  }
}

TEST(Shrink, FollowsReshapes) {
  const Graph g = Bound(
      "coconet 1\nprogram p\ninput x : f32[2048, 768] local\n"
      "output o = reshape(x, [2048, 12, 64])\n",
      {});
  for (const SmallSize& size : {SmallSize{}, SmallSize{.multiple = 8}, SmallSize{.elements = 90}}) {
    const Graph small = Shrink(g, size);
    EXPECT_FALSE(small == g);
    const Shape x = std::get<Input>(small.nodes[0].op).type.shape,
                to = std::get<Reshape>(small.nodes[1].op).shape;
    EXPECT_EQ(x[0], to[0]);
    EXPECT_EQ(x[1].size, to[1].size * to[2].size);
    EXPECT_GT(to[1].size, 1);
    EXPECT_LE(LargestOf(small), 2 * size.elements);
    EXPECT_EQ(to[2].size % size.multiple, 0) << Print(small);
  }
  EXPECT_GT(LargestOf(Shrink(g)), 1000);
}

TEST(Shrink, KeepsBlocksOfScalesWhole) {
  const Graph g = Bound(
      "coconet 1\nprogram p\ninput x : f8e4m3[4096, 7168] sliced(1)\n"
      "input s : f32[4096, 56] sliced(1)\ninput w : f8e4m3[2048, 7168] sliced(1)\n"
      "input t : f32[16, 56] sliced(1)\noutput y = matmul(x, w, s, t, transpose_b)\n",
      {});
  for (const SmallSize& size : {SmallSize{}, SmallSize{.multiple = 16, .parts = 2},
                                SmallSize{.elements = 90, .parts = 4}}) {
    const Graph small = Shrink(g, size);
    const auto shape = [&](int input) { return std::get<Input>(small.nodes[input].op).type.shape; };
    EXPECT_EQ(shape(0)[0], shape(1)[0]);
    EXPECT_LT(shape(0)[0].size, 200);
    EXPECT_EQ(shape(0)[1].size, 128 * shape(1)[1].size);
    EXPECT_EQ(shape(2)[0].size, 128 * shape(3)[0].size);
    EXPECT_EQ(shape(2)[1], shape(0)[1]);
    EXPECT_GT(shape(3)[0].size, 1);
    EXPECT_LE(LargestOf(small), 4 * 9 * 128 * 128) << Print(small);
    EXPECT_EQ(shape(1)[1].size % size.parts, 0) << Print(small);
  }
}

TEST(Shrink, KeepsBlocksOfScalesOfListsWhole) {
  const Graph g = Bound(
      "coconet 1\nprogram p\ninput x : f8e4m3[7, N] local\ninput s : f32[7, L] local\n"
      "input w : f8e4m3[5, N] replicated\ninput t : f32[1, 1] replicated\n"
      "output y = matmul(x, w, s, t, transpose_b)\n",
      {{"N", {3000, 2000, 3000}}, {"L", {60, 40, 60}}});
  const Graph small = Shrink(g);
  EXPECT_EQ(CheckLists(small), absl::OkStatus());
  for (size_t tensor = 0; tensor < 3; ++tensor) {
    EXPECT_EQ(small.lists.at("N")[tensor], 50 * small.lists.at("L")[tensor]);
    EXPECT_LT(small.lists.at("N")[tensor], g.lists.at("N")[tensor]);
  }
}

TEST(Shrink, FollowsRangesAndConcatenations) {
  const Graph g = Bound(
      "coconet 1\nprogram p\ninput x : f32[1024, 2304] local\n"
      "q = x[:, 0:768]\nk = x[:, 768:1536]\nv = x[:, 1536:2304]\n"
      "output a = reshape(q * k, [1024, 12, 64])\noutput b = concat(v, q, 1)\n"
      "output c = x[1:1024] - x[0:1023]\n",
      {});
  const Graph small = Shrink(g);
  EXPECT_FALSE(small == g);
  EXPECT_LE(LargestOf(small), 20014) << Print(small);
  const Shape x = std::get<Input>(small.nodes[0].op).type.shape;
  EXPECT_EQ(x[1].size % 3, 0);
  EXPECT_LT(x[0].size, 200);
  EXPECT_EQ(std::get<SubTensor>(small.nodes[1].op).end, x[1].size / 3) << Print(small);
}

TEST(Shrink, IsWhatItWasWhereNothingSmallerFits) {
  const Graph g = Bound(
      "coconet 1\nprogram p\ninput x : f32[77, 13] local\noutput o = reshape(x, [13, 77])\n"
      "output r = reshape(x, [7, 11, 13])\n",
      {});
  const Graph small = Shrink(g, {.elements = 50});
  EXPECT_TRUE(small == g || LargestOf(small) <= 100) << Print(small);
  const Graph prime =
      Bound("coconet 1\nprogram p\ninput x : f32[2] local\noutput o = x[0:1]\n", {});
  EXPECT_TRUE(Shrink(prime) == prime);
}

TEST(Shrink, MakesTrainingStepsOfRealSizesSmall) {
  for (const GptModel& model :
       {GptModel{.layers = 2, .width = 768, .heads = 12, .vocabulary = 50257, .sequence = 1024},
        GptModel{.layers = 2, .width = 4096, .heads = 32, .vocabulary = 32000, .sequence = 2048},
        // Powers of two, which are products of one another.
        GptModel{.layers = 1,
                 .width = 256,
                 .heads = 8,
                 .vocabulary = 1000,
                 .sequence = 128,
                 .examples = 4},
        GptModel{.layers = 1,
                 .width = 128,
                 .heads = 4,
                 .sequence = 64,
                 .examples = 8,
                 .micro_batches = 2},
        GptModel{.layers = 1, .width = 30, .heads = 3, .sequence = 700}}) {
    const absl::StatusOr<Graph> step = GptStep(model);
    ASSERT_TRUE(step.ok()) << step.status();
    for (const SmallSize& size : {SmallSize{}, SmallSize{.multiple = 64},
                                  SmallSize{.elements = 107}, SmallSize{.elements = 5}}) {
      const Graph small = Shrink(*step, size);
      EXPECT_LT(ProductsOf(small), 0.1 * ProductsOf(*step)) << model.width;
      EXPECT_LT(ProductsOf(small), 1e8) << model.width;
      EXPECT_LE(LargestOf(small), 20014) << model.width;
      EXPECT_EQ(small.size(), step->size());
      // What has an extent of 1, or is equal, says what is broadcast.
      const std::vector<TensorType> large_types = *InferTypes(*step), types = *InferTypes(small);
      for (NodeId id = 0; id < small.size(); ++id) {
        for (size_t d = 0; d < types[id].shape.size(); ++d)
          EXPECT_EQ(types[id].shape[d] == Dim(1), large_types[id].shape[d] == Dim(1));
      }
    }
  }
}

}  // namespace
}  // namespace coconet
