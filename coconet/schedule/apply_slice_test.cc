#include "coconet/testing/transformed.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr char kMomentum[] = R"(input g : f32[N] local
state m : f32[N]
state p : f32[N] replicated
m1 = update(m, 0.5 * m + all_reduce(sum, g))
update(p, p - m1)
)";

TEST(Slice, KeepsEachRanksPartAndDropsTheGather) {
  EXPECT_EQ(Transformed(kMomentum, "split(%5, 0); reorder(%6); slice(%1)"),
            R"(input g : f32[N] local
state m : f32[N] sliced(0)
state p : f32[N] replicated
%3 = const(0.5, f32)
%4 = mul(%3, m)
%5 = reduce_scatter(sum, g, 0)
%6 = add(%4, %5)
%7 = update(m, %6)
%8 = sub(p, %6)
%9 = all_gather(%8)
%10 = update(p, %9)
)");
}

TEST(Slice, PutsTheGatherBehindTheUpdateWhereTheWholeIsNeeded) {
  const char* program = R"(input g : f32[N] local
state m : f32[N]
m1 = update(m, all_reduce(sum, g))
output y = 2 * m1
)";
  EXPECT_EQ(Transformed(program, "split(%2, 0); slice(%1)"), R"(input g : f32[N] local
state m : f32[N] sliced(0)
%2 = reduce_scatter(sum, g, 0)
%3 = update(m, %2)
%4 = const(2, f32)
%5 = all_gather(%3)
%6 = mul(%4, %5)
output y = %6
)");
}

TEST(Slice, OfAMatrixFollowsTheGather) {
  const char* program = R"(input g : f32[A, B] local
state m : f32[A, B]
update(m, m + all_reduce(sum, g))
)";
  EXPECT_EQ(Transformed(program, "split(%2, flat); reorder(%3); slice(%1)"),
            R"(input g : f32[A, B] local
state m : f32[A, B] sliced(flat)
%2 = reduce_scatter(sum, g, flat)
%3 = add(m, %2)
%4 = update(m, %3)
)");
}

TEST(Slice, RefusesAStateWhoseRowsAreSummed) {
  // The sum of a part would be local, and the product with a local operand is local, too: its type
  // alone does not tell.
  const char* program = R"(input x : f32[4] sliced(0)
input w : f32[1, 4] local
state s : f32[8, 4]
update(s, all_gather(s * x))
output y = matmul(sum(s, 1), w)
)";
  EXPECT_EQ(
      Transformed(program, "slice(%2)"),
      "slice(%2): %6 = sum(s, 1) needs all of state s; want only uses on slices: reorder first");
}

TEST(Slice, RefusesWhatIsNoState) {
  EXPECT_EQ(Transformed(kMomentum, "slice(%0)"),
            "slice(%0): want a state, have input g : f32[N] local");
}

TEST(Slice, RefusesADeclaredLayout) {
  EXPECT_EQ(Transformed(kMomentum, "slice(%2)"),
            "slice(%2): want a state of layout auto, have state p : f32[N] replicated");
}

TEST(Slice, RefusesAStateThatIsNeverUpdated) {
  EXPECT_EQ(Transformed("state m : f32[N]\noutput y = 2 * m\n", "slice(%0)"),
            "slice(%0): state m is never updated: it has no slices to keep");
}

TEST(Slice, RefusesAnUpdateOfComputedWholes) {
  EXPECT_EQ(Transformed(kMomentum, "split(%5, 0); slice(%1)"),
            "slice(%1): %8 = update(m, %7) takes %7 = add(%4, %6), want an all_gather: split and "
            "reorder first");
}

TEST(Slice, RefusesAUseOfTheWholeOldValue) {
  const char* output = R"(input g : f32[N] local
state m : f32[N]
update(m, all_reduce(sum, g))
output y = 2 * m
)";
  EXPECT_EQ(
      Transformed(output, "split(%2, 0); slice(%1)"),
      "slice(%1): output y = %6 needs all of state m; want only uses on slices: reorder first");
  const char* local = R"(input g : f32[N] local
state m : f32[N]
update(m, all_reduce(sum, g))
output y = g * m
)";
  EXPECT_EQ(
      Transformed(local, "split(%2, 0); slice(%1)"),
      "slice(%1): %5 = mul(g, m) needs all of state m; want only uses on slices: reorder first");
  const char* state = R"(input g : f32[N] local
state m : f32[N]
state old : f32[N]
update(m, all_reduce(sum, g))
update(old, m)
)";
  EXPECT_EQ(Transformed(state, "split(%3, 0); slice(%1)"),
            "slice(%1): %6 = update(old, m) needs all of state m; want only uses on slices: "
            "reorder first");
}

}  // namespace
}  // namespace coconet
