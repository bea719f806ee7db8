// What the machine of simulated threads finds in kernels with planted mistakes, and that it finds
// nothing in those without.

#include <array>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/simt/testing/simt_lab.h"
#include "tests/gpus/simt_image.h"

namespace coconet {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr char kKernels[] = R"(#include "coconet/kernel.h"
using namespace coconet;
struct Params { Control* control; unsigned* a; unsigned* flag; u64* words; Index n; };

CC_KERNEL(fills) {
  const Index first = grid.BlockId() * grid.BlockSize() + grid.ThreadId();
  const Index stride = grid.GridSize() * grid.BlockSize();
  for (Index i = first; i < p.n; i += stride) p.a[i] = unsigned(i);
}
CC_KERNEL(all_write_one) { p.a[0] = 1; }
CC_KERNEL(rotates) {
  CC_SHARED(unsigned, values, 64);
  values[grid.ThreadId()] = p.a[grid.ThreadId()];
  grid.Sync();
  p.a[grid.ThreadId()] = values[(grid.ThreadId() + 1) % grid.BlockSize()];
}
CC_KERNEL(rotates_without_barrier) {
  CC_SHARED(unsigned, values, 64);
  values[grid.ThreadId()] = 1;
  p.a[grid.ThreadId()] = values[(grid.ThreadId() + 1) % grid.BlockSize()];
}
CC_KERNEL(reads_unwritten_shared) {
  CC_SHARED(unsigned, values, 64);
  if (grid.ThreadId() > 0) values[grid.ThreadId()] = 1;
  grid.Sync();
  p.a[grid.ThreadId()] = values[grid.ThreadId()];
}
CC_KERNEL(loads_misaligned) { StoreLanes<4>(p.a + 4, LoadLanes<4>(p.a + 1)); }
CC_KERNEL(sums_unwritten) { if (p.a[p.n] == 1) p.a[0] = 1; }
CC_KERNEL(half_come_to_barrier) {
  if (grid.ThreadId() < 16) grid.Sync();
}
CC_KERNEL(two_kinds_of_barriers) {
  if (grid.ThreadId() < 16) grid.Sync();
  else grid.SyncAnd(true);
}
CC_KERNEL(one_kind_of_barrier_in_two_places) {
  if (grid.ThreadId() < 16) {
    grid.Sync();
    p.a[grid.ThreadId()] = 1;
  } else {
    p.a[grid.ThreadId()] = 2;
    grid.Sync();
  }
}
CC_KERNEL(some_shuffle_while_others_wait) {
  if (grid.ThreadId() < 16) grid.Sync();
  else p.a[grid.ThreadId()] = ShuffleDown(0xffffffffu, 1u, 1);
}
CC_KERNEL(shuffles_with_wrong_mask) { p.a[grid.ThreadId()] = ShuffleDown(0xffffu, 1u, 1); }
CC_KERNEL(totals) {
  const double total = 
      grid.Total(double(grid.ThreadId()), [](double x, double y) { return x + y; });
  if (grid.ThreadId() == 0) p.a[0] = unsigned(total);
}
CC_KERNEL(sends) {
  if (grid.ThreadId() == 0) p.a[0] = 7;
  grid.Sync();
  if (grid.ThreadId() == 1) StoreRelease(p.flag, 1);
}
CC_KERNEL(receives) {
  bool ok = true;
  if (grid.ThreadId() == 0) ok = WaitFlag(p.control, p.flag, 1, 0, 0, 0);
  if (grid.SyncAnd(ok)) p.a[1 + grid.ThreadId()] = p.a[0];
}
CC_KERNEL(sends_flag_first) {
  if (grid.ThreadId() == 0) StoreRelease(p.flag, 1), p.a[0] = 7;
}
CC_KERNEL(sends_without_barrier) {
  if (grid.ThreadId() == 0) p.a[0] = 7;
  if (grid.ThreadId() == 1) StoreRelease(p.flag, 1);
}
CC_KERNEL(last_block_lets_go) {
  if (grid.BlockId() + 1 == grid.GridSize()) StoreRelease(p.flag, 1);
  else WaitFlag(p.control, p.flag, 1, 0, 0, 0);
}
CC_KERNEL(stores_two_words) { StoreRelaxed(p.words, 1), StoreRelaxed(p.words + 1, 1); }
CC_KERNEL(loads_two_words) {
  u64 second, first;
  do LoadRelaxed(p.words + 1, second); while (second == 0);
  LoadRelaxed(p.words, first);
  p.a[0] = unsigned(first);
}
)";

/// With these kernels.
class Lab : public SimtLab {
 public:
  explicit Lab(const SimtOptions& options = {}) : SimtLab(TheImage(), options) {}

 private:
  static const std::string& TheImage() {
    static const auto* image = new std::string(SimtImage(kKernels));
    return *image;
  }
};

TEST(SimtChecks, KernelsWithoutMistakesRun) {
  for (const SimtOptions& options : SimtInterleavings()) {
    Lab bench(options);
    EXPECT_EQ(bench.Run("fills", 3, 40), "");
    for (unsigned i = 0; i < 64; ++i) EXPECT_EQ(bench.params().a[i], i);
    Lab rotating(options);
    EXPECT_EQ(rotating.Run("rotates", 1, 64), "");
    Lab totalling(options);
    EXPECT_EQ(totalling.Run("totals", 1, 72), "");
    EXPECT_EQ(totalling.params().a[0], 72u * 71 / 2);
    Lab sending(options);
    sending.Launch("receives", 1, 1, 40);
    sending.Launch("sends", 0, 1, 2);
    EXPECT_EQ(sending.Run(), "");
    EXPECT_EQ(sending.params().a[40], 7u);
  }
}

TEST(SimtChecks, FindsRacesBetweenThreadsOfABlock) {
  for (const SimtOptions& options : SimtInterleavings()) {
    EXPECT_THAT(
        Lab(options).Run("all_write_one", 1, 2),
        AllOf(
            HasSubstr("data race: all_write_one (kernel.cc:10"),
            ContainsRegex(
                "on rank 0 block 0 thread [01] writes bytes \\[0, 4\\) of a buffer of 256 bytes"),
            ContainsRegex("rank 0 block 0 of all_write_one thread [01] \\(kernel.cc:10.*\\) wrote "
                          "byte 0 before")));
    EXPECT_THAT(Lab(options).Run("rotates_without_barrier", 1, 64),
                ContainsRegex("^(data race|never written): .*shared memory of block 0"));
  }
}

TEST(SimtChecks, FindsRacesBetweenRanks) {
  for (const char* sender : {"sends_flag_first", "sends_without_barrier"}) {
    bool found = false;
    for (const SimtOptions& options : SimtInterleavings()) {
      Lab bench(options);
      bench.Launch("receives", 1, 1, 8);
      bench.Launch(sender, 0, 1, 2);
      const std::string what = bench.Run();
      EXPECT_THAT(what, HasSubstr("data race: "));
      found |= !what.empty();
    }
    EXPECT_TRUE(found) << sender;
  }
}

TEST(SimtChecks, LaunchesAreOrderedByWhatTheyWaitFor) {
  Lab unordered;
  unordered.Launch("fills", 0, 1, 8);
  unordered.Launch("fills", 1, 1, 8);
  EXPECT_THAT(unordered.Run(), HasSubstr("data race"));
  Lab ordered;
  const auto first = ordered.Launch("fills", 0, 1, 8);
  EXPECT_EQ(ordered.Run(), "");
  ordered.Launch("fills", 1, 2, 8, first.get());
  EXPECT_EQ(ordered.Run(), "");
}

TEST(SimtChecks, FindsAccessesOutsideOfBuffers) {
  Lab behind;
  behind.params().n = 65;
  EXPECT_THAT(
      behind.Run("fills", 1, 32),
      AllOf(HasSubstr("out of bounds: fills (kernel.cc:8"),
            HasSubstr(
                "thread 0 writes 4 bytes at bytes [256, 260) of a buffer of 256 bytes on rank 0")));
  Lab nowhere;
  nowhere.params().a = nullptr;
  EXPECT_THAT(nowhere.Run("fills", 1, 1),
              HasSubstr("writes 4 bytes at 0x0, where no rank has memory"));
  EXPECT_THAT(Lab().Run("loads_misaligned", 1, 1),
              HasSubstr("reads bytes [4, 20) of a buffer of 256 bytes on rank 0"));
}

TEST(SimtChecks, FindsReadsOfWhatNobodyWrote) {
  EXPECT_THAT(Lab().Run("reads_unwritten_shared", 1, 64),
              AllOf(HasSubstr("never written: reads_unwritten_shared"), HasSubstr("thread 0 reads"),
                    HasSubstr("nothing has written byte 0")));
  Lab fresh;
  fresh.params().a = fresh.Fresh(64);
  fresh.params().n = 63;
  EXPECT_THAT(fresh.Run("sums_unwritten", 1, 1),
              HasSubstr("reads bytes [252, 256) of a buffer of 256 bytes on rank 0; nothing has "
                        "written byte 252"));
}

TEST(SimtChecks, FindsBarriersThatNotAllComeTo) {
  for (const SimtOptions& options : SimtInterleavings()) {
    EXPECT_THAT(Lab(options).Run("half_come_to_barrier", 1, 32),
                HasSubstr("divergent barrier: half_come_to_barrier"));
    EXPECT_THAT(Lab(options).Run("two_kinds_of_barriers", 1, 32),
                HasSubstr("divergent barrier: two_kinds_of_barriers"));
    EXPECT_THAT(
        Lab(options).Run("one_kind_of_barrier_in_two_places", 1, 32),
        ContainsRegex("divergent barrier: .* is at another barrier than "
                      "one_kind_of_barrier_in_two_places \\(.*kernel.cc:.*\\) on rank 0 block 0"));
    EXPECT_THAT(Lab(options).Run("some_shuffle_while_others_wait", 1, 32),
                ContainsRegex("divergent barrier: .* waits for it to meet its warp|bad shuffle: .* "
                              "it names thread [0-9]+, which waits at a barrier"));
    EXPECT_THAT(Lab(options).Run("shuffles_with_wrong_mask", 1, 32),
                HasSubstr("meets its warp by mask 0xffff: it lacks the thread itself"));
  }
  EXPECT_THAT(Lab().Run("shuffles_with_wrong_mask", 1, 12),
              HasSubstr("names thread 12, which the block lacks"));
}

TEST(SimtChecks, NamesWhoWaitsForWhatNobodySets) {
  for (const SimtOptions& options : SimtInterleavings()) {
    EXPECT_THAT(Lab(options).Run("receives", 1, 32),
                AllOf(HasSubstr("deadlock: receives"),
                      HasSubstr("thread 0 waits for bytes [0, 4) of a buffer of 8 bytes on rank 0 "
                                "to reach 1, has 0")));
  }
}

TEST(SimtChecks, BlocksThatWaitForOthersMustBeThereTogether) {
  for (SimtOptions options : SimtInterleavings()) {
    EXPECT_EQ(Lab(options).Run("last_block_lets_go", 4, 1), "");
    options.resident_blocks = 3;
    EXPECT_THAT(Lab(options).Run("last_block_lets_go", 4, 1),
                HasSubstr("of 4 blocks of last_block_lets_go on rank 0 only 3 have begun"));
    EXPECT_EQ(Lab(options).Run("fills", 8, 8), "");
  }
}

TEST(SimtChecks, FindsOutputsThatNobodyWrote) {
  for (const SimtOptions& options : SimtInterleavings()) {
    Lab lab(options);
    unsigned* output = lab.Fresh(64);
    lab.params().a = output;
    lab.params().n = 61;  // a tail left out
    EXPECT_EQ(lab.Run("fills", 2, 8), "");
    lab.machine().checker().CheckWritten(output, 61 * sizeof(unsigned));
    EXPECT_FALSE(lab.machine().finding().has_value());
    lab.machine().checker().CheckWritten(output, 64 * sizeof(unsigned));
    ASSERT_TRUE(lab.machine().finding().has_value());
    EXPECT_EQ(lab.machine().finding()->kind, FindingKind::kUnwrittenOutput);
    EXPECT_THAT(lab.machine().finding()->text,
                ContainsRegex("^unwritten output: no kernel has written bytes .244, 245. of a "
                              "buffer of 256 bytes on rank 0; "
                              "rank 0 block 0 of fills thread 0 .*wrote bytes .0, 1. of a buffer "
                              "of 256 bytes on rank 0$"));
  }
}

TEST(SimtChecks, StoresThatNothingOrdersComeInAnyOrder) {
  std::array<int, 2> seen = {};
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Lab bench({.seed = seed});
    bench.Launch("loads_two_words", 1, 1, 1);
    bench.Launch("stores_two_words", 0, 1, 1);
    EXPECT_EQ(bench.Run(), "");
    ++seen[bench.params().a[0]];
  }
  EXPECT_GT(seen[0], 0);
  EXPECT_GT(seen[1], 0);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Lab bench({.seed = seed, .weak = false});
    bench.Launch("loads_two_words", 1, 1, 1);
    bench.Launch("stores_two_words", 0, 1, 1);
    EXPECT_EQ(bench.Run(), "");
    EXPECT_EQ(bench.params().a[0], 1u);
  }
}

}  // namespace
}  // namespace coconet
