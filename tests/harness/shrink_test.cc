#include "tests/harness/shrink.h"

#include "coconet/language/text.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr char kProgram[] = R"(coconet 1
program p
input g : f32[100] local
input x : f32[100] replicated
state s : f32[100] replicated
a = all_reduce(sum, g) * x + 3
update(s, exp(a) - s)
output o = x * x
)";

TEST(Shrink, KeepsWhatMakesItFailAndNothingElse) {
  const absl::StatusOr<Graph> program = Parse(kProgram);
  ASSERT_TRUE(program.ok()) << program.status();
  const auto reduces = [](const Graph& g) {
    for (NodeId id = 0; id < g.size(); ++id) {
      if (As<AllReduce>(g, id) != nullptr) return true;
    }
    return false;
  };
  EXPECT_EQ(Print(Shrink(*program, 1000, reduces)),
            "coconet 1\nprogram p\ninput g : f32[1] local\nstate s : f32[1] replicated\n"
            "%2 = all_reduce(sum, g)\n%3 = update(s, %2)\n");
}

TEST(Shrink, MakesTensorsAsSmallAsTheFailureAllows) {
  const absl::StatusOr<Graph> program = Parse(
      "coconet 1\nprogram p\ninput x : f32[100, 30] replicated\noutput o = reshape(x, [30, "
      "100])\n");
  ASSERT_TRUE(program.ok()) << program.status();
  const auto is_wide = [](const Graph& g) { return NumElements(As<Input>(g, 0)->type.shape) > 40; };
  EXPECT_EQ(Print(Shrink(*program, 1000, is_wide)),
            "coconet 1\nprogram p\ninput x : f32[41, 1] replicated\noutput o = x\n");
}

TEST(Shrink, StopsAfterItsTries) {
  const absl::StatusOr<Graph> program = Parse(kProgram);
  ASSERT_TRUE(program.ok()) << program.status();
  int tried = 0;
  Shrink(*program, 5, [&](const Graph&) { return ++tried > 5; });
  EXPECT_EQ(tried, 5);
}

}  // namespace
}  // namespace coconet
