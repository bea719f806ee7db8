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

TEST(KernelText, HasTensorMapsBeforeAllElse) {
  const MatrixMap a{.buffer = 3, .rows = {64}, .columns = {32}, .ld = 32},
      b{.buffer = 4, .rows = {32}, .columns = {8}, .ld = 8};
  Arguments args;
  EXPECT_EQ(args.Own(5, DType::kF32), "own0");
  EXPECT_EQ(args.LaunchInteger("count", 7), "p.count");
  EXPECT_EQ(args.TensorMap("a", a), "p.a");
  EXPECT_EQ(args.TensorMap("b", b), "p.b");
  EXPECT_EQ(args.TensorMap("a", a), "p.a");
  EXPECT_EQ(args.StructText(),
            "struct Params {\n  TensorMap a;\n  TensorMap b;\n  f32* b0;\n  Index count;\n};\n");
  const EmittedKernel kernel = KernelOf(1, 1, args, "", 0);
  using Kind = Arg::Kind;
  EXPECT_EQ(kernel.args, (std::vector<Arg>{{Kind::kTensorMap, -1, 0},
                                           {Kind::kTensorMap, -1, 1},
                                           {Kind::kOwn, 5, 0},
                                           {Kind::kInt, -1, 7}}));
  EXPECT_EQ(kernel.maps, (std::vector<MatrixMap>{a, b}));
  EXPECT_TRUE(kernel.tensor_args.empty());
}

// It belongs to the launch.
TEST(KernelText, LeavesDynamicMemoryOutOfTheText) {
  const Arguments args;
  EXPECT_EQ(KernelOf(1, 1, args, "", 0, {.shared_bytes = 1024}).text,
            KernelOf(1, 1, args, "", 0).text);
}

}  // namespace
}  // namespace coconet
