#include "jit/config/launch_shapes.h"

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "coconet/workloads/workloads.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

// 512 threads of a multiprocessor with 128 bytes each; accesses of 16 bytes of the widest type, and
// of 4 of the narrowest.
TEST(LaunchShapesOnGpu, BeginWith64KiBInFlight) {
  const auto first = [](const Graph& program, absl::string_view words) {
    const std::vector<Schedule> schedules = Derive(program).value();
    for (const Schedule& s : schedules) {
      if (Describe(s) == words) return Configs(s, {.ranks = 2, .multiprocessors = 66}).front();
    }
    ADD_FAILURE() << "no schedule " << words;
    return Config{};
  };
  const Graph floats = BindSizes(MakeWorkload("adam").value(), {{"N", 1 << 28}}).value();
  const Graph halves =
      BindSizes(MakeWorkload("adam", {.dtype = DType::kBF16}).value(), {{"N", 1 << 28}}).value();
  for (const Config& config : {first(floats, "fuse(RS, C, AG); slice m v"),
                               first(halves, "fuse(RS, C, AG); slice w m v")}) {
    EXPECT_EQ(config.vec, 4) << Text(config);
    EXPECT_EQ(config.unroll, 16) << Text(config);
    EXPECT_EQ(config.blocks * config.threads, 512 * 66) << Text(config);
  }
  const Graph sum = Parse(
                        "coconet 1\nprogram sum\ninput g : bf16[N] local\n"
                        "state p : bf16[N] replicated\nupdate(p, all_reduce(sum, g))\n")
                        .value();
  EXPECT_EQ(first(BindSizes(sum, {{"N", 1 << 28}}).value(), "AR").vec, 8);
  const Graph bytes = Parse(
                          "coconet 1\nprogram flags\ninput g : f64[N] local\n"
                          "input b : bool[N] replicated\nstate p : f64[N] replicated\n"
                          "update(p, select(b, all_reduce(sum, g), p))\n")
                          .value();
  EXPECT_EQ(first(BindSizes(bytes, {{"N", 1 << 28}}).value(), "AR; C").vec, 4);
}

TEST(PacksToFetch, AreTheFewestThatLoad128Bytes) {
  EXPECT_EQ(PacksToFetch(64, 16), 2);  // Adam in bf16 over two ranks, packs of 4
  EXPECT_EQ(PacksToFetch(16, 16), 8);
  EXPECT_EQ(PacksToFetch(16, 4), 4);
  EXPECT_EQ(PacksToFetch(65, 16), 2);
  EXPECT_EQ(PacksToFetch(63, 16), 4);
  EXPECT_EQ(PacksToFetch(4, 16), 16);
  EXPECT_EQ(PacksToFetch(500, 16), 1);
}

TEST(VecOf, FillsAnAccessOfAGpu) {
  const Config gpu{.vec = 4, .threads = 256}, host{.vec = 16};
  EXPECT_EQ(VecOf(gpu, 2), 8);
  EXPECT_EQ(VecOf(gpu, 4), 4);
  EXPECT_EQ(VecOf(gpu, 8), 4);
  EXPECT_EQ(VecOf(host, 1), 16);
}

}  // namespace
}  // namespace coconet
