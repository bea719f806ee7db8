#include "runtime/control/kernel_control.h"

#include <cstddef>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

/// A board of one rank, whose kernels wait 2 s.
class ControlTest : public testing::Test {
 protected:
  absl::Status WhyGaveUpAt(int slot) {
    Open(control_, /*rank=*/0, Members{}, /*stage_size=*/1, board_,
         {.spins = 0, .timeout_ns = 2'000'000'000}, nullptr);
    control_.end = WaitEnd::kDeadline;
    control_.failure = {.peer = 0, .step = 3, .slot = slot, .expected = 7, .found = 6};
    return WhyGaveUp(control_, 0, board_, Plan());
  }

 private:
  alignas(64) std::byte memory_[16384] = {};
  Board board_{memory_, 1};
  HostControl control_{};
};

TEST_F(ControlTest, TellsOfAFlagThatDidNotCome) {
  const absl::Status why = WhyGaveUpAt(FlagSlots::Tile(5));
  EXPECT_EQ(why.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(why.message()),
              testing::StartsWith("step 3 on rank 0: waited 2 s for rank 0, flag tile[5]: want "
                                  "epoch 7, found 6; rank 0 "));
}

TEST_F(ControlTest, TellsOfABulkCopyThatDidNotEnd) {
  EXPECT_EQ(
      WhyGaveUpAt(FlagSlots::kBulkLoad),
      absl::DeadlineExceededError("step 3 on rank 0: waited 2 s for a bulk copy of the rank's "
                                  "own memory; its GPU has probably failed"));
}

}  // namespace
}  // namespace coconet
