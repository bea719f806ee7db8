// Barriers of parts of a block and registers that warp groups give each other, on simulated
// threads: what kernels do, and what the machine finds in those that are planted with mistakes.

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/simt/testing/simt_lab.h"
#include "tests/gpus/simt_image.h"
#include "tests/gpus/warp_group_kernels.h"

namespace coconet {
namespace {

using ::testing::ContainsRegex;

class Lab : public SimtLab {
 public:
  explicit Lab(const SimtOptions& options, bool impossible = false)
      : SimtLab(TheImage(impossible), options, 256) {}

 private:
  static const std::string& TheImage(bool impossible) {
    static const auto* possible = new std::string(SimtImage(PartKernels().c_str()));
    if (!impossible) return *possible;
    static const auto* image = new std::string(SimtImage(ImpossiblePartKernels().c_str()));
    return *image;
  }
};

TEST(SimtParts, MeetAtTheirBarriers) {
  for (const SimtOptions& options : SimtInterleavings()) {
    Lab lab(options);
    EXPECT_EQ(lab.Run("passes", 1, 128), "");
    for (unsigned thread = 0; thread < 128; ++thread)
      EXPECT_EQ(lab.params().a[thread], thread / 64 * 64 + (thread + 33) % 64 + 2);
    Lab warps(options);
    EXPECT_EQ(warps.Run("warps_pass", 1, 72), "");
    for (unsigned thread = 0; thread < 72; ++thread)
      EXPECT_EQ(warps.params().a[thread], thread ^ 1u);
  }
}

TEST(SimtParts, FindMistakesWithBarriers) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"no_barrier", "(data race|never written): no_barrier .* shared memory"},
      {"other_count",
       "bad barrier: other_count .* is at barrier 1 of (64|96) threads, where "
       "other_count .* waits for (64|96)|divergent barrier: other_count .* waits "
       "for 96 threads at barrier 1"},
      {"odd_count",
       "bad barrier: odd_count .* of 48 threads: want a multiple of 32 up to the "
       "block's 128"},
      {"large_count", "bad barrier: large_count .* of 256 threads: want a multiple of 32"},
      {"blocks_barrier",
       "bad barrier: blocks_barrier .* is at barrier 0 .*: want 1 to 15; 0 is "
       "that of the whole block"},
      {"three_warps",
       "divergent barrier: three_warps .* waits for 64 threads at barrier 1, and thread "
       "[0-9]+ has ended: 32 are left|deadlock: three_warps .* is at barrier 1 of 64 threads, to "
       "which warps of 32 have come"},
      {"half_warp", "divergent barrier: half_warp .* has ended"},
      {"one_ends",
       "divergent barrier: one_ends .* (thread 33 of its warp has ended|waits for 64 "
       "threads at barrier 1, and thread 33 has ended: [0-9]+ are left)"},
      {"other_barrier",
       "deadlock: other_barrier .* is at barrier [1-4] of 64 threads, to which "
       "warps of 32 have come"},
      {"warps_do_not_sync", "(data race|never written): warps_do_not_sync .* shared memory"}};
  for (const SimtOptions& options : SimtInterleavings()) {
    for (const auto& [kernel, found] : mistakes)
      EXPECT_THAT(Lab(options).Run(kernel, 1, 128), ContainsRegex(found)) << kernel;
  }
}

TEST(SimtParts, GiveEachOtherRegisters) {
  for (const SimtOptions& options : SimtInterleavings())
    EXPECT_EQ(Lab(options).Run("gives", 1, 384), "");
}

TEST(SimtParts, FindMistakesWithRegisters) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"gives_too_little",
       "deadlock: gives_too_little .* waits for 240 registers where it has 168: "
       "a warp group needs 9216 more, and others have given up 7168"},
      {"raises_to_less", "bad registers: raises_to_less .* raises its registers from 168 to 160"},
      {"one_warp_keeps",
       "divergent warp group: one_warp_keeps .* lowers its registers, where "
       "thread [0-9]+ has ended"}};
  const std::pair<const char*, const char*> impossible[] = {
      {"lowers_to_more", "bad registers: lowers_to_more .* lowers its registers from 168 to 176"},
      {"between_steps",
       "bad registers: between_steps .* to 44: want a multiple of 8 from 24 to 256"},
      {"too_few", "bad registers: too_few .* to 16: want a multiple of 8 from 24 to 256"},
      {"too_many", "bad registers: too_many .* to 264: want a multiple of 8 from 24 to 256"}};
  for (const SimtOptions& options : SimtInterleavings()) {
    for (const auto& [kernel, found] : mistakes)
      EXPECT_THAT(Lab(options).Run(kernel, 1, 384), ContainsRegex(found)) << kernel;
    for (const auto& [kernel, found] : impossible) {
      EXPECT_THAT(Lab(options, /*impossible=*/true).Run(kernel, 1, 384), ContainsRegex(found))
          << kernel;
    }
  }
}

}  // namespace
}  // namespace coconet
