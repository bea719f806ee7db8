#include "coconet/testing/transformed.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr char kSgd[] = R"(input g : f32[N] local
state p : f32[N] replicated
update(p, p - all_reduce(sum, g))
)";

TEST(Split, TurnsAllReduceIntoReduceScatterThenAllGather) {
  EXPECT_EQ(Transformed(kSgd, "split(%2, 0)"), R"(input g : f32[N] local
state p : f32[N] replicated
%2 = reduce_scatter(sum, g, 0)
%3 = all_gather(%2)
%4 = sub(p, %3)
%5 = update(p, %4)
)");
}

TEST(Split, OfAVectorFlatIsOverItsDimension) {
  EXPECT_EQ(Transformed(kSgd, "split(%2, flat)"), Transformed(kSgd, "split(%2, 0)"));
  EXPECT_EQ(TraceText(ScheduleOf(kSgd, "split(%2, flat)").trace()), "split(%2, 0)");
}

TEST(Split, OfAMatrixIsFlatOrOverADimension) {
  const char* program = "input g : f32[A, B] local\noutput y = all_reduce(max, g)\n";
  EXPECT_EQ(Transformed(program, "split(%1, flat)"), R"(input g : f32[A, B] local
%1 = reduce_scatter(max, g, flat)
%2 = all_gather(%1)
output y = %2
)");
  EXPECT_EQ(Transformed(program, "split(%1, 1)"), R"(input g : f32[A, B] local
%1 = reduce_scatter(max, g, 1)
%2 = all_gather(%1)
output y = %2
)");
}

TEST(Split, OfOneElementIsLegal) {
  EXPECT_EQ(Transformed("input g : f32[1] local\noutput y = all_reduce(sum, g)\n", "split(%1, 0)"),
            "input g : f32[1] local\n%1 = reduce_scatter(sum, g, 0)\n%2 = all_gather(%1)\noutput y "
            "= %2\n");
}

TEST(Split, LeavesOtherAllReducesAlone) {
  const char* program =
      "input g : f32[N] local\ninput h : f32[N] local\noutput y = all_reduce(sum, g) + "
      "all_reduce(sum, h)\n";
  EXPECT_EQ(Transformed(program, "split(%3, 0)"), R"(input g : f32[N] local
input h : f32[N] local
%2 = all_reduce(sum, g)
%3 = reduce_scatter(sum, h, 0)
%4 = all_gather(%3)
%5 = add(%2, %4)
output y = %5
)");
}

TEST(Split, SumsNarrowPartsInF32) {
  EXPECT_EQ(Transformed("input x : bf16[N] replicated\noutput y = sum(x)\noutput z = amax(x)\n",
                        "split(%1, 0); split(%7, 0)"),
            R"(input x : bf16[N] replicated
%1 = shard(x, 0)
%2 = cast(f32, %1)
%3 = sum(%2)
%4 = all_reduce(sum, %3)
%5 = cast(bf16, %4)
output y = %5
%7 = amax(%1)
%8 = all_reduce(max, %7)
output z = %8
)");
}

TEST(Split, RefusesWhatIsNoAllReduce) {
  EXPECT_EQ(Transformed(kSgd, "split(%3, flat)"),
            "split(%3, flat): want all_reduce, a fold or send, have %3 = sub(p, %2)");
  EXPECT_EQ(Transformed(kSgd, "split(%2, 0); split(%2, 0)"),
            "split(%2, 0): want all_reduce, a fold or send, have %2 = reduce_scatter(sum, g, 0)");
}

TEST(Split, RefusesADimensionThatIsNotThere) {
  EXPECT_EQ(Transformed(kSgd, "split(%2, 1)"),
            "split(%2, 1): want flat or a dimension from 0 to 0 of [N], have 1");
}

TEST(Split, RefusesScalars) {
  EXPECT_EQ(
      Transformed("input l : f32[] local\noutput loss = all_reduce(sum, l)\n", "split(%1, flat)"),
      "split(%1, flat): %1 = all_reduce(sum, l) is a scalar: there is nothing to scatter");
}

TEST(Split, RefusesToChangeAGraphThatHasKernels) {
  EXPECT_EQ(Transformed(kSgd, "fuse(%3 %4); split(%2, 0)"),
            "split(%2, 0): there are kernels already, and their nodes would change: fuse last");
}

}  // namespace
}  // namespace coconet
