#include "runtime/plan.h"

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
                               .args = {{Kind::kPeers, 0}, {Kind::kOwn, 1}, {Kind::kInt, -1, 100}, {Kind::kRank},
                                        {Kind::kControl}},
                               .blocks = 2,
                               .label = "fuse(RS, C, AG)"},
                    CollectiveStep{CollectiveStep::Kind::kReduceScatter, ReduceKind::kMax, DType::kF32, 0, 2, 50, "RS"},
                    CollectiveStep{CollectiveStep::Kind::kAllGather, ReduceKind::kSum, DType::kF32, 0, 2, 50, "AG"}},
          .bytes_per_rank = 1600};
}

TEST(Plan, PrintsOneLineABufferAndAStep) {
  EXPECT_EQ(Print(Example()),
            "plan ranks=2 bytes=1600\n"
            "%0 = input \"g\" f32[100] symmetric\n"
            "%1 = state \"m\" bf16[64]\n"
            "%2 = temp \"t\" f32[128]\n"
            "%3 = sync \"flags\" i32[32] symmetric\n"
            "0: kernel k_ab12 blocks=2 (peers %0, own %1, int 100, rank, control) \"fuse(RS, C, AG)\"\n"
            "1: reduce_scatter max f32[50] %0 -> %2 \"RS\"\n"
            "2: all_gather f32[50] %0 -> %2 \"AG\"\n");
}

TEST(Plan, CountsTheBytesOfItsBuffers) { EXPECT_EQ(BytesPerRank(Example()), 100 * 4 + 64 * 2 + 128 * 4 + 32 * 4); }

}  // namespace
}  // namespace coconet
