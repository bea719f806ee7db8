// Kernels that reduce whole tensors, each way to get the other ranks' operands: every type and reduction, odd sizes, on 1 to 8 ranks, against
// the interpreter, for enough steps that memory is used again.

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/text.h"
#include "gtest/gtest.h"
#include "tests/test_data.h"
#include "tests/variant_batch.h"

namespace coconet {
namespace {

constexpr int kSteps = 7;
constexpr int kRankCounts[] = {1, 2, 3, 4, 8};

constexpr int kSchedules = 3;  // of a program, on so many ranks

/// The first schedules of the program that have a one-shot kernel, on all numbers of ranks; numbers of blocks and chunks by turns.
absl::Status AddSome(const Graph& program, OneShot one_shot, int vec, VariantBatch& batch) {
  ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(program));
  int turn = 0;
  for (int ranks : kRankCounts) {
    int added = 0;
    for (const Schedule& schedule : schedules) {
      const Config config{.protocol = Protocol::kGenerated, .vec = vec, .chunk = turn % 2 == 0 ? 64 : 4096, .blocks = 1 + turn % 3, .one_shot = one_shot};
      if (added == kSchedules || !Validate(config, schedule, {.ranks = ranks}).ok()) continue;
      ASSIGN_OR_RETURN(const Lowered lowered, Lower(schedule, config, ranks));
      if (!absl::StrContains(lowered.protocol, "one-shot")) continue;
      RETURN_IF_ERROR(batch.Add(program, schedule, config, ranks));
      ++turn;
      ++added;
    }
  }
  return absl::OkStatus();
}

void ExpectRight(VariantBatch& batch, size_t variants) {
  const uint64_t seed = FreshSeed();
  EXPECT_EQ(batch.Run(seed, kSteps), "");
  EXPECT_GE(batch.tally().variants, static_cast<int64_t>(variants)) << "COCONET_SEED=" << seed;
}

class OneShotTest : public testing::TestWithParam<OneShot> {
 protected:
  void Add(const std::string& text, const Sizes& sizes, int vec) {
    const absl::StatusOr<Graph> symbolic = Parse(absl::StrCat("coconet 1\nprogram p\n", text));
    ASSERT_TRUE(symbolic.ok()) << symbolic.status();
    const absl::StatusOr<Graph> program = BindSizes(*symbolic, sizes);
    ASSERT_TRUE(program.ok()) << program.status();
    const absl::Status added = AddSome(*program, GetParam(), vec, batch_);
    ASSERT_TRUE(added.ok()) << added;
  }

  VariantBatch batch_;
};

TEST_P(OneShotTest, ReducesEveryType) {
  for (DType dtype : kAllDTypes) {
    if (dtype == DType::kBool) continue;  // no number
    for (ReduceKind kind : kAllReduceKinds) {
      const std::string text = absl::StrCat("input g : ", Name(dtype), "[N] local\noutput y = all_reduce(", Name(kind), ", g)\n");
      for (int64_t size : {3, 131}) Add(text, {{"N", size}}, size == 131 ? 16 : 2);
    }
  }
  ExpectRight(batch_, 200);
}

TEST_P(OneShotTest, GoesWithComputationOfSeveralTensors) {
  const std::string text = R"(input g : bf16[N] local
input h : f32[N] local
state p : f32[N] replicated
state most : f32[] replicated
x = cast(f32, all_reduce(sum, g)) + all_reduce(max, h)
update(most, amax(x))
update(p, 0.5 * p - 0.1 * x / world)
)";
  for (int64_t size : {1, 65, 5003}) Add(text, {{"N", size}}, 4);
  ExpectRight(batch_, 40);
}

TEST_P(OneShotTest, GoesWithFoldsOfRows) {
  const std::string text = R"(input x : f16[B, 7, H] local
state r : f32[B, 7, H] replicated
y = cast(f32, all_reduce(sum, x))
update(r, 0.5 * r + softmax(y))
)";
  for (int64_t size : {3, 16, 129}) Add(text, {{"B", 5}, {"H", size}}, 8);
  ExpectRight(batch_, 40);
}

TEST_P(OneShotTest, GoesOverListsOfTensors) {
  const std::string text = R"(input g : f16[N] local
state p : f32[N] replicated
input lr : f32[]
G = cast(f32, all_reduce(sum, g))
update(p, p - lr * G / (1 + sqrt(total(sum(G * G)))))
)";
  Add(text, {{"N", std::vector<int64_t>{1, 64, 0, 333, 64, 4099}}}, 4);
  ExpectRight(batch_, 10);
}

INSTANTIATE_TEST_SUITE_P(, OneShotTest, testing::Values(OneShot::kPull, OneShot::kStaged, OneShot::kLL),
                         [](const auto& info) { return info.param == OneShot::kPull ? "Pull" : info.param == OneShot::kStaged ? "Staged" : "LL"; });

}  // namespace
}  // namespace coconet
