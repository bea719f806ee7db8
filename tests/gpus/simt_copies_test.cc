// What the machine of simulated threads finds in kernels whose asynchronous copies are planted with
// mistakes, and that it finds nothing in those without.

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
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

enum Fences { kNever, kEarly, kByWriters, kByCopier };
template <bool kAwaitsReads, bool kAwaitsStores, int kFences>
CC_DEVICE void Copies(const Params& p, const Grid& grid) {
  CC_SHARED(uint4, part, 2);
  if (kFences == kEarly) FenceAsyncProxy();
  if (grid.ThreadId() < 2) Store16(part + grid.ThreadId(), uint4{7, 7, 7, 7});
  if (kFences == kByWriters) FenceAsyncProxy();
  grid.Sync();
  if (grid.ThreadId() == 0) {
    if (kFences == kByCopier) FenceAsyncProxy();
    CopyBulk(p.a, part, 32);
    CloseBulkGroup();
    if (kAwaitsReads) AwaitBulkReads<0>();
  }
  grid.Sync();
  if (grid.ThreadId() == 1) Store16(part, uint4{8, 8, 8, 8});
  if (kAwaitsStores && grid.ThreadId() == 0) AwaitBulkStores();
  grid.Sync();
  if (kAwaitsStores && grid.ThreadId() == 1) p.a[8] = p.a[0];
}
CC_KERNEL(copies) { Copies<true, true, kByWriters>(p, grid); }
CC_KERNEL(copies_behind_a_fence) { Copies<true, true, kByCopier>(p, grid); }
CC_KERNEL(copies_without_fence) { Copies<true, true, kNever>(p, grid); }
CC_KERNEL(copies_with_an_early_fence) { Copies<true, true, kEarly>(p, grid); }
CC_KERNEL(copies_what_changes) { Copies<false, true, kByWriters>(p, grid); }
CC_KERNEL(leaves_copies) { Copies<true, false, kByWriters>(p, grid); }
template <bool kWaits>
CC_DEVICE void Brings(const Params& p, const Grid& grid) {
  CC_SHARED(uint4, parts, 8);
  CopyAsync16If(grid.ThreadId() != 3, parts + grid.ThreadId(), p.a + 4 * grid.ThreadId());
  CommitCopies();
  if (kWaits) WaitCopies<0>();
  grid.Sync();
  const uint4 part = LoadWord(parts + (grid.ThreadId() + 1) % 8);
  grid.Sync();
  p.a[4 * grid.ThreadId() + 3] = part.x + part.w;
}
CC_KERNEL(brings) { Brings<true>(p, grid); }
CC_KERNEL(brings_and_does_not_wait) { Brings<false>(p, grid); }
enum Mistakes {
  kNone, kWrongParity, kTooFewBytes, kTooManyBytes, kNoInit, kLateInit, kInitTwice, kNoBarrierFence,
  kNoWait, kArrivesTwice, kNoProxyFence
};
template <int kMistake>
CC_DEVICE void Loads(const Params& p, const Grid& grid) {
  CC_SHARED(uint4, part, 2);
  CC_SHARED(u64, barrier, 1);
  if (grid.ThreadId() == 1 && kMistake == kNoProxyFence) Store16(part, uint4{8, 8, 8, 8});
  if (grid.ThreadId() == (kMistake == kLateInit ? 1 : 0) && kMistake != kNoInit) {
    InitBarrier(barrier, 1);
    if (kMistake == kInitTwice) InitBarrier(barrier, 1);
    if (kMistake != kNoBarrierFence) FenceBarriers();
  }
  if (kMistake != kLateInit) grid.Sync();
  for (unsigned round = 0; round < 3; ++round) {
    if (grid.ThreadId() == 0) {
      ArriveAndExpect(barrier, kMistake == kTooFewBytes ? 16 : kMistake == kTooManyBytes ? 48 : 32);
      if (kMistake == kArrivesTwice) ArriveAndExpect(barrier, 0);
      LoadBulk(part, p.a + 8 * round, 32, barrier);
    }
    if (kMistake != kNoWait)
      while (!IsOver(barrier, (kMistake == kWrongParity ? round + 1 : round) % 2)) {}
    const unsigned second = LoadWord(part + 1).x;
    grid.Sync();
    if (grid.ThreadId() == 7) p.a[32 + round] = second;
    FenceAsyncProxy();
    grid.Sync();
  }
}
CC_KERNEL(loads) { Loads<kNone>(p, grid); }
CC_KERNEL(loads_with_wrong_parity) { Loads<kWrongParity>(p, grid); }
CC_KERNEL(loads_more_than_it_expects) { Loads<kTooFewBytes>(p, grid); }
CC_KERNEL(loads_less_than_it_expects) { Loads<kTooManyBytes>(p, grid); }
CC_KERNEL(loads_by_no_barrier) { Loads<kNoInit>(p, grid); }
CC_KERNEL(loads_by_a_late_barrier) { Loads<kLateInit>(p, grid); }
CC_KERNEL(loads_by_a_barrier_made_twice) { Loads<kInitTwice>(p, grid); }
CC_KERNEL(loads_by_an_unfenced_barrier) { Loads<kNoBarrierFence>(p, grid); }
CC_KERNEL(loads_and_does_not_wait) { Loads<kNoWait>(p, grid); }
CC_KERNEL(loads_and_arrives_twice) { Loads<kArrivesTwice>(p, grid); }
CC_KERNEL(loads_where_a_thread_stored) { Loads<kNoProxyFence>(p, grid); }
template <bool kFences>
CC_DEVICE void Overwrites(const Params& p, const Grid& grid) {
  CC_SHARED(uint4, part, 1);
  if (grid.ThreadId() != 0) return;
  Store16(part, uint4{7, 7, 7, 7});
  FenceAsyncProxy();
  WaitFlag(p.control, p.flag, 1, 0, 0, 0);
  if (kFences) FenceAsyncProxy();
  CopyBulk(p.a, part, 16);
  CloseBulkGroup();
  AwaitBulkStores();
}
CC_KERNEL(overwrites) { Overwrites<true>(p, grid); }
CC_KERNEL(overwrites_without_fence) { Overwrites<false>(p, grid); }
CC_KERNEL(reads_and_lets_overwrite) { p.a[16] = p.a[0], StoreRelease(p.flag, 1); }
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

TEST(SimtCopies, BulkCopiesMayRunUntilTheirWait) {
  for (const SimtOptions& options : SimtInterleavings()) {
    Lab lab(options);
    EXPECT_EQ(lab.Run("copies", 1, 32), "");
    EXPECT_EQ(lab.params().a[8], 7u);
    EXPECT_THAT(Lab(options).Run("copies_what_changes", 1, 32),
                ContainsRegex("data race: copies_what_changes .* thread 1 writes .*; (a copy, not "
                              "awaited yet, of )?rank 0 block 0 of copies_what_changes "
                              "thread 0 .* read byte 0 before"));
    EXPECT_THAT(Lab(options).Run("leaves_copies", 1, 32),
                HasSubstr("unfinished copy: leaves_copies"));
  }
}

TEST(SimtCopies, BulkCopiesSeeWhatAFenceIsBehind) {
  for (const SimtOptions& options : SimtInterleavings()) {
    EXPECT_EQ(Lab(options).Run("copies_behind_a_fence", 1, 32), "");
    for (const char* kernel : {"copies_without_fence", "copies_with_an_early_fence"}) {
      EXPECT_THAT(Lab(options).Run(kernel, 1, 32),
                  AllOf(HasSubstr(absl::StrCat("data race: ", kernel)), HasSubstr("in bulk"),
                        HasSubstr("wrote there before, and no fence of proxies is between")));
    }
  }
}

TEST(SimtCopies, LoadsFillPhasesOfABarrier) {
  for (const SimtOptions& options : SimtInterleavings()) {
    Lab lab(options);
    for (unsigned i = 0; i < 24; ++i) lab.params().a[i] = 100 + i;
    EXPECT_EQ(lab.Run("loads", 1, 40), "");
    for (unsigned round = 0; round < 3; ++round)
      EXPECT_EQ(lab.params().a[32 + round], 104 + 8 * round);
  }
}

TEST(SimtCopies, FindsMistakesWithBarriersOfLoads) {
  constexpr char kEarly[] = "never written: .*shared memory|data race: .* a copy, not awaited yet";
  const std::pair<const char*, const char*> mistakes[] = {
      {"loads_with_wrong_parity", kEarly},
      {"loads_more_than_it_expects",
       "data race: .* shared memory|deadlock: .* misses [01] arrivals and -16 bytes"},
      {"loads_less_than_it_expects", "deadlock: .* misses 0 arrivals and 16 bytes"},
      {"loads_by_no_barrier", "bad barrier: .* that no thread has initialised"},
      {"loads_by_a_late_barrier",
       "bad barrier: .* that no thread has initialised|data race: .* shared memory of block 0"},
      {"loads_by_a_barrier_made_twice", "bad barrier: .* initialises a barrier where there is one"},
      {"loads_by_an_unfenced_barrier", "data race: .* no fence of barriers or proxies is between"},
      {"loads_and_does_not_wait", kEarly},
      {"loads_and_arrives_twice", "bad barrier: .* all 1 arrivals of whose phase have come before"},
      {"loads_where_a_thread_stored",
       "data race: .* in bulk; .* was there before, and no fence of proxies is between"}};
  for (const SimtOptions& options : SimtInterleavings()) {
    for (const auto& [kernel, found] : mistakes)
      EXPECT_THAT(Lab(options).Run(kernel, 1, 32), ContainsRegex(found)) << kernel;
  }
}

TEST(SimtCopies, AFenceIsBehindWhatABulkCopyOverwrites) {
  for (const SimtOptions& options : SimtInterleavings()) {
    for (const char* kernel : {"overwrites", "overwrites_without_fence"}) {
      Lab lab(options);
      lab.Launch(kernel, 0, 1, 1);
      lab.Launch("reads_and_lets_overwrite", 1, 1, 1);
      EXPECT_THAT(lab.Run(), kernel == std::string("overwrites")
                                 ? testing::Matcher<std::string>(testing::IsEmpty())
                                 : HasSubstr("and no fence of proxies is between"));
    }
  }
}

TEST(SimtCopies, LoadedBytesAreThereAfterAWaitOnTheirBarrier) {
  for (const SimtOptions& options : SimtInterleavings()) {
    Lab lab(options);
    for (unsigned i = 0; i < 32; ++i) lab.params().a[i] = 100 + i;
    EXPECT_EQ(lab.Run("brings", 1, 8), "");
    EXPECT_EQ(lab.params().a[3], 104u + 107u);
    EXPECT_EQ(lab.params().a[11], 0u);  // of the copy that is of nothing
    EXPECT_THAT(Lab(options).Run("brings_and_does_not_wait", 1, 8),
                ContainsRegex("data race: brings_and_does_not_wait .* a copy, not awaited yet"));
  }
}

}  // namespace
}  // namespace coconet
