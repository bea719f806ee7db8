// What is refused of operations that fold, multiply, view and send, by its words.

#include "absl/strings/str_cat.h"
#include "coconet/ir/infer.h"
#include "coconet/language/text.h"
#include "coconet/testing/transformed.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

std::string ParseError(const std::string& program) {
  return std::string(Parse(absl::StrCat("coconet 1\n", program)).status().message());
}

TEST(Reorder, RefusesRowsThatGoAcrossSlices) {
  for (const char* rows : {"amax(all_gather(x), 1)", "mean(all_gather(x), 1)"}) {
    EXPECT_EQ(Transformed(absl::StrCat("input x : f32[4, N] sliced(1)\noutput y = ", rows, "\n"),
                          "reorder(%1)"),
              "reorder(%1): no computation after %1 = all_gather(x) can be done on slices (f32[4, "
              "N] sliced(1))");
  }
}

TEST(Reorder, RefusesProductsThatSumAcrossSlices) {
  const char* program = R"(input x : f32[4, N] sliced(1)
input w : f32[N, 8] replicated
output y = matmul(all_gather(x), w)
)";
  EXPECT_EQ(Transformed(program, "reorder(%2)"),
            "reorder(%2): no computation after %2 = all_gather(x) can be done on slices (f32[4, N] "
            "sliced(1))");
}

TEST(Split, RefusesWhatDoesNotSplit) {
  EXPECT_EQ(Transformed("input x : f32[4, 8] replicated\ninput w : f32[8, 2] replicated\noutput y "
                        "= matmul(x, w)\n",
                        "split(%2, 0)"),
            "split(%2, 0): want all_reduce, a fold or send, have %2 = matmul(x, w)");
  EXPECT_EQ(Transformed("input x : f32[4, 8] replicated\noutput y = sum(x, 1)\n", "split(%1, 0)"),
            "split(%1, 0): %1 = sum(x, 1) has several results, want a fold of all dimensions");
  EXPECT_EQ(Transformed("input x : f32[8] local\noutput y = sum(x)\n", "split(%1, 0)"),
            "split(%1, 0): %1 = sum(x) takes f32[8] local, want a replicated operand");
  EXPECT_EQ(Transformed("input x : f32[8] local\noutput y = send(x, next)\n", "split(%1, 0)"),
            "split(%1, 0): %1 = send(x, next) takes f32[8] local, want a replicated operand");
}

TEST(Fuse, RefusesWhatIsALaunchOfItsOwn) {
  EXPECT_EQ(Transformed("input x : f32[8] local\noutput y = abs(broadcast(x, 0))\n", "fuse(%1 %2)"),
            "fuse(%1 %2): %1 = broadcast(x, 0) is a launch of its own, not work of a kernel");
}

TEST(Fuse, RefusesProductsWithScalesThatTilesDoNotTake) {
  const auto fused = [](int rows, int depth, int scales, absl::string_view flags) {
    return Transformed(
        absl::StrCat("input x : f8e4m3[", rows, ", ", depth, "] replicated\n", "input s : f32[1, ",
                     scales, "] replicated\n", "output y = abs(matmul(x, x, s, s, ", flags, "))\n"),
        "fuse(%2 %3)");
  };
  const auto refused = testing::HasSubstr(") is a launch of its own: kernels compute products");
  EXPECT_THAT(fused(800, 256, 4, "transpose_b"), refused) << "blocks of 64";
  EXPECT_THAT(fused(256, 800, 1, "transpose_a"), refused) << "rows lie along n";
  EXPECT_THAT(fused(800, 256, 2, "transpose_b"), testing::HasSubstr("\nkernel %2 %3\n"));
  EXPECT_THAT(fused(800, 24, 1, "transpose_b"), testing::HasSubstr("\nkernel %2 %3\n"));
  EXPECT_THAT(fused(1, 256, 2, "transpose_b"), testing::HasSubstr("\nkernel %2 %3\n"));
}

TEST(Fuse, RefusesProductsThatAKernelDoesNotCompute) {
  const auto refused = [](absl::string_view rows, absl::string_view text,
                          absl::string_view transformation) {
    return Transformed(absl::StrCat("input x : f32[", rows, "] replicated\n",
                                    "input w : f32[8, 8] replicated\n", text),
                       transformation);
  };
  constexpr absl::string_view kWhy =
      "fuse(%2 %3): %2 = matmul(x, w) is a launch of its own: kernels compute products of one "
      "matrix on each rank, or go on with those of one batch, of known extents, that is of no "
      "list; of 8-bit floats those with both operands along the dimension that is summed over, and "
      "scales of blocks of all of it or of multiples of 128";
  EXPECT_EQ(refused("N, 8", "output y = abs(matmul(x, w))\n", "fuse(%2 %3)"), kWhy);
  // Dimensions of matrices of x that others lie between; a batch that ranks reduce; another, taken.
  EXPECT_EQ(Transformed("input x : f32[2, 1, 3, 70, 8] replicated\n"
                        "input w : f32[2, 5, 3, 8, 8] replicated\noutput y = abs(matmul(x, w))\n",
                        "fuse(%2 %3)"),
            kWhy);
  EXPECT_EQ(Transformed("input x : f32[2, 70, 8] local\ninput w : f32[2, 8, 8] replicated\n"
                        "output y = all_reduce(sum, matmul(x, w))\n",
                        "fuse(%2 %3)"),
            kWhy);
  constexpr absl::string_view kBatch =
      "input x : f32[2, 70, 8] replicated\ninput w : f32[2, 8, 8] replicated\n%2 = matmul(x, w)\n"
      "%3 = abs(%2)\noutput y = %3\n";
  EXPECT_EQ(Transformed(kBatch, "fuse(%2 %3)"), absl::StrCat(kBatch, "kernel %2 %3\n"));
  EXPECT_EQ(
      refused("4, 8", "output y = abs(matmul(abs(x), w))\n", "fuse(%2 %3 %4)"),
      "fuse(%2 %3 %4): %3 = matmul(%2, w) takes elements of other places of %2 = abs(x), want "
      "that in memory");
  EXPECT_EQ(refused("4, 8", "output y = abs(x)\noutput z = matmul(x, w)\n", "fuse(%2 %4)"),
            "fuse(%2 %4): nothing in the kernel takes %4 = matmul(x, w)");
  // 64 rows, as many as a prologue has, in several dimensions; and more.
  EXPECT_EQ(refused("2, 32, 8", "output y = abs(matmul(x, w))\n", "fuse(%2 %3)"),
            "input x : f32[2, 32, 8] replicated\ninput w : f32[8, 8] replicated\n%2 = matmul(x, "
            "w)\n%3 = abs(%2)\noutput y = %3\nkernel %2 %3\n");
}

TEST(Fuse, RefusesWhatAKernelCannotDoTileByTile) {
  const auto refused = [](absl::string_view text, absl::string_view transformation) {
    return Transformed(absl::StrCat("input x : f32[70, 70] replicated\n",
                                    "state w : f32[70, 70] replicated\n", text),
                       transformation);
  };
  EXPECT_EQ(refused("output y = abs(matmul(x, w))\n", "fuse(%2 %3)"),
            "input x : f32[70, 70] replicated\nstate w : f32[70, 70] replicated\n%2 = matmul(x, "
            "w)\n%3 = abs(%2)\noutput y = %3\nkernel %2 %3\n");
  EXPECT_EQ(refused("output y = matmul(x, w) + matmul(w, x)\n", "fuse(%2 %3 %4)"),
            "fuse(%2 %3 %4): a kernel computes one product in tiles, of more than 64 rows or of "
            "8-bit floats, and no other, not %2 = "
            "matmul(x, w) and %3 = matmul(w, x)");
  EXPECT_EQ(refused("output y = sum(abs(matmul(x, w)), 1)\n", "fuse(%2 %3 %4)"),
            "fuse(%2 %3 %4): %4 = sum(%3, 1) goes over all elements, %2 = matmul(x, w) is computed "
            "tile by tile: want two kernels");
  EXPECT_EQ(Transformed("input x : f32[70, 70] local\ninput w : f32[70, 70] local\n"
                        "output y = all_reduce(sum, abs(matmul(x, w)))\n",
                        "fuse(%2 %3 %4)"),
            "fuse(%2 %3 %4): %4 = all_reduce(sum, %3) goes over all elements, %2 = matmul(x, w) is "
            "computed tile by tile: want two kernels");
  const auto reduced = [](absl::string_view text, absl::string_view transformation) {
    return Transformed(
        absl::StrCat("input x : f32[70, 70] local\nstate w : f32[70, 70] local\n", text),
        transformation);
  };
  EXPECT_EQ(reduced("y = matmul(x, w)\noutput z = all_reduce(sum, y)\n", "fuse(%2 %3)"),
            "input x : f32[70, 70] local\nstate w : f32[70, 70] local\n%2 = matmul(x, w)\n%3 = "
            "all_reduce(sum, %2)\noutput z = %3\nkernel %2 %3\n");
  EXPECT_EQ(reduced("y = all_reduce(sum, matmul(x, w))\nupdate(w, w - y)\noutput z = y\n",
                    "fuse(%2 %3 %4 %5)"),
            "fuse(%2 %3 %4 %5): %5 = update(w, %4) overwrites what %2 = matmul(x, w) takes for "
            "other tiles: want two kernels");
  EXPECT_EQ(reduced("y = matmul(x, w)\noutput z = all_reduce(sum, y) + transpose(y, 1, 0)\n",
                    "fuse(%2 %3 %4 %5)"),
            "fuse(%2 %3 %4 %5): %4 = transpose(%2, 1, 0) takes elements of other tiles of %2 = "
            "matmul(x, w): want two kernels");
  EXPECT_EQ(
      reduced("y = matmul(x, w)\noutput z = all_reduce(sum, y) + all_reduce(sum, matmul(w, x))\n",
              "fuse(%2 %3 %4 %5 %6)"),
      "fuse(%2 %3 %4 %5 %6): a kernel computes one product in tiles, of more than 64 rows or of "
      "8-bit floats, and no other, not "
      "%2 = matmul(x, w) and %4 = matmul(w, x)");
  EXPECT_EQ(
      refused("output y = abs(matmul(abs(x), w))\n", "fuse(%2 %3 %4)"),
      "fuse(%2 %3 %4): %3 = matmul(%2, w) takes elements of other places of %2 = abs(x), want "
      "that in memory");
  EXPECT_EQ(
      refused("update(w, w - matmul(x, w))\n", "fuse(%2 %3 %4)"),
      "fuse(%2 %3 %4): %4 = update(w, %3) overwrites elements that %2 = matmul(x, w) takes for "
      "other places");
  EXPECT_EQ(
      refused("output y = shard(matmul(x, w), 0)\n", "fuse(%2 %3)"),
      "fuse(%2 %3): %2 = matmul(x, w) is computed tile by tile, and the kernel takes slices of "
      "what is whole, goes on with what other ranks send, or has scalars: want two kernels");
  EXPECT_EQ(
      refused("y = matmul(x, w)\noutput z = all_gather(abs(shard(y, 0)))\n", "fuse(%2 %3 %4 %5)"),
      "fuse(%2 %3 %4 %5): %2 = matmul(x, w) is computed tile by tile, and the kernel takes slices "
      "of what is whole, goes on with what other ranks send, or has scalars: want two kernels");
  const auto gathered = [](absl::string_view text, absl::string_view transformation) {
    return Transformed(absl::StrCat("input x : f32[70, 70] replicated\ninput w : f32[70, 70] "
                                    "sliced(1)\nstate s : f32[70, 70] replicated\n",
                                    text),
                       transformation);
  };
  EXPECT_EQ(
      gathered("output z = all_gather(abs(matmul(x, w)))\noutput y = x\n", "fuse(%3 %4 %5 %6 %7)"),
      "fuse(%3 %4 %5 %6 %7): %4 = matmul(x, w) is computed tile by tile, and the kernel takes "
      "slices of what is whole, goes on with what other ranks send, or has scalars: want two "
      "kernels");
  EXPECT_EQ(gathered("n = update(s, all_gather(abs(matmul(x, w))))\noutput z = n\n",
                     "fuse(%3 %4 %5 %6 %7)"),
            "input x : f32[70, 70] replicated\ninput w : f32[70, 70] sliced(1)\nstate s : f32[70, "
            "70] replicated\n%3 = matmul(x, w)\n%4 = abs(%3)\n%5 = all_gather(%4)\n%6 = update(s, "
            "%5)\noutput z = %6\nkernel %3 %4 %5 %6 %7\n");
  EXPECT_EQ(refused("y = matmul(x, w)\noutput z = transpose(y, 1, 0) + y\n", "fuse(%2 %3 %4)"),
            "fuse(%2 %3 %4): %3 = transpose(%2, 1, 0) takes elements of other places of %2 = "
            "matmul(x, w), want that in memory");
}

TEST(Fuse, RefusesSendsOfWhatTheKernelDoesNotCompute) {
  EXPECT_EQ(
      Transformed("input x : f32[8] local\noutput y = abs(x)\noutput z = send(x, next)\n",
                  "fuse(%1 %3)"),
      "fuse(%1 %3): %3 = send(x, next) sends input x : f32[8] local, which is not in the kernel");
}

TEST(Fuse, RefusesToUseWhatComesFromAnotherStageInTheKernelThatSends) {
  EXPECT_EQ(
      Transformed("input x : f32[8] local\noutput y = abs(send(-x, next))\n", "fuse(%1 %2 %3)"),
      "fuse(%1 %2 %3): %3 = abs(%2) takes %2 = send(%1, next) of the same kernel, which has come "
      "from the other stage when that kernel has ended");
  EXPECT_EQ(Transformed("input x : f32[8] sliced(0)\noutput y = all_gather(send(-x, next))\n",
                        "fuse(%1 %2 %3)"),
            "fuse(%1 %2 %3): %3 = all_gather(%2) takes %2 = send(%1, next) of the same kernel, "
            "which has come from the other stage when that kernel has "
            "ended");
}

TEST(Fuse, RefusesASendOverAStateThatTheKernelReads) {
  const char* program = R"(state s : f32[8] replicated
update(s, send(abs(s), next))
)";
  EXPECT_EQ(Transformed(program, "fuse(%1 %2 %3)"),
            "fuse(%1 %2 %3): %3 = update(s, %2) is stored as elements come from another stage, but "
            "s before the step is read");
}

TEST(Fuse, RefusesTwoExchangesInAKernel) {
  EXPECT_EQ(Transformed("input x : f32[8, 8, 8] sliced(0)\n"
                        "output y = all_to_all(all_to_all(x, 1), 2)\n",
                        "fuse(%1 %2)"),
            "fuse(%1 %2): %1 = all_to_all(x, 1) and %2 = all_to_all(%1, 2) exchange slices of "
            "different dimensions: want one of the two in a kernel");
  EXPECT_EQ(Transformed("input x : f32[8, 8] sliced(0)\ninput z : f32[8, 8] sliced(0)\n"
                        "output y = all_to_all(-x, 1) + all_to_all(z, 1)\n",
                        "fuse(%2 %3 %4 %5)"),
            "fuse(%2 %3 %4 %5): one of %3 = all_to_all(%2, 1) and %4 = all_to_all(z, 1) takes what "
            "the kernel computes, the other does not: that takes a second round");
}

TEST(Fuse, RefusesWholeTensorsBesideAnExchange) {
  EXPECT_EQ(Transformed("input x : f32[8, 8] sliced(0)\n"
                        "output y = all_gather(abs(all_to_all(x, 1)))\n",
                        "fuse(%1 %2 %3)"),
            "fuse(%1 %2 %3): %3 = all_gather(%2) is not work on the slices that %1 = "
            "all_to_all(x, 1) exchanges: want a kernel of its own");
  EXPECT_EQ(Transformed("input x : f32[8, 8] sliced(0)\n"
                        "output y = all_reduce(sum, sum(all_to_all(x, 1)))\n",
                        "fuse(%1 %2)"),
            "fuse(%1 %2): %2 = sum(%1) is not work on the slices that %1 = all_to_all(x, 1) "
            "exchanges: want a kernel of its own");
}

TEST(Fuse, RefusesToStoreWholeTensorsBesideAnExchange) {
  const auto refused = [](absl::string_view exchange, absl::string_view fuse) {
    return Transformed(
        absl::StrCat("input x : f32[8, 8] sliced(1)\nstate s : f32[8, 8] replicated\n"
                     "input z : f32[8, 8] replicated\nu = abs(z)\nupdate(s, u)\noutput y = u * ",
                     exchange, "\n"),
        fuse);
  };
  EXPECT_EQ(
      refused("all_to_all(x, 0)", "fuse(%3 %4 %5 %6 %7)"),
      "fuse(%3 %4 %5 %6 %7): %4 = update(s, %3) is of whole tensors, and %5 = all_to_all(x, 0) "
      "exchanges slices: want a kernel of its own");
  EXPECT_EQ(refused("all_to_all(-x, 0)", "fuse(%3 %4 %5 %6 %7 %8)"),
            "fuse(%3 %4 %5 %6 %7 %8): %4 = update(s, %3) is of whole tensors, and %6 = "
            "all_to_all(%5, 0) exchanges slices: want a kernel of its own");
}

TEST(Fuse, RefusesRowsThatAnExchangeCuts) {
  EXPECT_EQ(Transformed("input x : f32[8, 8] sliced(0)\n"
                        "output y = all_to_all(x - sum(x, 1), 1)\n",
                        "fuse(%1 %2 %3)"),
            "fuse(%1 %2 %3): the kernel folds rows, but those of %3 = all_to_all(%2, 1) lie on "
            "several ranks");
  EXPECT_EQ(Transformed("input x : f32[8, 8] sliced(1)\n"
                        "y = all_to_all(x, 0)\noutput z = y - sum(y, 1)\n",
                        "fuse(%1 %2 %3)"),
            "fuse(%1 %2 %3): the kernel folds rows, but those of input x : f32[8, 8] sliced(1) lie "
            "on several ranks");
  EXPECT_EQ(Transformed("input x : f32[8, 8] sliced(1)\n"
                        "y = all_to_all(-x, 0)\noutput z = y - sum(y, 1)\n",
                        "fuse(%2 %3 %4)"),
            "fuse(%2 %3 %4): the kernel folds rows, but those of %1 = neg(x) lie on several "
            "ranks");
}

TEST(Fuse, RefusesAnExchangeOverAStateThatTheKernelReads) {
  const char* program = R"(input x : f32[8, 8] sliced(0)
state s : f32[8, 8] sliced(1)
update(s, all_to_all(-x, 1))
output y = abs(s)
)";
  EXPECT_EQ(Transformed(program, "fuse(%2 %3 %4 %5)"),
            "fuse(%2 %3 %4 %5): %4 = update(s, %3) is stored as slices arrive, but s before the "
            "step is read");
}

TEST(Fuse, RefusesAViewOfWhatTheKernelComputes) {
  EXPECT_EQ(Transformed("input x : f32[4, 8] replicated\noutput y = transpose(abs(x), 1, 0)\n",
                        "fuse(%1 %2)"),
            "fuse(%1 %2): %2 = transpose(%1, 1, 0) takes elements of other places of %1 = abs(x), "
            "want that in memory");
}

TEST(Fuse, RefusesToJoinWhatTheKernelComputes) {
  EXPECT_EQ(Transformed("input x : f32[4, 8] replicated\ninput z : f32[4, 0] replicated\n"
                        "output y = concat(z, abs(x), 1)\n",
                        "fuse(%2 %3)"),
            "fuse(%2 %3): %3 = concat(z, %2, 1) takes elements of other places of %2 = abs(x), "
            "want that in memory");
  EXPECT_EQ(Transformed("state s : f32[8] local\ninput z : f32[0] local\n"
                        "update(s, s + concat(z, s, 0))\n",
                        "fuse(%2 %3 %4)"),
            "fuse(%2 %3 %4): %4 = update(s, %3) overwrites elements that %2 = concat(z, s, 0) "
            "takes for other places");
}

TEST(Fuse, RefusesAGatherOfATableThatTheKernelComputes) {
  const char* program =
      "input t : f32[8, 8] local\ninput i : i32[8] local\noutput y = "
      "gather(t * t, i, 0) + 1\n";
  EXPECT_EQ(Transformed(program, "fuse(%2 %3)"),
            "fuse(%2 %3): %3 = gather(%2, i, 0) takes elements of other places of %2 = mul(t, t), "
            "want that in memory");
  EXPECT_EQ(Transformed("input t : f32[8, 4] local\ninput i : i32[8] local\noutput y = gather(t, "
                        "i * i, 0)\n",
                        "fuse(%2 %3)"),
            "fuse(%2 %3): want one shape, have %2 = mul(i, i) of [8] and %3 = gather(t, %2, 0) of "
            "[8, 4]");
  EXPECT_EQ(Transformed("state t : f32[8, 8] local\ninput i : i32[8] local\nupdate(t, t + "
                        "gather(t, i, 0))\n",
                        "fuse(%2 %3 %4)"),
            "fuse(%2 %3 %4): %4 = update(t, %3) overwrites elements that %2 = gather(t, i, 0) "
            "takes for other places");
}

TEST(Fuse, RefusesABagOfWhatTheKernelComputes) {
  EXPECT_EQ(Transformed("input t : f32[8, 4] local\ninput i : i32[8, 4] local\n"
                        "output y = embedding_bag(t, abs(i), sum)\n",
                        "fuse(%2 %3)"),
            "fuse(%2 %3): %3 = embedding_bag(t, %2, sum) takes elements of other places of %2 = "
            "abs(i), want that in memory");
}

TEST(Fuse, RefusesAScatterOfWhatTheKernelComputes) {
  EXPECT_EQ(Transformed("input u : f32[8, 4] local\ninput i : i32[8] local\n"
                        "output y = scatter_add(abs(u), i, [3, 4])\n",
                        "fuse(%2 %3)"),
            "fuse(%2 %3): %3 = scatter_add(%2, i, [3, 4]) takes elements of other places of %2 = "
            "abs(u), want that in memory");
}

TEST(Fuse, RefusesViewsThatHaveTheShapeOfRows) {
  EXPECT_EQ(Transformed("input x : f32[3, 8] local\ninput v : f32[3] local\noutput y = sum(x, 1) + "
                        "reshape(v, [3, 1])\n",
                        "fuse(%2 %3 %4)"),
            "fuse(%2 %3 %4): want one shape, have %2 = sum(x, 1) of [3, 8] and %3 = reshape(v, [3, "
            "1]) of [3, 1]");
}

TEST(Fuse, RefusesColumnsAndRowsOfTwoLengths) {
  EXPECT_EQ(
      Transformed("input x : f32[4, 8] replicated\noutput y = x * sum(x, 0)\n", "fuse(%1 %2)"),
      "fuse(%1 %2): %1 = sum(x, 0) folds dimensions that are not the last: want a kernel of its "
      "own");
  EXPECT_EQ(Transformed("input x : f32[2, 4, 8] replicated\noutput y = x * sum(x, 2)\noutput z = x "
                        "+ sum(x, 1, 2)\n",
                        "fuse(%1 %2 %4 %5)"),
            "fuse(%1 %2 %4 %5): %4 = sum(x, 1, 2) folds 2 dimensions, other folds of the kernel 1");
}

TEST(Fuse, RefusesToStoreAStateThatIsReadAfterASum) {
  const char* program = R"(state s : f32[8] replicated
a = abs(s)
update(s, a)
output y = s * sum(a)
)";
  EXPECT_EQ(Transformed(program, "fuse(%1 %2 %3 %4)"),
            "fuse(%1 %2 %3 %4): %2 = update(s, %1) is stored before a sum is complete, but s "
            "before the step is still read after that");
}

// A send goes to a stage beside its own, all ranks of a stage alike: so no ring of sends can wait
// for itself.
TEST(Infer, RefusesSendsThatCouldWaitForThemselves) {
  Graph g;
  const NodeId x = g.Add(Input{"x", {DType::kF32, {8}, Layout::Local()}});
  g.Add(Send{2}, {x});
  EXPECT_EQ(InferTypes(g).status().message(),
            "send(x, next): want the next stage or the previous one, have a shift of 2");
}

TEST(Infer, RefusesSumsOfTensorsThatAreSlicedOtherwise) {
  EXPECT_EQ(ParseError(
                "input a : f32[8, 8] sliced(0)\ninput b : f32[8, 8] sliced(1)\noutput y = a + b\n"),
            "line 4: add(a, b): operands are sliced over different dimensions, have a : "
            "f32[8, 8] sliced(0) and b : f32[8, 8] sliced(1)");
}

}  // namespace
}  // namespace coconet
