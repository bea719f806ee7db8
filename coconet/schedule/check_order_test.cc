#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/schedule/schedule.h"
#include "coconet/testing/transformed.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr char kProgram[] = R"(input g : f32[8] local
input h : f32[8] local
a = all_reduce(sum, g)
b = all_reduce(sum, -h)
c = all_reduce(max, h)
d = all_reduce(sum, h * a)
output v = a
output w = b
output x = c
output y = d
)";

/// The AllReduces of the schedule: two sums, a maximum, and a sum of what the first one reduces.
std::vector<NodeId> ReducesOf(const Schedule& s) {
  std::vector<NodeId> reduces;
  for (NodeId id = 0; id < s.graph().size(); ++id) {
    if (As<AllReduce>(s.graph(), id) != nullptr) reduces.push_back(id);
  }
  return reduces;
}

/// Why Apply refuses; "" where it does not.
std::string Refusal(const Schedule& s, const Transformation& t) {
  return std::string(Apply(s, t).status().message());
}

TEST(Bucket, PrintsAndReplays) {
  const Schedule plain = ScheduleOf(kProgram);
  const std::vector<NodeId> reduces = ReducesOf(plain);
  ASSERT_EQ(reduces.size(), 4u);
  const absl::StatusOr<Schedule> s = Apply(plain, Bucket{{reduces[0], reduces[1]}});
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->buckets(), (std::vector<std::vector<NodeId>>{{reduces[0], reduces[1]}}));
  const std::string trace = TraceText(s->trace());
  EXPECT_EQ(trace, absl::StrCat("bucket(%", reduces[0], " %", reduces[1], ")"));
  const absl::StatusOr<Schedule> again = Replay(plain.graph(), *ParseTrace(trace));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(Print(*again), Print(*s));
  EXPECT_NE(Print(*s), Print(plain));
}

TEST(Bucket, RefusesWhatNoCallReducesTogether) {
  const Schedule plain = ScheduleOf(kProgram);
  const std::vector<NodeId> r = ReducesOf(plain);
  const auto refusal = [&](std::vector<NodeId> nodes) {
    return Refusal(plain, Bucket{std::move(nodes)});
  };
  EXPECT_THAT(refusal({r[0]}), testing::HasSubstr("want two AllReduces or more"));
  EXPECT_THAT(refusal({r[1], r[0]}), testing::HasSubstr("want each node once, ascending"));
  EXPECT_THAT(refusal({r[0], r[0]}), testing::HasSubstr("want each node once, ascending"));
  EXPECT_THAT(refusal({0, r[0]}), testing::HasSubstr("is not an AllReduce"));
  EXPECT_THAT(refusal({r[0], r[2]}), testing::HasSubstr("are not of one kind and dtype"));
  EXPECT_THAT(refusal({r[0], r[3]}), testing::HasSubstr("needs what"));
  EXPECT_TRUE(absl::IsInvalidArgument(Apply(plain, Bucket{{r[0], 1000}}).status()));
  EXPECT_EQ(refusal({r[0], r[1]}), "");
  EXPECT_EQ(refusal({r[1], r[3]}), "");

  const Schedule in_bucket = *Apply(plain, Bucket{{r[0], r[1]}});
  EXPECT_THAT(Refusal(in_bucket, Bucket{{r[1], r[3]}}), testing::HasSubstr("is in another bucket"));
  EXPECT_THAT(Refusal(in_bucket, Split{r[2], 0}), testing::HasSubstr("bucket last"));
  EXPECT_THAT(Refusal(in_bucket, Fuse{{r[0], r[1]}}), testing::HasSubstr("bucket last"));
}

TEST(Bucket, RefusesThatTwoWaitForEachOther) {
  const Schedule plain = ScheduleOf(R"(input g : f32[8] local
input h : f32[8] local
a = all_reduce(sum, g)
b = all_reduce(sum, h)
c = all_reduce(sum, g * a)
d = all_reduce(sum, h * b)
output x = c
output y = d
)");
  const std::vector<NodeId> r = ReducesOf(plain);
  ASSERT_EQ(r.size(), 4u);
  // a before c and b before d: {a, d} and {b, c} would each wait for the other.
  std::vector<Bucket> crossed = {{{r[0], r[3]}}, {{r[1], r[2]}}};
  absl::StatusOr<Schedule> s = Apply(plain, crossed[0]);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_THAT(Refusal(*s, crossed[1]), testing::HasSubstr("would wait for each other"));
}

TEST(Order, IsOfAllLaunchesAndTopological) {
  const Schedule plain = ScheduleOf(kProgram);
  Order order;
  for (int launch : InOrder(plain.launches().list)) {
    order.nodes.push_back(plain.launches()[launch].nodes[0]);
  }
  const absl::StatusOr<Schedule> s = Apply(plain, order);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->issued(), order.nodes);
  const absl::StatusOr<Schedule> again = Replay(plain.graph(), s->trace());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(Print(*again), Print(*s));
  EXPECT_NE(Print(*s), Print(plain));

  Order missing = order, twice = order, reversed = order;
  missing.nodes.pop_back();
  EXPECT_THAT(Refusal(plain, missing), testing::HasSubstr("is missing; want all launches"));
  twice.nodes.push_back(order.nodes[0]);
  EXPECT_THAT(Refusal(plain, twice), testing::HasSubstr("is there twice"));
  std::reverse(reversed.nodes.begin(), reversed.nodes.end());
  EXPECT_THAT(Refusal(plain, reversed), testing::HasSubstr(", which it needs"));
  EXPECT_THAT(Refusal(plain, Order{{0}}),
              testing::HasSubstr("is not the first operation of a launch"));
  EXPECT_TRUE(absl::IsInvalidArgument(Apply(plain, Order{{1000}}).status()));
  EXPECT_THAT(Refusal(*s, order), testing::HasSubstr("order last"));
}

}  // namespace
}  // namespace coconet
