#include "autotune/search/recomputation.h"

#include <algorithm>
#include <iostream>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "autotune/search/parts.h"
#include "coconet/language/text.h"
#include "coconet/workloads/training_steps.h"
#include "gtest/gtest.h"
#include "jit/lower/lower.h"
#include "runtime/plan_memory.h"

namespace coconet {
namespace {

/// h and its exponential live from before the product of w, which is larger, until after it.
constexpr char kProgram[] = R"(coconet 1
program p
input x : f32[256, 64] replicated
input w : f32[64, 64] replicated
input v : f32[64, 512] replicated
h = exp(matmul(x, w))
k = matmul(h, v)
output loss = sum(k * k)
output y = matmul(h + 1, w)
)";

int64_t BytesOf(const Schedule& s, const Target& target) {
  const absl::StatusOr<Lowered> lowered = Lower(s, {}, target);
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  return lowered.ok() ? MemoryOf(lowered->plan).Total() : 0;
}

int Recomputations(const Schedule& s) {
  return static_cast<int>(
      std::count_if(s.trace().begin(), s.trace().end(),
                    [](const Transformation& t) { return std::holds_alternative<Recompute>(t); }));
}

TEST(WithLessMemory, LeavesAScheduleThatFits) {
  const absl::StatusOr<Schedule> s = InitialSchedule(*Parse(kProgram));
  ASSERT_TRUE(s.ok()) << s.status();
  const int64_t bytes = BytesOf(*s, 1);
  EXPECT_EQ(WithLessMemory(*s, {}, 1, bytes).trace(), s->trace());
}

TEST(WithLessMemory, LeavesAScheduleWithAnOrder) {
  const absl::StatusOr<Schedule> plain = InitialSchedule(*Parse(kProgram));
  ASSERT_TRUE(plain.ok()) << plain.status();
  Order order;
  for (int launch : InOrder(plain->launches().list))
    order.nodes.push_back(plain->launches()[launch].nodes[0]);
  const absl::StatusOr<Schedule> s = Apply(*plain, order);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(Print(WithLessMemory(*s, {}, 1, 1)), Print(*s));
}

TEST(WithLessMemory, OfATrainingStepNeedsLess) {
  const absl::StatusOr<Graph> gpt = GptStep(
      {.layers = 3, .width = 64, .heads = 2, .vocabulary = 64, .sequence = 32, .examples = 4});
  ASSERT_TRUE(gpt.ok()) << gpt.status();
  const absl::StatusOr<Schedule> s = InitialSchedule(*gpt);
  ASSERT_TRUE(s.ok()) << s.status();
  const Target target = 2;
  const int64_t before = BytesOf(*s, target);
  const Schedule less = WithLessMemory(*s, {}, target, before * 9 / 10);
  const int64_t after = BytesOf(less, target);
  std::cout << "gpt_step: " << before << " bytes, " << after << " with " << Recomputations(less)
            << " recomputations\n";
  EXPECT_LT(after, before);
  EXPECT_GT(Recomputations(less), 0);
  const absl::StatusOr<Schedule> again = Replay(*gpt, less.trace());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(Print(*again), Print(less));
  const absl::StatusOr<std::vector<Transformation>> parsed = ParseTrace(TraceText(less.trace()));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, less.trace());
}

}  // namespace
}  // namespace coconet
