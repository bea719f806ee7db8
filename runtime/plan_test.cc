#include "runtime/plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

Plan Example() {
  using Kind = Arg::Kind;
  return {.ranks = 2,
          .buffers = {{"g", BufferRole::kInput, DType::kF32, 100, true},
                      {"m", BufferRole::kState, DType::kBF16, 64, false},
                      {"t", BufferRole::kTemp, DType::kF32, 128, false},
                      {"flags", BufferRole::kSync, DType::kI32, 32, true}},
          .steps = {KernelStep{.symbol = "k_ab12",
                               .args = {{Kind::kPeers, 0},
                                        {Kind::kMulticast, 0},
                                        {Kind::kOwn, 1},
                                        {Kind::kInt, -1, 100},
                                        {Kind::kRank},
                                        {Kind::kControl}},
                               .blocks = 2,
                               .label = "fuse(RS, C, AG)"},
                    CollectiveStep{CollectiveStep::Kind::kReduceScatter, ReduceKind::kMax,
                                   DType::kF32, 0, 2, 50, "RS"},
                    CollectiveStep{CollectiveStep::Kind::kAllGather, ReduceKind::kSum, DType::kF32,
                                   0, 2, 50, "AG"}},
          .bytes_per_rank = 1600};
}

TEST(Plan, PrintsOneLineABufferAndAStep) {
  EXPECT_EQ(Print(Example()),
            "plan ranks=2 bytes=1600\n"
            "%0 = input \"g\" f32[100] symmetric\n"
            "%1 = state \"m\" bf16[64]\n"
            "%2 = temp \"t\" f32[128]\n"
            "%3 = sync \"flags\" i32[32] symmetric\n"
            "0: kernel k_ab12 blocks=2 (peers %0, multicast %0, own %1, int 100, rank, control) "
            "\"fuse(RS, C, AG)\"\n"
            "1: reduce_scatter max f32[50] %0 -> %2 \"RS\"\n"
            "2: all_gather f32[50] %0 -> %2 \"AG\"\n");
}

TEST(Plan, PrintsARowATensor) {
  using Kind = Arg::Kind;
  const Plan plan{.buffers = {{"p.0", BufferRole::kState, DType::kF32, 3, false},
                              {"p.1", BufferRole::kState, DType::kF32, 5, false}},
                  .steps = {KernelStep{.symbol = "k_1",
                                       .args = {{Kind::kTable}, {Kind::kInt, -1, 2}},
                                       .label = "C",
                                       .tensors = {{{Kind::kOwn, 0}, {Kind::kInt, -1, 3}},
                                                   {{Kind::kOwn, 1}, {Kind::kInt, -1, 5}}}}},
                  .bytes_per_rank = 32};
  EXPECT_EQ(Print(plan),
            "plan ranks=1 bytes=32\n"
            "%0 = state \"p.0\" f32[3]\n"
            "%1 = state \"p.1\" f32[5]\n"
            "0: kernel k_1 blocks=1 (table, int 2) \"C\"\n"
            "   tensor (own %0, int 3)\n"
            "   tensor (own %1, int 5)\n");
}

TEST(Plan, PrintsSharedMemoryThatALaunchAsksFor) {
  KernelStep step{.symbol = "k_1", .args = {}, .label = "MM"};
  const KernelStep without = step;
  step.threads = 384, step.shared_bytes = 102400;
  EXPECT_EQ(Print(Plan{.buffers = {}, .steps = {step}}),
            "plan ranks=1 bytes=0\n0: kernel k_1 blocks=1 threads=384 shared=102400 () \"MM\"\n");
  step.threads = 1;
  EXPECT_NE(Step(step), Step(without));
}

TEST(Plan, PrintsTensorMapsAndKnowsTheirBuffers) {
  using Kind = Arg::Kind;
  KernelStep step{.symbol = "k_1", .args = {{Kind::kTensorMap, -1, 1}, {Kind::kOwn, 2}}};
  step.label = "MM";
  step.maps = {{.buffer = 0,
                .dtype = DType::kBF16,
                .rows = {512},
                .columns = {64},
                .ld = 64,
                .box_rows = 128,
                .box_columns = 64},
               {.buffer = 1,
                .dtype = DType::kF16,
                .offset = 8,
                .rows = {100},
                .columns = {80, 32},
                .ld = 96,
                .matrices = {5, 2},
                .matrix_step = 9600,
                .box_rows = 64,
                .box_columns = 32}};
  Plan plan{.buffers = {}, .steps = {step}};
  EXPECT_EQ(Print(plan),
            "plan ranks=1 bytes=0\n"
            "0: kernel k_1 blocks=1 (tensor_map 1, own %2) \"MM\"\n"
            "   map bf16[512, 64] %0(64) by [128, 64]\n"
            "   map f16[100, 80/32] %1+8(96, 9600) of 5/2 matrices by [64, 32]\n");
  std::vector<int> buffers;
  ForBuffers(plan.steps[0], [&](int& buffer) { buffers.push_back(buffer++); });
  EXPECT_EQ(buffers, (std::vector<int>{2, 0, 1}));
  EXPECT_EQ(std::get<KernelStep>(plan.steps[0]).maps[1].buffer, 2);
  KernelStep other = step;
  other.maps[1].matrix_step = 9601;
  EXPECT_NE(Step(step), Step(other));
}

TEST(Plan, PrintsGroupsOfRanksWhereThereAreMoreThanOne) {
  using Kind = CollectiveStep::Kind;
  Plan plan{.ranks = 4, .nodes = 2, .stages = 3, .buffers = {}, .steps = {}, .bytes_per_rank = 8};
  const auto add = [&](Kind kind, Group group, int root, int shift) {
    plan.steps.push_back(
        CollectiveStep{kind, ReduceKind::kSum, DType::kF16, 0, 1, 5, "x", group, root, shift});
  };
  add(Kind::kAllReduce, Group::kAcross, 0, 1);
  add(Kind::kBroadcast, Group::kStage, 3, 1);
  add(Kind::kReduce, Group::kNode, 1, 1);
  add(Kind::kAllToAll, Group::kStage, 0, 1);
  add(Kind::kSend, Group::kStage, 0, -1);
  plan.steps.push_back(
      KernelStep{.symbol = "k", .args = {{Arg::Kind::kNodeRank}}, .blocks = 1, .label = "C"});
  EXPECT_EQ(Print(plan),
            "plan ranks=4 nodes=2 stages=3 bytes=8\n"
            "0: all_reduce sum group=across f16[5] %0 -> %1 \"x\"\n"
            "1: broadcast root=3 f16[5] %0 -> %1 \"x\"\n"
            "2: reduce sum group=node root=1 f16[5] %0 -> %1 \"x\"\n"
            "3: all_to_all f16[5] %0 -> %1 \"x\"\n"
            "4: send shift=-1 f16[5] %0 -> %1 \"x\"\n"
            "5: kernel k blocks=1 (node_rank) \"C\"\n");
}

TEST(Plan, PrintsWhatReductionsAdmit) {
  CollectiveStep sum{CollectiveStep::Kind::kAllReduce, ReduceKind::kSum, DType::kF16, 0, 1, 5, "x"};
  sum.rounds_each = true;
  CollectiveStep most{CollectiveStep::Kind::kReduce, ReduceKind::kMax, DType::kF32, 0, 1, 5, "y"};
  most.no_nans = true;
  const Plan plan{.ranks = 2, .buffers = {}, .steps = {sum, most}, .bytes_per_rank = 8};
  EXPECT_EQ(Print(plan),
            "plan ranks=2 bytes=8\n"
            "0: all_reduce sum rounds=each f16[5] %0 -> %1 \"x\"\n"
            "1: reduce max nans=none root=0 f32[5] %0 -> %1 \"y\"\n");
}

TEST(Plan, KnowsTheSizesOfItsGroups) {
  const Plan plan{
      .ranks = 6, .nodes = 2, .stages = 3, .buffers = {}, .steps = {}, .bytes_per_rank = 0};
  EXPECT_EQ(SizeOf(plan, Group::kStage), 6);
  EXPECT_EQ(SizeOf(plan, Group::kNode), 3);
  EXPECT_EQ(SizeOf(plan, Group::kAcross), 2);
}

GemmStep ExampleGemm() {
  return {.dtype = DType::kBF16,
          .batch = 2,
          .m = {512},
          .n = {100, 64},
          .k = {1000},
          .a = {.buffer = 0, .offset = 8, .ld = 1000, .batch_stride = 512000},
          .b = {.buffer = 1, .ld = 1000},
          .c = {.buffer = 2, .ld = 64, .batch_stride = 32768},
          .transpose_b = true,
          .label = "MM"};
}

TEST(Plan, PrintsMatrixProducts) {
  Plan plan{.buffers = {}, .steps = {ExampleGemm()}};
  EXPECT_EQ(Print(plan),
            "plan ranks=1 bytes=0\n"
            "0: gemm bf16 2 x [512, 100/64, 1000] %0+8(1000, 512000) . %1(1000, 0)^T -> %2(64, "
            "32768) \"MM\"\n");
  std::get<GemmStep>(plan.steps[0]).threads = 2;
  EXPECT_THAT(Print(plan), testing::HasSubstr("%2(64, 32768) threads=2 \"MM\"\n"));
  std::get<GemmStep>(plan.steps[0]).candidate = 3;
  std::get<GemmStep>(plan.steps[0]).beside = 16;
  EXPECT_THAT(Print(plan), testing::HasSubstr("threads=2 candidate=3 beside=16 \"MM\"\n"));
}

TEST(Plan, PrintsScalesOfMatrixProducts) {
  GemmStep step = ExampleGemm();
  step.a.scales = {.buffer = 3, .offset = 2, .ld = 8, .batch_stride = 16, .block_columns = 125};
  step.b.scales = {.buffer = 4, .ld = 8, .block_rows = 64, .block_columns = 125, .first_row = 32};
  Plan plan{.buffers = {}, .steps = {step}};
  EXPECT_THAT(Print(plan),
              testing::HasSubstr("%0+8(1000, 512000) * %3+2(8, 16) per [1, 125] . %1(1000, 0) * "
                                 "%4(8, 0) per [64, 125] from [32, 0]^T -> "));
  std::vector<int> buffers;
  ForBuffers(plan.steps[0], [&](int& buffer) { buffers.push_back(buffer); });
  EXPECT_THAT(buffers, testing::UnorderedElementsAre(0, 1, 2, 3, 4));
}

TEST(Plan, PrintsLanesWhereTheyAreUsed) {
  Plan plan{.buffers = {},
            .steps = {ExampleGemm(), KernelStep{.symbol = "k", .args = {}, .label = "C"}}};
  plan.steps.push_back(
      CollectiveStep{.kind = CollectiveStep::Kind::kAllReduce, .in = 0, .out = 0, .label = "AR"});
  std::get<GemmStep>(plan.steps[0]).lane = 1;
  std::get<KernelStep>(plan.steps[1]).after = {0};
  std::get<CollectiveStep>(plan.steps[2]).lane = 1;
  std::get<CollectiveStep>(plan.steps[2]).after = {0, 1};
  EXPECT_THAT(Print(plan), testing::HasSubstr("\"MM\" lane=1\n"));
  EXPECT_THAT(Print(plan), testing::HasSubstr("\"C\" after=[0]\n"));
  EXPECT_THAT(Print(plan), testing::HasSubstr("\"AR\" lane=1 after=[0, 1]\n"));
}

TEST(Plan, DiffersByLaneAndOrder) {
  const Step step = ExampleGemm();
  GemmStep other = ExampleGemm();
  other.lane = 1;
  EXPECT_NE(step, Step(other));
  EXPECT_EQ(LaneOf(other), 1);
  other.lane = 0;
  other.after = {0};
  EXPECT_NE(step, Step(other));
  EXPECT_EQ(AfterOf(other), std::vector<int>{0});
}

std::vector<int64_t> OnRanks(const RankExtent& extent, int ranks) {
  std::vector<int64_t> out;
  for (int rank = 0; rank < ranks; ++rank) out.push_back(extent.On(rank));
  return out;
}

TEST(RankExtent, IsTheSameEverywhereOrASlice) {
  EXPECT_EQ(OnRanks({100}, 3), (std::vector<int64_t>{100, 100, 100}));
  EXPECT_EQ(OnRanks({100, 64}, 3), (std::vector<int64_t>{64, 36, 0}));
  EXPECT_EQ(OnRanks({64, 64}, 3), (std::vector<int64_t>{64, 0, 0}));
  EXPECT_EQ(OnRanks({10, 64}, 2), (std::vector<int64_t>{10, 0}));
  EXPECT_EQ(OnRanks({0, 64}, 2), (std::vector<int64_t>{0, 0}));
  constexpr int64_t kHuge = int64_t{1} << 62;
  EXPECT_EQ(OnRanks({kHuge + 1, kHuge}, 5), (std::vector<int64_t>{kHuge, 1, 0, 0, 0}));
  EXPECT_EQ(OnRanks({100, 40, 30}, 4), (std::vector<int64_t>{10, 40, 40, 10}));
  EXPECT_EQ(OnRanks({100, 100, 200}, 4), (std::vector<int64_t>{0, 0, 100, 0}));
  EXPECT_EQ((RankExtent{100, 64}.Most()), 64);
  EXPECT_EQ((RankExtent{10, 64}.Most()), 10);
  EXPECT_EQ((RankExtent{100}.Most()), 100);
}

}  // namespace
}  // namespace coconet
