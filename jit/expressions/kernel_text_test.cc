#include "jit/expressions/kernel_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::HasSubstr;

TEST(KernelText, SaysWhatItsBlocksNeed) {
  const Arguments args;
  const EmittedKernel plain = KernelOf(2, 4, args, "", 8),
                      wide = KernelOf(2, 4, args, "", 8, {.threads = 384, .shared_bytes = 1024});
  EXPECT_THAT(plain.text, HasSubstr("CC_KERNEL(" + plain.symbol + ") {"));
  EXPECT_EQ(plain.threads, 0);
  EXPECT_EQ(plain.shared_bytes, 0);
  EXPECT_THAT(wide.text, HasSubstr("CC_KERNEL_OF(" + wide.symbol + ", 384) {"));
  EXPECT_EQ(wide.threads, 384);
  EXPECT_EQ(wide.shared_bytes, 1024);
  EXPECT_NE(plain.symbol, wide.symbol);
}

// It belongs to the launch.
TEST(KernelText, LeavesDynamicMemoryOutOfTheText) {
  const Arguments args;
  EXPECT_EQ(KernelOf(1, 1, args, "", 0, {.shared_bytes = 1024}).text,
            KernelOf(1, 1, args, "", 0).text);
}

}  // namespace
}  // namespace coconet
