#include "runtime/plan_memory.h"

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/testing/temporary_checks.h"

namespace coconet {
namespace {

/// A step that uses these buffers.
KernelStep Use(const std::vector<int>& buffers, int lane = 0, std::vector<int> after = {}) {
  KernelStep step;
  for (int buffer : buffers) step.args.push_back({Arg::Kind::kOwn, buffer, 0});
  step.label = absl::StrCat("step of ", buffers.size());
  step.lane = lane;
  step.after = std::move(after);
  return step;
}

Plan PlanOf(const std::vector<int64_t>& bytes, std::vector<KernelStep> steps) {
  Plan plan;
  for (int64_t size : bytes) {
    plan.buffers.push_back(
        {absl::StrCat("t", plan.buffers.size()), BufferRole::kTemp, DType::kU8, size, false});
  }
  plan.steps.assign(steps.begin(), steps.end());
  return plan;
}

TEST(PlaceTemporaries, OfAnyTypeAndSizeShareWhatIsFree) {
  // A chain: 0 -> 1 -> 2 -> 3.
  Plan plan = PlanOf({1000, 300, 700, 10}, {Use({0}), Use({0, 1}), Use({1, 2}), Use({2, 3})});
  plan.buffers[2].dtype = DType::kF32;
  plan.buffers[2].elements = 175;
  const TemporaryPlaces places = PlaceTemporaries(plan, 0);
  EXPECT_EQ(places.offsets, (std::vector<int64_t>{0, 1024, 0, 768}));
  EXPECT_EQ(places.bytes[0], 1024 + 512);
  EXPECT_EQ(places.live[0], 1300);
  EXPECT_EQ(places.peak_step, 1);
  EXPECT_EQ(places.at_peak, (std::vector<int>{0, 1}));
  EXPECT_EQ(places.bytes[1], 0);
  EXPECT_TRUE(TemporariesOverlap(plan));
  EXPECT_EQ(WhyOverlapping(plan, places, 0), "");
}

TEST(PlaceTemporaries, OfPeersHaveAnAreaOfTheirOwn) {
  Plan plan = PlanOf({256, 256}, {Use({0}), Use({1})});
  EXPECT_EQ(PlaceTemporaries(plan, 0).offsets, (std::vector<int64_t>{0, 0}));
  plan.buffers[1].symmetric = true;
  const TemporaryPlaces places = PlaceTemporaries(plan, 0);
  EXPECT_EQ(places.bytes[0], 256);
  EXPECT_EQ(places.bytes[1], 256);
  EXPECT_FALSE(TemporariesOverlap(plan));
}

TEST(PlaceTemporaries, LiveAsLongAsTheOtherLaneMayUseThem) {
  // Step 1 runs on lane 1 beside steps 2 and 3; step 4 waits for it.
  const Plan plan = PlanOf({256, 256, 256, 256},
                           {Use({0}), Use({0}, 1, {0}), Use({1}), Use({2}), Use({3}, 0, {1})});
  const TemporaryPlaces places = PlaceTemporaries(plan, 0);
  EXPECT_NE(places.offsets[0], places.offsets[1]);
  EXPECT_NE(places.offsets[0], places.offsets[2]);
  EXPECT_EQ(places.offsets[1], places.offsets[2]);
  EXPECT_EQ(places.offsets[3], 0);
  EXPECT_EQ(places.bytes[0], 512);
}

TEST(PlaceTemporaries, LiveThroughAnOverlap) {
  Plan plan = PlanOf({256, 256}, {Use({0}), Use({1})});
  plan.overlaps = {{0, 2}};
  EXPECT_EQ(PlaceTemporaries(plan, 0).bytes[0], 512);
  EXPECT_EQ(Print(plan).substr(Print(plan).find("overlap")), "overlap 0 to 1\n");
  EXPECT_EQ(StepsOf(plan, 1, 2).overlaps, (std::vector<std::pair<int, int>>{{0, 1}}));
}

TEST(PlaceTemporaries, LiveThroughCollectivesThatAreDoneTogether) {
  CollectiveStep step;
  step.kind = CollectiveStep::Kind::kAllReduce;
  step.dtype = DType::kF32;
  step.count = 64;
  step.in = 0;
  step.out = 1;
  Plan plan = PlanOf({256, 256, 256, 256}, {Use({0})});
  plan.steps.push_back(step);
  step.in = 2;
  step.out = 3;
  plan.steps.push_back(step);
  // Buffer 3 may be written before 0 is read.
  const TemporaryPlaces places = PlaceTemporaries(plan, 0);
  EXPECT_EQ(places.bytes[0], 4 * 256);
  EXPECT_EQ(WhyOverlapping(plan, places, 0), "");
  std::get<CollectiveStep>(plan.steps[2]).dtype = DType::kBF16;
  EXPECT_EQ(PlaceTemporaries(plan, 0).bytes[0], 2 * 256);
}

TEST(MemoryOf, IsThatOfTheRankThatNeedsMost) {
  Plan plan = PlanOf({300, 500}, {Use({0, 1})});
  plan.ranks = 2;
  plan.buffers[0].on_rank = {0, 300};
  plan.buffers.push_back({"w", BufferRole::kState, DType::kF32, 10, true});
  plan.buffers.push_back({"x", BufferRole::kInput, DType::kBF16, 10, false});
  plan.buffers.push_back({"y", BufferRole::kOutput, DType::kF64, 1, false});
  plan.buffers.push_back({"flags", BufferRole::kSync, DType::kI32, 8, true});
  const PlanMemory memory = MemoryOf(plan);
  EXPECT_EQ(
      memory,
      (PlanMemory{
          .states = 40, .inputs = 20, .outputs = 8, .temporaries = 1024, .live = 800, .sync = 32}));
  EXPECT_EQ(memory.Total(), 40 + 20 + 8 + 1024 + 32);
  EXPECT_EQ(Text(memory),
            "states 40 B, inputs 20 B, outputs 8 B, temporaries 1.00 KiB (lower bound 800 B)");
  EXPECT_EQ(BytesText(12 << 20), "12.0 MiB");
  EXPECT_EQ(BytesText(int64_t{999} << 30), "999 GiB");
  EXPECT_EQ(BytesText(int64_t{1000} << 30), "0.98 TiB");
}

/// Steps on both lanes that use random buffers.
Plan RandomPlan(std::mt19937_64& random) {
  const int steps = 1 + static_cast<int>(random() % 40), buffers = static_cast<int>(random() % 40);
  std::vector<int64_t> bytes;
  for (int i = 0; i < buffers; ++i)
    bytes.push_back(static_cast<int64_t>(random() % (random() % 2 == 0 ? 100 : 5000)));
  std::vector<KernelStep> uses(steps);
  for (int step = 0; step < steps; ++step) {
    uses[step].lane = random() % 3 == 0 ? 1 : 0;
    if (step > 0 && random() % 3 == 0)
      uses[step].after.push_back(static_cast<int>(random() % step));
  }
  for (int buffer = 0; buffer < buffers; ++buffer) {
    const int first = static_cast<int>(random() % steps);
    const int last = std::min(steps - 1, first + static_cast<int>(random() % 8));
    for (int step : {first, last}) uses[step].args.push_back({Arg::Kind::kOwn, buffer, 0});
  }
  Plan plan = PlanOf(bytes, std::move(uses));
  for (Step& step : plan.steps) {
    const auto& kernel = std::get<KernelStep>(step);
    if (random() % 2 == 0 || kernel.args.size() < 2) continue;
    // A collective of its first two buffers; the others may be used elsewhere.
    CollectiveStep collective;
    collective.kind =
        random() % 2 == 0 ? CollectiveStep::Kind::kAllReduce : CollectiveStep::Kind::kAllToAll;
    collective.in = kernel.args[0].buffer;
    collective.out = kernel.args[1].buffer;
    collective.lane = kernel.lane;
    collective.after = kernel.after;
    step = collective;
  }
  for (Buffer& buffer : plan.buffers) buffer.symmetric = random() % 4 == 0;
  return plan;
}

TEST(PlaceTemporaries, OfRandomPlansDoNotMeet) {
  const char* given = std::getenv("COCONET_SEED");
  const uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::mt19937_64 random(seed);
  for (int i = 0; i < 2000; ++i) {
    const Plan plan = RandomPlan(random);
    const TemporaryPlaces places = PlaceTemporaries(plan, 0);
    ASSERT_EQ(WhyOverlapping(plan, places, 0), "") << "COCONET_SEED=" << seed;
    for (size_t b = 0; b < plan.buffers.size(); ++b) {
      ASSERT_EQ(places.offsets[b] % kTemporaryAlignment, 0);
      ASSERT_LE(places.offsets[b] + plan.buffers[b].elements,
                places.bytes[plan.buffers[b].symmetric]);
    }
    for (const bool symmetric : {false, true})
      ASSERT_LE(places.live[symmetric], places.bytes[symmetric]);
  }
}

TEST(PlaceTemporaries, OfATrainingStepAreNearTheBound) {
  // Forward, each layer leaves something for its backward, and uses more for a short time.
  std::mt19937_64 random(1);
  constexpr int kLayers = 5000;
  std::vector<int64_t> bytes;
  std::vector<KernelStep> steps;
  for (int layer = 0; layer < kLayers; ++layer) {
    bytes.push_back(static_cast<int64_t>(1000 + random() % 60000));
    bytes.push_back(static_cast<int64_t>(1000 + random() % 200000));
    steps.push_back(Use({2 * layer, 2 * layer + 1}));
    steps.push_back(Use({2 * layer + 1}));
  }
  for (int layer = kLayers - 1; layer >= 0; --layer) steps.push_back(Use({2 * layer}));
  const TemporaryPlaces places = PlaceTemporaries(PlanOf(bytes, std::move(steps)), 0);
  EXPECT_LE(static_cast<double>(places.bytes[0]), 1.1 * static_cast<double>(places.live[0]));
}

}  // namespace
}  // namespace coconet
