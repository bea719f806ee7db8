#include "coconet/testing/transformed.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

TEST(Reorder, MovesComputationBeforeTheGather) {
  const char* program = R"(input g : f32[N] local
input lr : f32[] replicated
state p : f32[N] replicated
update(p, p - lr * all_reduce(sum, g))
)";
  EXPECT_EQ(Transformed(program, "split(%3, 0); reorder(%4)"), R"(input g : f32[N] local
input lr : f32[] replicated
state p : f32[N] replicated
%3 = reduce_scatter(sum, g, 0)
%4 = mul(lr, %3)
%5 = sub(p, %4)
%6 = all_gather(%5)
%7 = update(p, %6)
)");
}

TEST(Reorder, MovesAGatherBeforeTheAllGatherOfItsIndicesOrOfOtherDimensions) {
  EXPECT_EQ(Transformed("input t : f32[V, D] replicated\ninput i : i32[S] sliced(0)\n"
                        "output y = gather(t, all_gather(i), 0) * 2\n",
                        "reorder(%2)"),
            R"(input t : f32[V, D] replicated
input i : i32[S] sliced(0)
%2 = gather(t, i, 0)
%3 = const(2, f32)
%4 = mul(%2, %3)
%5 = all_gather(%4)
output y = %5
)");
  EXPECT_EQ(Transformed("input t : f32[V, D] sliced(1)\ninput i : i32[S] replicated\n"
                        "output y = gather(all_gather(t), i, 0)\n",
                        "reorder(%2)"),
            R"(input t : f32[V, D] sliced(1)
input i : i32[S] replicated
%2 = gather(t, i, 0)
%3 = all_gather(%2)
output y = %3
)");
  EXPECT_EQ(Transformed("input t : f32[V, D] sliced(0)\ninput i : i32[S] replicated\n"
                        "output y = gather(all_gather(t), i, 0)\n",
                        "reorder(%2)"),
            "reorder(%2): no computation after %2 = all_gather(t) can be done on slices (f32[V, D] "
            "sliced(0))");
}

TEST(Reorder, LeavesWhatTakesLocalValues) {
  const char* program = R"(input t : f32[N] sliced(0)
input u : f32[M, N] sliced(0)
input b : f32[N] local
input w : f32[N, K] local
y = all_gather(t)
output a = y * b
output c = y - rank(f32)
output d = matmul(all_gather(u), w)
)";
  EXPECT_EQ(Transformed(program, "reorder(%4)"),
            "reorder(%4): no computation after %4 = all_gather(t) can be done on slices (f32[N] "
            "sliced(0))");
  EXPECT_EQ(Transformed(program, "reorder(%10)"),
            "reorder(%10): no computation after %10 = all_gather(u) can be done on slices (f32[M, "
            "N] sliced(0))");
}

TEST(Reorder, MovesAViewThatLeavesTheSlicedDimensionWhole) {
  const char* program = R"(input t : f32[M, N] sliced(0)
y = all_gather(t)
output a = 2 * transpose(y, 1, 0)
output b = slice(y, 1, 0, 3)
output c = slice(y, 0, 0, 3)
)";
  EXPECT_EQ(Transformed(program, "reorder(%2)"), R"(input t : f32[M, N] sliced(0)
%1 = const(2, f32)
%2 = transpose(t, 1, 0)
%3 = mul(%1, %2)
%4 = all_gather(%3)
output a = %4
%6 = slice(t, 1, 0, 3)
%7 = all_gather(%6)
output b = %7
%9 = all_gather(t)
%10 = slice(%9, 0, 0, 3)
output c = %10
)");
}

TEST(Reorder, UsesOfAnUpdateWithinTheRegionTakeTheSlices) {
  const char* program = R"(input g : f32[N] local
state m : f32[N]
state p : f32[N] replicated
m1 = update(m, 0.5 * m + all_reduce(sum, g))
update(p, p - m1)
)";
  EXPECT_EQ(Transformed(program, "split(%5, 0); reorder(%6)"), R"(input g : f32[N] local
state m : f32[N] auto
state p : f32[N] replicated
%3 = const(0.5, f32)
%4 = mul(%3, m)
%5 = reduce_scatter(sum, g, 0)
%6 = add(%4, %5)
%7 = all_gather(%6)
%8 = update(m, %7)
%9 = sub(p, %6)
%10 = all_gather(%9)
%11 = update(p, %10)
)");
}

TEST(Reorder, GathersEachValueThatLeavesTheRegionOnce) {
  const char* program = R"(input g : f32[N] local
input x : f32[N] local
y = 2 * all_reduce(sum, g)
output y = y
output z = x * y
output w = y * y
)";
  EXPECT_EQ(Transformed(program, "split(%3, 0); reorder(%4)"), R"(input g : f32[N] local
input x : f32[N] local
%2 = const(2, f32)
%3 = reduce_scatter(sum, g, 0)
%4 = mul(%2, %3)
%5 = mul(%4, %4)
%6 = all_gather(%5)
output w = %6
%8 = all_gather(%4)
output y = %8
%10 = mul(x, %8)
output z = %10
)");
}

TEST(Reorder, ACastToANarrowerTypeCrossesTheLinkNarrow) {
  const char* program = R"(input g : f16[N] local
state w : f32[N]
state p : f16[N] replicated
w1 = update(w, w - cast(f32, all_reduce(sum, g)))
update(p, cast(f16, w1))
)";
  EXPECT_EQ(Transformed(program, "split(%3, 0); reorder(%4)"), R"(input g : f16[N] local
state w : f32[N] auto
state p : f16[N] replicated
%3 = reduce_scatter(sum, g, 0)
%4 = cast(f32, %3)
%5 = sub(w, %4)
%6 = all_gather(%5)
%7 = update(w, %6)
%8 = cast(f16, %5)
%9 = all_gather(%8)
%10 = update(p, %9)
)");
}

constexpr char kTwoSums[] = R"(input g : f32[N] local
input h : f32[N] local
output y = all_reduce(sum, g) * all_reduce(sum, h)
)";

TEST(Reorder, JoinsGathersThatAreCutAlike) {
  EXPECT_EQ(Transformed(kTwoSums, "split(%2, 0); split(%4, 0); reorder(%3)"),
            R"(input g : f32[N] local
input h : f32[N] local
%2 = reduce_scatter(sum, g, 0)
%3 = reduce_scatter(sum, h, 0)
%4 = mul(%2, %3)
%5 = all_gather(%4)
output y = %5
)");
}

TEST(Reorder, TakesValuesThatAreOnEveryRankAsTheyAre) {
  EXPECT_EQ(Transformed(kTwoSums, "split(%2, 0); reorder(%3)"), R"(input g : f32[N] local
input h : f32[N] local
%2 = reduce_scatter(sum, g, 0)
%3 = all_reduce(sum, h)
%4 = mul(%2, %3)
%5 = all_gather(%4)
output y = %5
)");
}

TEST(Reorder, AnOperationOnSlicesAlreadyLosesItsNeedForTheGather) {
  EXPECT_EQ(Transformed(kTwoSums, "split(%2, 0); reorder(%3); split(%3, 0); reorder(%4)"),
            Transformed(kTwoSums, "split(%2, 0); split(%4, 0); reorder(%3)"));
}

constexpr char kRows[] = R"(input g : f32[A, B] local
input h : f32[B] local
input c : f32[A, 1] replicated
output y = all_reduce(sum, g) * all_reduce(sum, h) + c
)";

TEST(Reorder, AlignsDimensionsFromTheRight) {
  EXPECT_EQ(Transformed(kRows, "split(%3, 1); split(%5, 0); reorder(%4)"),
            R"(input g : f32[A, B] local
input h : f32[B] local
input c : f32[A, 1] replicated
%3 = reduce_scatter(sum, g, 1)
%4 = reduce_scatter(sum, h, 0)
%5 = mul(%3, %4)
%6 = add(%5, c)
%7 = all_gather(%6)
output y = %7
)");
}

TEST(Reorder, KeepsAGatherThatIsCutOtherwise) {
  EXPECT_EQ(Transformed(kRows, "split(%3, flat); split(%5, 0); reorder(%4)"),
            R"(input g : f32[A, B] local
input h : f32[B] local
input c : f32[A, 1] replicated
%3 = reduce_scatter(sum, g, flat)
%4 = reduce_scatter(sum, h, 0)
%5 = all_gather(%4)
%6 = mul(%3, %5)
%7 = add(%6, c)
%8 = all_gather(%7)
output y = %8
)");
}

TEST(Reorder, RefusesWhatIsNoAllGather) {
  EXPECT_EQ(Transformed(kTwoSums, "reorder(%2)"),
            "reorder(%2): want all_gather, have %2 = all_reduce(sum, g)");
}

TEST(Reorder, RefusesWhereNothingFollows) {
  EXPECT_EQ(Transformed("input g : f32[N] local\noutput y = all_reduce(sum, g)\n",
                        "split(%1, 0); reorder(%2)"),
            "reorder(%2): no computation after %2 = all_gather(%1) can be done on slices (f32[N] "
            "sliced(0))");
}

TEST(Reorder, RefusesWhereOtherRanksHoldTheOtherOperand) {
  EXPECT_EQ(
      Transformed(
          "input g : f32[N] local\ninput x : f32[N] local\noutput y = x * all_reduce(sum, g)\n",
          "split(%2, 0); reorder(%3)"),
      "reorder(%3): no computation after %3 = all_gather(%2) can be done on slices (f32[N] "
      "sliced(0))");
}

TEST(Reorder, RefusesWhereTheSlicedDimensionIsBroadcast) {
  EXPECT_EQ(Transformed("input g : f32[1] local\ninput x : f32[8] replicated\noutput y = x * "
                        "all_reduce(sum, g)\n",
                        "split(%2, 0); reorder(%3)"),
            "reorder(%3): no computation after %3 = all_gather(%2) can be done on slices (f32[1] "
            "sliced(0))");
}

}  // namespace
}  // namespace coconet
