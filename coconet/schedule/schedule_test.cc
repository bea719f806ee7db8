#include "coconet/schedule/schedule.h"

#include "absl/strings/str_cat.h"
#include "coconet/language/text.h"
#include "coconet/testing/transformed.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr char kSgd[] = R"(input g : f32[N] local
state p : f32[N] replicated
update(p, p - all_reduce(sum, g))
)";

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(Trace, PrintsAndParsesBack) {
  const std::vector<Transformation> trace = {Split{4, Layout::kFlat}, Split{5, 1}, Reorder{6},
                                             Slice{1}, Fuse{{2, 5, 60}}};
  EXPECT_EQ(TraceText(trace),
            "split(%4, flat); split(%5, 1); reorder(%6); slice(%1); fuse(%2 %5 %60)");
  const absl::StatusOr<std::vector<Transformation>> parsed = ParseTrace(TraceText(trace));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, trace);
  EXPECT_EQ(*ParseTrace("  split( %4 ,flat ) ;fuse( %1  %2 )"),
            (std::vector<Transformation>{Split{4, Layout::kFlat}, Fuse{{1, 2}}}));
}

TEST(Trace, OfThePlainProgramIsEmpty) {
  EXPECT_EQ(TraceText({}), "");
  EXPECT_TRUE(ParseTrace("")->empty());
  EXPECT_TRUE(ParseTrace(" \n")->empty());
}

TEST(Trace, ParsingNamesTheMistake) {
  const auto message = [](absl::string_view text) {
    const absl::StatusOr<std::vector<Transformation>> trace = ParseTrace(text);
    EXPECT_EQ(trace.status().code(), absl::StatusCode::kInvalidArgument) << text;
    return Message(trace.status());
  };
  EXPECT_EQ(message("split(%4, flat); merge(%5)"),
            "schedule, at 'merge(%5)': want split, split_by_node, reorder, slice, recompute, "
            "fuse, overlap, bucket or order");
  EXPECT_EQ(message("reorder %5"), "schedule, at 'reorder %5': want name(arguments)");
  EXPECT_EQ(message("reorder(%5);"), "schedule, at '': want name(arguments)");
  EXPECT_EQ(message("slice(5)"), "schedule, at 'slice(5)': want the number of a node, as in %4");
  EXPECT_EQ(message("slice(%-5)"),
            "schedule, at 'slice(%-5)': want the number of a node, as in %4");
  EXPECT_EQ(message("slice(%99999999999)"),
            "schedule, at 'slice(%99999999999)': want the number of a node, as in %4");
  EXPECT_EQ(message("fuse(%1, %2)"),
            "schedule, at 'fuse(%1, %2)': want the number of a node, as in %4");
  EXPECT_EQ(message("split(%1)"),
            "schedule, at 'split(%1)': want flat or the number of a dimension after the comma");
  EXPECT_EQ(message("split(%1, -1)"),
            "schedule, at 'split(%1, -1)': want flat or the number of a dimension after the comma");
}

TEST(Apply, RefusesStaleNodes) {
  const Schedule s = ScheduleOf(kSgd);
  EXPECT_EQ(
      Apply(s, Reorder{9}).status(),
      absl::InvalidArgumentError("reorder(%9): the program has no %9; its last operation is %4"));
  EXPECT_EQ(
      Apply(s, Fuse{{3, 9}}).status(),
      absl::InvalidArgumentError("fuse(%3 %9): the program has no %9; its last operation is %4"));
  EXPECT_EQ(
      Apply(s, Slice{}).status(),
      absl::InvalidArgumentError("slice(%-1): the program has no %-1; its last operation is %4"));
}

TEST(Apply, LeavesTheScheduleAsItWasAndNamesWhatItDid) {
  const Schedule s = ScheduleOf(kSgd);
  const absl::StatusOr<Schedule> split = Apply(s, Split{2, 0});
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_EQ(Print(s), Print(ScheduleOf(kSgd)));
  EXPECT_EQ(split->trace(), std::vector<Transformation>{(Split{2, 0})});
  EXPECT_EQ(Apply(s, Split{3, 0}).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(InitialSchedule, IsCanonical) {
  const char* reversed = R"(input g : f32[N] local
state p : f32[N] replicated
input unused : f32[] replicated
dead = 2 * g
same = all_reduce(sum, g)
update(p, p - all_reduce(sum, g))
output y = same
)";
  EXPECT_EQ(Transformed(reversed, ""), R"(input g : f32[N] local
state p : f32[N] replicated
input unused : f32[] replicated
%3 = all_reduce(sum, g)
%4 = sub(p, %3)
%5 = update(p, %4)
output y = %3
)");
}

TEST(InitialSchedule, CopiesOneOfTheStatesThatExchangeTheirValues) {
  const std::string states = R"(state a : f32[8] replicated
state b : f32[8] replicated
state c : i32[4] replicated
state d : i32[4] replicated
state e : i32[4] replicated
)";
  const std::string exchanges = R"(update(a, b)
update(b, a)
update(c, d)
update(d, e)
update(e, c)
)";
  EXPECT_EQ(Transformed(states + exchanges, ""), states + R"(%5 = cast(f32, b)
%6 = update(a, %5)
%7 = update(b, a)
%8 = cast(i32, d)
%9 = update(c, %8)
%10 = update(d, e)
%11 = update(e, c)
)");
}

TEST(InitialSchedule, RefusesAGraphThatDoesNotInfer) {
  Graph g;
  g.Add(AllReduce{ReduceKind::kSum}, {g.Add(Input{"x", {DType::kF32, {8}, Layout::Replicated()}})});
  EXPECT_EQ(InitialSchedule(g).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Replay, AppliesATraceOrNamesTheStepThatFails) {
  const Graph program = ScheduleOf(kSgd).graph();
  const absl::StatusOr<Schedule> s =
      Replay(program, *ParseTrace("split(%2, 0); reorder(%3); fuse(%2 %3)"));
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(Print(*s), R"(coconet 1
input g : f32[N] local
state p : f32[N] replicated
%2 = reduce_scatter(sum, g, 0)
%3 = sub(p, %2)
%4 = all_gather(%3)
%5 = update(p, %4)
kernel %2 %3
)");
  EXPECT_EQ(Message(Replay(program, *ParseTrace("split(%2, 0); reorder(%2)")).status()),
            "reorder(%2): want all_gather, have %2 = reduce_scatter(sum, g, 0)");
}

/// The launches in the order that they run in.
std::vector<std::vector<NodeId>> ExecutionOrder(const Schedule& s) {
  std::vector<std::vector<NodeId>> order;
  for (int launch : s.order()) order.push_back(s.launches()[launch].nodes);
  return order;
}

TEST(ExecutionOrder, RunsLevelByLevelAndStoresStatesAfterTheirReaders) {
  const char* program = R"(input g : f32[N] local
state p : f32[N] replicated
state m : f32[N]
update(m, 0.5 * m)
update(p, p - all_reduce(sum, g))
output y = p + m
)";
  // %3 = all_reduce, %4 = sub, %5 = update p, %7 = mul, %8 = update m, %9 = add, %10 = output.
  using Order = std::vector<std::vector<NodeId>>;
  EXPECT_EQ(ExecutionOrder(ScheduleOf(program)), (Order{{7}, {9}, {8}, {10}, {3}, {4}, {5}}));
  EXPECT_EQ(ExecutionOrder(ScheduleOf(program, "fuse(%4 %5 %7 %8)")),
            (Order{{9}, {10}, {3}, {4, 5, 7, 8}}));
}

TEST(Schedule, HasKindsOfTensorsBeforeAnyTransformation) {
  const absl::StatusOr<Graph> program = Parse(absl::StrCat("coconet 1\n", kSgd));
  ASSERT_TRUE(program.ok()) << program.status();
  const absl::StatusOr<Graph> bound = BindSizes(*program, {{"N", {64, 8, 64}}});
  ASSERT_TRUE(bound.ok()) << bound.status();
  const absl::StatusOr<Schedule> plain = InitialSchedule(*bound);
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->of_kinds().size(), 2u);
}

}  // namespace
}  // namespace coconet
