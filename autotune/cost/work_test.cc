#include "autotune/cost/work.h"

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "autotune/cost/kernel_work.h"
#include "coconet/ir/typed_graph.h"
#include "coconet/language/text.h"
#include "coconet/schedule/schedule.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

/// The work of all operations of a program but declarations and scalars.
Work WorkOfAll(absl::string_view text, int ranks = 1) {
  const absl::StatusOr<Graph> graph = Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  const absl::StatusOr<Schedule> schedule = InitialSchedule(*graph);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  std::vector<NodeId> nodes;
  for (NodeId id = 0; id < schedule->program().size(); ++id) {
    if (schedule->launches().of[id] >= 0) nodes.push_back(id);
  }
  return WorkOf(schedule->program(), nodes, Target(ranks));
}

TEST(Work, CountsEachTensorOnceAndEachOperationByElement) {
  const Work work = WorkOfAll(R"(coconet 1
program p
input x : f32[64, 32] local
input b : f32[32] replicated
%2 = add(x, b)
%3 = mul(%2, x)
%4 = exp(%3)
output y = %4
)");
  EXPECT_EQ(work.kind, Work::Kind::kKernel);
  EXPECT_EQ(work.bytes_read, (2048 + 32) * 4);
  EXPECT_EQ(work.bytes_written, 2048 * 4);
  EXPECT_EQ(work.bytes_again, 0);
  EXPECT_EQ(work.arithmetic, 2 * 2048);
  EXPECT_EQ(work.transcendentals, 2048);
  EXPECT_EQ(work[Effort::kPass], 2048);
  EXPECT_EQ(work[Effort::kLoad], 2048);
  EXPECT_EQ(work[Effort::kSpread], 2048);
  EXPECT_EQ(work[Effort::kScattered], 0);
  EXPECT_EQ(work[Effort::kSimple], 2 * 2048);
  EXPECT_EQ(work[Effort::kExp], 2048);
  EXPECT_EQ(work[Effort::kStore], 2048);
  EXPECT_EQ(work[Effort::kAlone], 0);
}

TEST(Work, RecomputesScalarsForNothing) {
  const Work work = WorkOfAll(R"(coconet 1
program p
input x : f32[64] local
input s : f32[] replicated
%2 = exp(s)
%3 = mul(x, %2)
output y = %3
)");
  EXPECT_EQ(work.bytes_read, 64 * 4);
  EXPECT_EQ(work.arithmetic, 64);
  EXPECT_EQ(work.transcendentals, 0);
}

TEST(Work, ARowsFoldIsAnotherLoop) {
  const Work work = WorkOfAll(R"(coconet 1
program p
input x : f32[8, 64] local
%1 = amax(x, 1)
%2 = sub(x, %1)
%3 = exp(%2)
%4 = sum(%3, 1)
%5 = div(%3, %4)
output y = %5
)");
  // Three loops over each row: for the greatest, for the sum, and for the result.
  EXPECT_EQ(work[Effort::kPass], 3 * 512);
  EXPECT_EQ(work[Effort::kLoad], 3 * 512);
  EXPECT_EQ(work[Effort::kExp], 2 * 512);
  EXPECT_EQ(work[Effort::kDivision], 512);
  EXPECT_EQ(work[Effort::kTotal], 2 * 8 * kCountedPack);
  EXPECT_EQ(work.bytes_read, 512 * 4) << "a row's second load comes from a cache";
  EXPECT_EQ(work.bytes_again, 0);
  EXPECT_EQ(work.folded, 0);
}

TEST(Work, AFoldOfAllElementsReadsThemOnceMore) {
  const Work work = WorkOfAll(R"(coconet 1
program p
input x : f32[1024] local
%1 = sum(x)
%2 = mul(x, %1)
output y = %2
)");
  EXPECT_EQ(work.bytes_read, 4096);
  EXPECT_EQ(work.bytes_again, 4096);
  EXPECT_EQ(work[Effort::kPass], 2 * 1024);
  EXPECT_EQ(work.arithmetic, 2 * 1024);
}

TEST(Work, ARankComputesItsSlice) {
  const Work work = WorkOfAll(R"(coconet 1
program p
input x : f32[4096, 16] sliced(0)
%1 = mul(x, x)
output y = %1
)",
                              /*ranks=*/4);
  EXPECT_EQ(work.bytes_read, 1024 * 16 * 4);
  EXPECT_EQ(work.bytes_written, 1024 * 16 * 4);
  EXPECT_EQ(work.arithmetic, 1024 * 16);
}

TEST(Work, StoresOfAnUpdateAreWritten) {
  const Work work = WorkOfAll(R"(coconet 1
program p
input g : f32[1000] replicated
state w : f32[1000] replicated
%2 = sub(w, g)
%3 = cast(bf16, %2)
update(w, %2)
output y = %3
)");
  EXPECT_EQ(work.bytes_read, 2 * 4000);
  EXPECT_EQ(work.bytes_written, 4000 + 2000);
  EXPECT_EQ(work[Effort::kNarrow], 992) << "by the store alone";
  EXPECT_EQ(work[Effort::kPass], 992) << "in packs";
  EXPECT_GT(work[Effort::kAlone], 0);
}

TEST(Work, AFoldOverAnotherDimensionIsStrided) {
  const Work work = WorkOfAll(R"(coconet 1
program p
input x : f32[100, 64] local
%1 = sum(x, 0)
output y = %1
)");
  EXPECT_EQ(work.folded, 6400);
  EXPECT_EQ(work[Effort::kStridedFold], 6400);
  EXPECT_EQ(work.bytes_read, 6400 * 4);
  EXPECT_EQ(work.bytes_written, 64 * 4);
}

TEST(Work, ATransposeLoadsElementsOneByOne) {
  const Work moved = WorkOfAll(R"(coconet 1
program p
input x : f32[64, 32] local
%1 = transpose(x, 1, 0)
output y = %1
)");
  EXPECT_EQ(moved[Effort::kScattered], 2048);
  const Work heads = WorkOfAll(R"(coconet 1
program p
input x : f32[2, 8, 4, 16] local
%1 = transpose(x, 0, 2, 1, 3)
output y = %1
)");
  EXPECT_EQ(heads[Effort::kScattered], 0);
  EXPECT_EQ(heads[Effort::kSpread], 1024);
}

TEST(Work, ProductsHaveTheirShapes) {
  const Work work = WorkOfAll(R"(coconet 1
program p
input a : f32[8, 128, 64] local
input b : f32[32, 64] replicated
%2 = matmul(a, b, transpose_b)
output y = %2
)");
  EXPECT_EQ(work.kind, Work::Kind::kProduct);
  EXPECT_EQ(work.batch, 1) << "leading dimensions are rows";
  EXPECT_EQ(work.m, 8 * 128);
  EXPECT_EQ(work.n, 32);
  EXPECT_EQ(work.k, 64);
  EXPECT_FALSE(work.transpose_a);
  EXPECT_TRUE(work.transpose_b);
  EXPECT_EQ(work.bytes_read, (8 * 128 * 64 + 32 * 64) * 4);
  EXPECT_EQ(work.bytes_written, 8 * 128 * 32 * 4);
  const Work heads = WorkOfAll(R"(coconet 1
program p
input a : bf16[8, 128, 64] local
input b : bf16[8, 64, 128] local
%2 = matmul(a, b)
output y = %2
)");
  EXPECT_EQ(heads.batch, 8);
  EXPECT_EQ(heads.m, 128);
  EXPECT_EQ(heads.dtype, DType::kBF16);
}

TEST(Work, CollectivesHaveTheBytesOfWholeOperands) {
  const Work bucket = WorkOfAll(R"(coconet 1
program p
input g : f32[1000] local
input h : f32[24] local
%2 = all_reduce(sum, g)
%3 = all_reduce(sum, h)
output y = %2
output z = %3
)",
                                /*ranks=*/2);
  EXPECT_EQ(bucket.kind, Work::Kind::kCollective);
  EXPECT_EQ(bucket.collective, CollectiveStep::Kind::kAllReduce);
  EXPECT_EQ(bucket.group, Group::kStage);
  EXPECT_EQ(bucket.bytes, 4096);
  EXPECT_EQ(bucket.tensors, 2);
  const Work gathered = WorkOfAll(R"(coconet 1
program p
input g : f32[4096] sliced(0)
%1 = all_gather(g)
output y = %1
)",
                                  /*ranks=*/4);
  EXPECT_EQ(gathered.collective, CollectiveStep::Kind::kAllGather);
  EXPECT_EQ(gathered.bytes, 4 * 4096);
}

TEST(Lanes, PacksBeginAtMultiples) {
  EXPECT_EQ(LanesOf(256, 64).in_packs, 256);
  EXPECT_EQ(LanesOf(20, 20).in_packs, 16);
  EXPECT_EQ(LanesOf(20, 20).alone, 4);
  // Rows of 20 begin at 0, 20, 40, 60: [0, 16), [32, 40) without a pack, [48, 60) without, [64,
  // 80).
  EXPECT_EQ(LanesOf(80, 20).in_packs, 32);
  EXPECT_EQ(LanesOf(80, 20).alone, 48);
  EXPECT_EQ(LanesOf(0, 0).in_packs, 0);
}

}  // namespace
}  // namespace coconet
