#include "autotune/measure/tensors.h"

#include <vector>

#include "gtest/gtest.h"

namespace coconet {
namespace {

TensorType Type(Shape shape, Layout layout) { return {DType::kF32, std::move(shape), layout}; }

TEST(PartOf, IsEverythingUnlessSliced) {
  for (const Layout& layout : {Layout::Local(), Layout::Replicated()}) {
    const Part part = PartOf(Type({3, 5}, layout), 4, 2);
    EXPECT_EQ(part.elements(), 15);
    EXPECT_EQ(part.Global(7), 7);
    EXPECT_EQ(part.Stored(7), 7);
  }
  EXPECT_EQ(PartOf(Type({}, Layout::Replicated()), 4, 2).elements(), 1);
}

/// Every element is held by exactly one rank, inside its storage, where the slicing says.
TEST(PartOf, SlicesCoverEachElementOnce) {
  const struct {
    Shape shape;
    int dim;
  } cases[] = {{{1000}, 0},      {{1000}, Layout::kFlat}, {{7, 130}, 1}, {{7, 130}, 0},
               {{3, 200, 5}, 1}, {{3, 5}, Layout::kFlat}, {{0}, 0},      {{1}, 0}};
  for (const auto& [shape, dim] : cases) {
    for (int ranks : {1, 2, 3, 8}) {
      const TensorType type = Type(shape, Layout::Sliced(dim));
      const TensorSlicing slicing = SlicingOf(shape, dim, ranks);
      std::vector<int> holders(NumElements(shape));
      for (int rank = 0; rank < ranks; ++rank) {
        const Part part = PartOf(type, ranks, rank);
        std::vector<int> used(slicing.slice_elements());
        for (int64_t i = 0; i < part.elements(); ++i) {
          ++holders[part.Global(i)];
          ASSERT_LT(part.Stored(i), slicing.slice_elements());
          ++used[part.Stored(i)];
        }
        for (int n : used) EXPECT_LE(n, 1);
      }
      for (int n : holders) EXPECT_EQ(n, 1);
    }
  }
}

TEST(PlaceTensors, KnowsLayoutsAndUpdates) {
  Graph g;
  const NodeId x = g.Add(Input{"x", {DType::kF32, {10}, Layout::Replicated()}});
  const NodeId m = g.Add(State{"m", {DType::kF32, {10}, Layout::Auto()}});
  g.Add(State{"q", {DType::kF32, {10}, Layout::Sliced(0)}});
  const NodeId u = g.Add(Update{}, {m, x});
  g.Add(Output{"o"}, {u});
  Plan plan;
  plan.buffers = {{"o", BufferRole::kOutput, DType::kF32, 64, false},
                  {"q", BufferRole::kState, DType::kF32, 64, false},
                  {"m", BufferRole::kState, DType::kF32, 64, false},
                  {"x", BufferRole::kInput, DType::kF32, 64, false},
                  {"t0", BufferRole::kTemp, DType::kF32, 64, false}};
  const std::vector<PlacedTensor> tensors = PlaceTensors(*TypedGraph::Of(g), plan);
  ASSERT_EQ(tensors.size(), 4u);
  EXPECT_EQ(tensors[0].name, "x");
  EXPECT_EQ(tensors[0].buffer, 3);
  EXPECT_EQ(tensors[1].name, "m");
  EXPECT_EQ(tensors[1].type.layout, Layout::Replicated());
  EXPECT_TRUE(tensors[1].updated);
  EXPECT_EQ(tensors[2].type.layout, Layout::Sliced(0));
  EXPECT_FALSE(tensors[2].updated);
  EXPECT_EQ(tensors[3].name, "o");
  EXPECT_EQ(tensors[3].role, BufferRole::kOutput);
}

}  // namespace
}  // namespace coconet
