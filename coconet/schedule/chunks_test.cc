// Which chains of launches work chunk by chunk, and the words for those that do not.

#include "coconet/schedule/chunks.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coconet/testing/transformed.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

/// Rows that a rank has for every expert, sent to the experts' ranks, multiplied there, sent back.
constexpr absl::string_view kExperts = R"(input x : f32[E, G, C, H] sliced(1)
input w : f32[E, 1, H, H] sliced(0)
a = abs(x)
b = all_to_all(a, 0)
c = matmul(b, w)
d = all_to_all(c, 1)
output y = exp(d)
)";

ChunkSpace SpaceOf(absl::string_view program, const std::string& launches) {
  const Schedule s = ScheduleOf(program, absl::StrCat("overlap(", launches, ")"));
  return ChunksOf(s, s.overlaps()[0]).space;
}

/// What follows the colon of a refusal.
std::string Refused(absl::string_view program, const std::string& launches,
                    const std::string& fusions = "") {
  const std::string overlap = absl::StrCat("overlap(", launches, "): "),
                    text = Transformed(
                        program, absl::StrCat(fusions, overlap.substr(0, overlap.size() - 2)));
  EXPECT_TRUE(absl::StartsWith(text, overlap)) << text;
  return text.substr(overlap.size());
}

TEST(Chunks, OfExchangedTensorsAreOfTheFirstDimension) {
  const ChunkSpace experts = SpaceOf(kExperts, "%2 %3 %4 %5 %6");
  EXPECT_TRUE(experts.lead && experts.slices && experts.exchanges && experts.has_product);
  EXPECT_EQ(experts.dim, 0);
  // A dimension that no rank has slices of.
  const ChunkSpace layers = SpaceOf(
      "input x : f32[L, R, C] sliced(1)\noutput y = exp(all_to_all(abs(x), 2))\n", "%1 %2 %3");
  EXPECT_TRUE(layers.lead && !layers.slices);
  EXPECT_EQ(layers.dim, 0);
  // Behind dimensions of one index.
  const ChunkSpace samples = SpaceOf(
      "input x : f32[1, 1, R, C] sliced(3)\noutput y = exp(all_to_all(abs(x), 2))\n", "%1 %2 %3");
  EXPECT_TRUE(samples.lead && samples.slices);
  EXPECT_EQ(samples.dim, 2);
}

TEST(Chunks, OfSeveralMatricesAreMatrices) {
  const ChunkSpace space = SpaceOf(
      "input x : f32[E, C, H] local\ninput w : f32[E, H, K] local\n"
      "output y = all_reduce(sum, matmul(x, w))\n",
      "%2 %3");
  EXPECT_TRUE(space.lead && space.has_product && !space.slices && !space.exchanges);
}

TEST(Chunks, MayGoPastALaunch) {
  // Both products take what comes; neither takes the other's result.
  constexpr absl::string_view kTwoProducts = R"(input x : f32[E, C, H] sliced(1)
input w : f32[E, H, H] sliced(0)
input v : f32[E, H, H] sliced(0)
b = all_to_all(x, 0)
output y = matmul(b, w)
output z = matmul(b, v)
)";
  EXPECT_EQ(ScheduleOf(kTwoProducts, "overlap(%3 %4 %6)").overlaps().size(), 1u);
}

TEST(Chunks, RefusesLaunchesThatShareNothing) {
  EXPECT_EQ(Refused("input x : f32[8] local\ninput z : f32[8] local\n"
                    "output a = all_reduce(sum, x)\noutput b = abs(z)\n",
                    "%2 %4"),
            "%4 = abs(z) takes nothing that the launches before it make");
}

TEST(Chunks, RefusesWhatAKernelExchanges) {
  EXPECT_EQ(Refused("input x : f32[8, 8] sliced(0)\ninput w : f32[8, 8] replicated\n"
                    "output y = all_to_all(abs(matmul(x, w)), 1)\n",
                    "%2 %3", "fuse(%3 %4); "),
            "%4 = all_to_all(%3, 1) is exchanged by a kernel, which works on all of it");
}

TEST(Chunks, RefusesSumsByIndexOfWhatComes) {
  EXPECT_EQ(Refused("input x : f32[4, 6, H] sliced(0)\ninput t : i32[4, 6] sliced(1)\n"
                    "output y = scatter_add(all_to_all(x, 1), t, [5, H])\n",
                    "%2 %3"),
            "%3 = scatter_add(%2, t, [5, H]) adds to rows of all chunks");
}

TEST(Chunks, RefusesViewsOfWhatComes) {
  EXPECT_EQ(Refused("input x : f32[8, 6] sliced(0)\n"
                    "output y = transpose(all_to_all(x, 1), 1, 0)\n",
                    "%1 %2"),
            "%2 = transpose(%1, 1, 0) takes elements of other chunks of %1 = all_to_all(x, 1)");
}

TEST(Chunks, RefusesOtherSlicesThanExchanged) {
  EXPECT_EQ(Refused("input x : f32[8, 6, 4] sliced(1)\n"
                    "output y = all_to_all(all_to_all(all_to_all(x, 0), 1), 2)\n",
                    "%1 %2 %3"),
            "%3 = all_to_all(%2, 2) exchanges slices of other dimensions than 0, which is sliced");
}

TEST(Chunks, RefusesPartsOfPlaces) {
  EXPECT_EQ(Refused("input x : f32[4, 6, 8] local\ninput w : f32[4, 8, 8] local\n"
                    "output y = all_reduce(sum, matmul(x, w))\n",
                    "%2 %3", "split_by_node(%3, 0); "),
            "%3 = reduce_scatter(sum, %2, 0, node) has parts of places, want slices");
}

TEST(Chunks, RefusesScattersOfOtherDimensions) {
  EXPECT_EQ(Refused("input x : f32[8, 6, 4] local\n"
                    "output y = all_to_all(reduce_scatter(sum, x, 1), 0)\n",
                    "%1 %2"),
            "%1 = reduce_scatter(sum, x, 1) is sliced over another dimension than 0");
}

TEST(Chunks, RefusesProductsThatSumOverTheChunks) {
  EXPECT_EQ(Refused("input x : f32[K, M] sliced(0)\ninput w : f32[K, N] replicated\n"
                    "output y = matmul(all_to_all(x, 1), w, transpose_a)\n",
                    "%2 %3"),
            "%3 = matmul(%2, w, transpose_a) sums over the rows of %2 = all_to_all(x, 1), which "
            "the chunks cut");
}

/// A product that a kernel goes on with, and which is in tiles, has no other chunks.
constexpr char kActivation[] = R"(input a : f32[96, 20] local
input b : f32[20, 10] local
input r : f32[96, 10] local
c = abs(matmul(a, b))
d = all_reduce(sum, c)
output e = d
)";
constexpr char kGatheredRows[] = R"(input a : f32[96, 20] sliced(0)
input b : f32[20, 10] sliced(1)
output c = abs(matmul(all_gather(abs(a)), b))
)";

TEST(Chunks, RefusesProductsWhoseScalesTheChunksCut) {
  constexpr absl::string_view kOperands =
      "input x : f8e4m3[B, M, K] local\ninput w : f8e4m3[K, N] replicated\n"
      "input t : f32[1, 1] replicated\n";
  EXPECT_EQ(Refused(absl::StrCat(kOperands, "input s : f32[B, M, 1] sliced(1)\n",
                                 "output y = matmul(x, w, all_gather(s), t)\n"),
                    "%4 %5"),
            "%5 = matmul(x, w, %4, t) needs all scales of %4 = all_gather(s) for its first rows");
  EXPECT_EQ(Refused(absl::StrCat(kOperands, "input s : f32[B, 1, 1] local\n",
                                 "output y = all_reduce(sum, matmul(x, w, s, t))\n"),
                    "%4 %5"),
            "%4 = matmul(x, w, s, t) has scales of blocks of rows of several matrices; want one");
  for (const char* scales : {"f32[B, M, 1]", "f32[1, 1, 1]"}) {
    EXPECT_TRUE(SpaceOf(absl::StrCat(kOperands, "input s : ", scales, " local\n",
                                     "output y = all_reduce(sum, matmul(x, w, s, t))\n"),
                        "%4 %5")
                    .has_product);
  }
}

TEST(Chunks, OfTilesThatAKernelGoesOnWithAreRows) {
  const auto space_of = [](absl::string_view program, const std::string& trace) {
    const Schedule s = ScheduleOf(program, trace);
    return ChunksOf(s, s.overlaps()[0]).space;
  };
  const ChunkSpace reduced = space_of(kActivation, "fuse(%3 %4); overlap(%3 %5)");
  EXPECT_TRUE(reduced.rows && reduced.has_product && !reduced.lead && !reduced.slices);
  EXPECT_TRUE(space_of(kActivation, "split(%5, 0); fuse(%3 %4); overlap(%3 %5)").slices);
  EXPECT_TRUE(space_of(kGatheredRows, "fuse(%4 %5); overlap(%3 %4)").has_product);
}

TEST(Chunks, RefusesTilesThatNothingGoesOnWith) {
  EXPECT_EQ(Refused(absl::StrCat(kActivation, "output f = exp(c)\n"), "%3 %7", "fuse(%3 %4); "),
            "%3 = matmul(a, b) is made in tiles: want a launch after it that communicates what its "
            "kernel computes, or one before it that gathers its rows");
  // A sum comes before the product, which needs more than its rows.
  EXPECT_EQ(
      Refused("input a : f32[96, 20] local\ninput b : f32[20, 10] replicated\n"
              "output c = abs(matmul(all_reduce(sum, a), b))\n",
              "%2 %3", "fuse(%3 %4); "),
      "%3 = matmul(%2, b) is made in tiles: want a launch after it that communicates what its "
      "kernel computes, or one before it that gathers its rows");
}

TEST(Chunks, RefusesKernelsOfTilesThatCommunicate) {
  EXPECT_EQ(Refused("input a : f32[96, 20] sliced(0)\ninput b : f32[20, 10] sliced(1)\n"
                    "output c = all_gather(abs(matmul(all_gather(a), b)))\n",
                    "%2 %3", "fuse(%3 %4 %5); "),
            "%5 = all_gather(%4) is in the kernel that makes the tiles of %3 = matmul(%2, b); want "
            "it in a launch of its own");
}

TEST(Chunks, RefusesElementsOfRowsThatAProductAwaits) {
  EXPECT_EQ(Refused("input a : f32[96, 20] sliced(0)\ninput b : f32[20, 20] replicated\n"
                    "g = all_gather(a)\noutput c = matmul(g, b) + g\n",
                    "%2 %3", "fuse(%3 %4); "),
            "%4 = add(%3, %2) takes %2 = all_gather(a), of which the kernel of %3 = matmul(%2, b) "
            "awaits rows for the product only");
}

TEST(Chunks, RefusesFewRowsThatAKernelTakes) {
  EXPECT_EQ(Refused("input a : f32[64, 20] local\ninput b : f32[20, 10] local\n"
                    "output d = all_reduce(sum, abs(matmul(a, b)))\n",
                    "%2 %4", "fuse(%2 %3); "),
            "%2 = matmul(a, b) is computed at once by the kernel that takes it");
}

TEST(Chunks, OfListsAreTensors) {
  const ChunkSpace space = SpaceOf(
      "sizes N = 4, 70\ninput t : f32[5, N] sliced(1)\ninput i : i32[8, 3] replicated\n"
      "output y = all_to_all(embedding_bag(t, i, sum), 0)\n",
      "%2 %3");
  EXPECT_TRUE(space.tensors && space.exchanges && !space.lead && !space.slices);
}

TEST(Chunks, RefusesTotalsOfTensors) {
  EXPECT_EQ(Refused("sizes N = 4, 70\ninput g : f32[N] local\nb = abs(all_reduce(sum, g))\n"
                    "output z = b * total(sum(b))\n",
                    "%1 %2 %3"),
            "%3 = sum(%2) is a scalar, of which other launches may need the total");
}

TEST(Chunks, RefusesWhatTensorsShare) {
  EXPECT_EQ(Refused("sizes N = 4, 70\ninput g : f32[N] local\ninput s : f32[8, 9] sliced(0)\n"
                    "output v = abs(all_to_all(s, 1))\noutput y = abs(g)\n",
                    "%2 %3"),
            "%2 = all_to_all(s, 1) is of what all tensors of the list share");
}

}  // namespace
}  // namespace coconet
