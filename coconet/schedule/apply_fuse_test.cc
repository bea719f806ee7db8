#include "coconet/testing/transformed.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

/// %4 = mul(0.5, m), %5 = all_reduce(g), %6 = add, %7 = update m, %8 = sub, %9 = update p.
constexpr char kMomentum[] = R"(input g : f32[N] local
state m : f32[N]
state p : f32[N] replicated
m1 = update(m, 0.5 * m + all_reduce(sum, g))
update(p, p - m1)
)";

/// Last lines of the schedule: its kernels.
std::string Kernels(const char* program, const char* trace) {
  const std::string text = Transformed(program, trace);
  const size_t kernels = text.find("\nkernel");
  return kernels == std::string::npos ? text : text.substr(kernels + 1);
}

TEST(Fuse, GroupsNodesIntoAKernel) {
  EXPECT_EQ(Kernels(kMomentum, "fuse(%4 %6 %7 %8 %9)"), "kernel %4 %6 %7 %8 %9\n");
  EXPECT_EQ(Kernels(kMomentum, "fuse(%4 %5 %6 %7 %8 %9)"), "kernel %4 %5 %6 %7 %8 %9\n");
  EXPECT_EQ(Kernels(kMomentum, "split(%5, 0); fuse(%5 %6)"), "kernel %5 %6\n");
  EXPECT_EQ(Kernels(kMomentum, "split(%5, 0); reorder(%6); fuse(%4 %5 %6 %7 %8 %9 %10 %11)"),
            "kernel %4 %5 %6 %7 %8 %9 %10 %11\n");
}

TEST(Fuse, ExtendsAndMergesKernels) {
  EXPECT_EQ(Kernels(kMomentum, "fuse(%8 %9); fuse(%6 %7)"), "kernel %6 %7\nkernel %8 %9\n");
  EXPECT_EQ(Kernels(kMomentum, "fuse(%8 %9); fuse(%6 %7); fuse(%6 %7 %8 %9)"),
            "kernel %6 %7 %8 %9\n");
}

TEST(Fuse, RefusesSetsThatAreNone) {
  EXPECT_EQ(Kernels(kMomentum, "fuse(%6)"), "fuse(%6): want two nodes or more");
  EXPECT_EQ(Kernels(kMomentum, "fuse(%7 %6)"),
            "fuse(%7 %6): want nodes in ascending order, each once");
  EXPECT_EQ(Kernels(kMomentum, "fuse(%6 %6)"),
            "fuse(%6 %6): want nodes in ascending order, each once");
}

TEST(Fuse, RefusesPartsOfKernels) {
  EXPECT_EQ(Kernels(kMomentum, "fuse(%6 %7); fuse(%4 %6)"),
            "fuse(%4 %6): %6 is in the kernel {%6 %7}: name all of it");
  EXPECT_EQ(Kernels(kMomentum, "fuse(%6 %7); fuse(%6 %7)"),
            "fuse(%6 %7): these nodes are a kernel already");
}

TEST(Fuse, RefusesWhatEveryKernelHasByItself) {
  EXPECT_EQ(Kernels(kMomentum, "fuse(%3 %4)"),
            "fuse(%3 %4): %3 = const(0.5, f32) belongs to no kernel: every kernel loads or "
            "recomputes it where it needs it");
  EXPECT_EQ(
      Kernels("input lr : f32[] replicated\nstate p : f32[N] replicated\nupdate(p, p * (2 * lr))\n",
              "fuse(%3 %4)"),
      "fuse(%3 %4): %3 = mul(%2, lr) belongs to no kernel: every kernel loads or recomputes it "
      "where it needs it");
}

TEST(Fuse, RefusesScalarResults) {
  EXPECT_EQ(Kernels("input l : f32[] local\ninput g : f32[N] local\noutput y = all_reduce(sum, l) "
                    "* all_reduce(sum, g)\n",
                    "fuse(%2 %3)"),
            "fuse(%2 %3): %2 = all_reduce(sum, l) is a scalar, want tensors only");
}

TEST(Fuse, RefusesTwoIterationSpaces) {
  EXPECT_EQ(
      Kernels("input g : f32[A, B] local\ninput h : f32[B] local\noutput y = g * (2 * h)\n",
              "fuse(%3 %4)"),
      "fuse(%3 %4): want one shape, have %3 = mul(%2, h) of [B] and %4 = mul(g, %3) of [A, B]");
}

TEST(Fuse, RefusesTwoSlicedDimensions) {
  EXPECT_EQ(
      Kernels("input g : f32[A, B] local\noutput y = all_reduce(sum, g)\noutput z = "
              "all_reduce(max, g)\n",
              "split(%1, 0); split(%4, 1); fuse(%1 %4)"),
      "fuse(%1 %4): want one sliced dimension, have %1 = reduce_scatter(sum, g, 0) sliced(0) and "
      "%4 = reduce_scatter(max, g, 1) sliced(1)");
}

TEST(Fuse, RefusesReducingWholesAndSlicesInOneKernel) {
  EXPECT_EQ(Kernels("input g : f32[N] local\ninput h : f32[N] local\noutput y = all_reduce(sum, g) "
                    "+ all_reduce(sum, h)\n",
                    "split(%3, 0); fuse(%2 %3 %4 %5 %6)"),
            "fuse(%2 %3 %4 %5 %6): %2 = all_reduce(sum, g) reduces whole tensors, %4 = "
            "all_gather(%3) works on slices: "
            "want one of the two in a kernel");
}

TEST(Fuse, LetsWhatAReductionCastsCrossNarrow) {
  const char* sum = "input x : bf16[N] local\noutput y = all_reduce(sum, cast(f32, x))\n";
  EXPECT_EQ(Kernels(sum, "fuse(%1 %2)"), "kernel %1 %2\n");
  EXPECT_EQ(Kernels(sum, "split(%2, 0); fuse(%1 %2)"), "kernel %1 %2\n");
  EXPECT_EQ(
      Kernels("input x : u8[N] local\noutput y = all_reduce(max, cast(i32, x))\n", "fuse(%1 %2)"),
      "kernel %1 %2\n");
  EXPECT_EQ(Kernels("input x : bf16[N] local\noutput y = all_reduce(sum, cast(f32, x))\n"
                    "output z = cast(f32, x) * 2\n",
                    "fuse(%1 %2)"),
            "fuse(%1 %2): %1 = cast(f32, x) is applied to what other ranks hold, and %5 = mul(%1, "
            "%4) takes it, too");
  EXPECT_EQ(Kernels("input x : bf16[N] local\noutput y = all_reduce(sum, cast(f32, -x))\n",
                    "fuse(%1 %2 %3)"),
            "fuse(%1 %2 %3): %3 = all_reduce(sum, %2) takes %1 = neg(x) of the same kernel: other "
            "ranks may read it only when that kernel has ended");
  EXPECT_EQ(Kernels("state x : bf16[N] local\ny = all_reduce(sum, cast(f32, x))\n"
                    "update(x, x + cast(bf16, y))\n",
                    "fuse(%1 %2 %3 %4 %5)"),
            "fuse(%1 %2 %3 %4 %5): %5 = update(x, %4) overwrites what other ranks read for %2 = "
            "all_reduce(sum, %1)");
  EXPECT_EQ(
      Kernels("input x : f32[N] local\noutput y = all_reduce(sum, cast(f64, x))\n", "fuse(%1 %2)"),
      "fuse(%1 %2): %2 = all_reduce(sum, %1) takes %1 = cast(f64, x) of the same kernel: "
      "other ranks may read it only when that kernel has ended");
}

TEST(Fuse, RefusesToReduceWhatTheKernelComputes) {
  EXPECT_EQ(Kernels("input g : f32[N] local\noutput y = all_reduce(sum, g * g)\n", "fuse(%1 %2)"),
            "fuse(%1 %2): %2 = all_reduce(sum, %1) takes %1 = mul(g, g) of the same kernel: other "
            "ranks may read it only "
            "when that kernel has ended");
}

TEST(Fuse, RefusesToOverwriteWhatOtherRanksRead) {
  const char* program = R"(input g : f32[N] local
state acc : f32[N] local
update(acc, acc * g)
output y = all_reduce(sum, acc)
)";
  EXPECT_EQ(Kernels(program, "fuse(%2 %3 %4)"),
            "fuse(%2 %3 %4): %3 = update(acc, %2) overwrites what other ranks read for %4 = "
            "all_reduce(sum, acc)");
}

TEST(Fuse, RefusesToOverwriteWhatAViewTakesForOtherPlaces) {
  EXPECT_EQ(Kernels("state s : f32[N, N] replicated\nupdate(s, s + transpose(s, 1, 0))\n",
                    "fuse(%1 %2 %3)"),
            "fuse(%1 %2 %3): %3 = update(s, %2) overwrites elements that %1 = transpose(s, 1, 0) "
            "takes for other places");
  // Where all of it has been read by then, and where it stays where it is.
  EXPECT_EQ(Kernels("state s : f32[N, N] replicated\nupdate(s, s * sum(s * transpose(s, 1, 0)))\n",
                    "fuse(%1 %2 %3 %4 %5)"),
            "kernel %1 %2 %3 %4 %5\n");
  EXPECT_EQ(Kernels("state s : f32[N, N] replicated\nupdate(s, s + transpose(s, 0, 1))\n",
                    "fuse(%1 %2 %3)"),
            "kernel %1 %2 %3\n");
}

TEST(Fuse, RefusesToGatherWhatOthersCompute) {
  EXPECT_EQ(Kernels(kMomentum, "split(%5, 0); fuse(%6 %7 %8)"),
            "fuse(%6 %7 %8): %6 = all_gather(%5) gathers %5 = reduce_scatter(sum, g, 0), which is "
            "not in the kernel");
}

TEST(Fuse, RefusesToLeaveAnUpdateOfAMemberOutside) {
  EXPECT_EQ(
      Kernels(kMomentum, "fuse(%4 %6)"),
      "fuse(%4 %6): %7 = update(m, %6) stores %6 = add(%4, %5) of the kernel, and belongs into it");
  EXPECT_EQ(Kernels(kMomentum, "split(%5, 0); reorder(%6); fuse(%4 %5 %6 %7)"),
            "fuse(%4 %5 %6 %7): %8 = update(m, %7) stores %7 = all_gather(%6) of the kernel, and "
            "belongs into it");
}

TEST(Fuse, RefusesASecondRound) {
  const char* program = R"(input g : f32[N] local
state s : f32[N] sliced(0)
update(s, s * all_gather(reduce_scatter(sum, g, 0)))
)";
  EXPECT_EQ(Kernels(program, "fuse(%2 %3 %4 %5)"),
            "fuse(%2 %3 %4 %5): %3 = all_gather(%2) feeds computation on slices of the same "
            "kernel: that takes a second "
            "round");
}

TEST(Fuse, RefusesToPushOverAStateThatIsStillRead) {
  const char* program = R"(input g : f32[N] local
state p : f32[N] replicated
x = all_reduce(sum, g)
update(p, x)
output y = p * x
)";
  EXPECT_EQ(Kernels(program, "split(%2, 0); fuse(%2 %3 %4 %5 %6)"),
            "fuse(%2 %3 %4 %5 %6): %4 = update(p, %3) is stored as slices arrive, but p before the "
            "step is still read for "
            "whole tensors");
}

TEST(Fuse, RefusesToPushOverAStateThatIsStillSummed) {
  const char* program = R"(input g : f32[N] local
state p : f32[N] replicated
update(p, all_reduce(sum, g))
output y = sum(p)
)";
  EXPECT_EQ(Kernels(program, "split(%2, 0); fuse(%2 %3 %4 %5)"),
            "fuse(%2 %3 %4 %5): %4 = update(p, %3) is stored as slices arrive, but p before the "
            "step is still read for "
            "whole tensors");
}

TEST(Fuse, RefusesToStoreAWholeStateThatIsReadOnSlices) {
  const char* program = R"(input g : f32[N] local
state p : f32[N] replicated
output y = p * all_reduce(sum, g)
update(p, p * p)
)";
  EXPECT_EQ(Kernels(program, "split(%4, 0); reorder(%5); fuse(%2 %3 %4 %5 %6 %7)"),
            "fuse(%2 %3 %4 %5 %6 %7): %3 = update(p, %2) stores the whole tensor, but p before the "
            "step is read on slices");
}

TEST(Fuse, RefusesRowsThatLieOnSeveralRanks) {
  const char* rows = R"(input x : f32[4, N] sliced(1)
output y = x - amax(all_gather(x), 1)
)";
  EXPECT_EQ(
      Kernels(rows, "fuse(%2 %3)"),
      "fuse(%2 %3): the kernel folds rows, but those of %3 = sub(x, %2) lie on several ranks");
  const char* parts = R"(state s : f32[4, N] sliced(1)
output y = 2 * sum(s, 1)
)";
  EXPECT_EQ(Kernels(parts, "fuse(%2 %3)"),
            "fuse(%2 %3): %2 = sum(s, 1) folds rows that are empty or lie on several ranks: want a "
            "kernel of its own");
  const char* empty = R"(input x : f32[4, 0] replicated
output y = 2 * x + sum(x, 1)
)";
  EXPECT_EQ(Kernels(empty, "fuse(%2 %3 %4)"),
            "fuse(%2 %3 %4): %3 = sum(x, 1) folds rows that are empty or lie on several ranks: "
            "want a kernel of its own");
}

TEST(Fuse, RefusesACycleThroughAnotherOperation) {
  EXPECT_EQ(Kernels(kMomentum, "fuse(%4 %8 %9)"),
            "fuse(%4 %8 %9): %6 = add(%4, %5) is not in the kernel, but must run after some of it "
            "and before the rest");
}

TEST(Fuse, RefusesACycleThroughAReaderOfTheOldState) {
  // The second reduction needs the old p and what the kernel computes, so p cannot be stored by
  // then.
  const char* program = R"(input g : f32[N] local
state p : f32[N] replicated
d = 2 * all_reduce(sum, g)
update(p, d)
output y = all_reduce(sum, g * (p + d))
)";
  EXPECT_EQ(Kernels(program, "fuse(%4 %5)"),
            "fuse(%4 %5): %6 = add(p, %4) is not in the kernel, but must run after some of it and "
            "before the rest");
}

}  // namespace
}  // namespace coconet
