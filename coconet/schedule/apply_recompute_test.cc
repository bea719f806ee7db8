#include "coconet/ir/op_table.h"
#include "coconet/schedule/schedule.h"
#include "coconet/testing/transformed.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr char kProgram[] = R"(input x : f32[N] replicated
input b : f32[N] replicated
state s : f32[N] replicated
h = exp(x + b)
t = sum(h)
update(s, h * t)
)";

TEST(Recompute, GivesLateUsersACopyOfTheirOwn) {
  EXPECT_EQ(Transformed(kProgram, ""), R"(input x : f32[N] replicated
input b : f32[N] replicated
state s : f32[N] replicated
%3 = add(x, b)
%4 = exp(%3)
%5 = sum(%4)
%6 = mul(%4, %5)
%7 = update(s, %6)
)");
  EXPECT_EQ(Transformed(kProgram, "recompute(%3 %4 for %6)"), R"(input x : f32[N] replicated
input b : f32[N] replicated
state s : f32[N] replicated
%3 = cast(f32, x)
%4 = add(%3, b)
%5 = exp(%4)
%6 = add(x, b)
%7 = exp(%6)
%8 = sum(%7)
%9 = mul(%5, %8)
%10 = update(s, %9)
)");
  // What is computed before them is taken from memory.
  EXPECT_EQ(Transformed(kProgram, "recompute(%4 for %6); fuse(%4 %5 %8 %9)"),
            R"(input x : f32[N] replicated
input b : f32[N] replicated
state s : f32[N] replicated
%3 = add(x, b)
%4 = cast(f32, %3)
%5 = exp(%4)
%6 = exp(%3)
%7 = sum(%6)
%8 = mul(%5, %7)
%9 = update(s, %8)
kernel %4 %5 %8 %9
)");
}

TEST(Recompute, SaysWhatHasBecomeOfTheNodes) {
  const absl::StatusOr<RecomputedSchedule> made =
      ApplyRecompute(ScheduleOf(kProgram), Recompute{{3, 4}, {6}});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->renamed, (std::vector<NodeId>{0, 1, 2, 6, 7, 8, 9, 10}));
  EXPECT_EQ(made->copies, (std::vector<NodeId>{3, 4, 5}));
  EXPECT_EQ(TraceText(made->schedule.trace()), "recompute(%3 %4 for %6)");
}

TEST(Recompute, Refuses) {
  EXPECT_EQ(Transformed(kProgram, "recompute(%5 for %6)"),
            "recompute(%5 for %6): want elementwise operations, have %5 = sum(%4)");
  EXPECT_EQ(Transformed(kProgram, "recompute(%4 %3 for %6)"),
            "recompute(%4 %3 for %6): want nodes and users, each in ascending order");
  EXPECT_EQ(Transformed(kProgram, "recompute(%3 for %6)"),
            "recompute(%3 for %6): none of them takes %3 = add(x, b)");
  EXPECT_EQ(Transformed(kProgram, "recompute(%4 for %6 %7)"),
            "recompute(%4 for %6 %7): %7 = update(s, %6) takes none of them");
  EXPECT_EQ(Transformed(kProgram, "recompute(%3 %4 for %4 %6)"),
            "recompute(%3 %4 for %4 %6): %4 = exp(%3) is to be computed again and to take copies");
  EXPECT_EQ(Transformed(kProgram, "recompute(%3 %4 for %6); recompute(%6 %7 for %8)"),
            "recompute(%6 %7 for %8): %6 = add(x, b) would have the copy's cast %3 = cast(f32, x)");
  EXPECT_EQ(Transformed(kProgram, "fuse(%3 %4); recompute(%3 %4 for %6)"),
            "recompute(%3 %4 for %6): there are kernels already, and their nodes would change: "
            "fuse last");
  EXPECT_EQ(Transformed(kProgram, "recompute(%4 for %9)"),
            "recompute(%4 for %9): the program has no %9; its last operation is %7");
  EXPECT_EQ(Transformed(kProgram, "recompute(%4)"),
            "schedule, at 'recompute(%4)': want nodes, for, and the nodes that take their copies");
}

}  // namespace
}  // namespace coconet
