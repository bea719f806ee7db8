// Workloads on simulated GPUs, thread for thread, in several interleavings, against the
// interpreter.

#include <algorithm>
#include <chrono>
#include <functional>
#include <ostream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "coconet/schedule/schedule.h"
#include "coconet/workloads/workloads.h"
#include "gtest/gtest.h"
#include "runtime/simt/simt_world.h"
#include "tests/harness/variant_batch.h"

namespace coconet {
namespace {

struct Case {
  const char* workload;
  DType dtype;
  Sizes sizes;
  int ranks;
  Config ways;
};

class SimtTest : public testing::TestWithParam<Case> {
 protected:
  /// Some of them where there are many.
  static absl::Status AddSchedules(VariantBatch& batch) {
    constexpr size_t kSome = 5;
    const Case& c = GetParam();
    ASSIGN_OR_RETURN(const Graph symbolic, MakeWorkload(c.workload, {.dtype = c.dtype}));
    ASSIGN_OR_RETURN(const Graph program, BindSizes(symbolic, c.sizes));
    ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(program, {}));
    const size_t apart = schedules.size() / kSome + 1;
    for (size_t i = 0; i < schedules.size(); i += apart) {
      for (Protocol protocol : {Protocol::kGenerated, Protocol::kLibrary}) {
        Config config = c.ways;
        config.protocol = protocol;
        config.vec = 4, config.chunk = 192, config.blocks = 2, config.threads = 64;
        RETURN_IF_ERROR(batch.Add(program, schedules[i], config, {c.ranks}));
      }
    }
    return absl::OkStatus();
  }
};

TEST_P(SimtTest, EveryInterleavingComputesWhatTheProgramSays) {
  for (uint64_t seed = 0; seed < kSimtOrders; ++seed) {
    VariantBatch batch(SimulatedMachine(SimtOptions::Of(seed)));
    ASSERT_EQ(AddSchedules(batch), absl::OkStatus());
    EXPECT_EQ(batch.Run(seed, /*steps=*/3), "") << "COCONET_SIMT_SEED=" << seed;
    EXPECT_GT(batch.tally().variants, 0);
  }
}

// A block without chunks comes to its end before some of its threads know the step's epoch: it once
// said there which one was done before they had read it.
TEST(SimtTests, BlocksWithoutWorkEndTheStepTogether) {
  const Graph symbolic = Parse(R"(coconet 1
program epilogue
input a : f32[M, K] local
input b : f32[K, N] local
input r : f32[M, N] replicated
output c = abs(all_reduce(sum, matmul(a, b)) + r)
)")
                             .value();
  const Graph program = BindSizes(symbolic, {{"M", 90}, {"K", 0}, {"N", 80}}).value();
  const std::vector<Schedule> schedules = Derive(program, {}).value();
  const auto overlapped = std::find_if(schedules.begin(), schedules.end(), [](const Schedule& s) {
    return Describe(s) == "ol(MM, RS[0], AG); C";
  });
  ASSERT_NE(overlapped, schedules.end());
  Config config{.protocol = Protocol::kGenerated, .blocks = 3, .threads = 96, .beside = 3};
  config.tiles = 64;
  for (uint64_t seed = 0; seed < kSimtOrders; ++seed) {
    VariantBatch batch(SimulatedMachine(SimtOptions::Of(seed)));
    ASSERT_EQ(batch.Add(program, *overlapped, config, 1), absl::OkStatus());
    EXPECT_EQ(batch.Run(seed, /*steps=*/2), "") << "COCONET_SIMT_SEED=" << seed;
  }
}

// All threads load a scalar state, one stores it: it once did so while others, of its block or of
// others that had nothing else to do, still loaded it.
TEST(SimtTests, ScalarsAreStoredWhenAllHaveLoadedThem) {
  const Graph program = Parse(R"(coconet 1
program scalars
input x : f32[] local
state scale : f32[] replicated
state good : f32[] replicated
g = all_reduce(sum, x)
update(scale, select(g > 0, scale * 2, scale + good))
update(good, select(g > 0, good + 1, scale))
)")
                            .value();
  const std::vector<Schedule> schedules = Derive(program, {}).value();
  for (uint64_t seed = 0; seed < kSimtOrders; ++seed) {
    VariantBatch batch(SimulatedMachine(SimtOptions::Of(seed)));
    for (const Schedule& schedule : schedules) {
      for (OneShot one_shot : {OneShot::kPull, OneShot::kStaged, OneShot::kLL}) {
        const Config config{
            .protocol = Protocol::kGenerated, .blocks = 2, .one_shot = one_shot, .threads = 64};
        ASSERT_EQ(batch.Add(program, schedule, config, 2), absl::OkStatus());
      }
    }
    EXPECT_EQ(batch.Run(seed, /*steps=*/3), "") << "COCONET_SIMT_SEED=" << seed;
  }
}

/// The same GPUs, whose time when all is done is put into `ns`; before and after that ranks are
/// late by some of the host's time. The devices wait for a host thread however busy the machine is.
Machine TimedMachine(uint64_t seed, uint64_t lateness, int64_t& ns) {
  constexpr double kTimeout = 60, kPatience = 60;  // seconds
  Machine machine = SimulatedMachine(SimtOptions::Of(seed));
  machine.run_world = [seed, lateness, &ns](const WorldOptions& options,
                                            const std::function<absl::Status(Rank&)>& body) {
    const auto late_body = [&](Rank& rank) -> absl::Status {
      std::this_thread::sleep_for(
          std::chrono::milliseconds(lateness * static_cast<uint64_t>(rank.rank() + 1) % 7));
      RETURN_IF_ERROR(body(rank));
      RETURN_IF_ERROR(rank.exchange().Agree(absl::OkStatus()));
      if (rank.rank() == 0) ns = SimtTimeNs();
      return rank.exchange().Agree(absl::OkStatus());
    };
    return RunSimtWorld({.ranks = options.ranks, .timeout_s = kTimeout}, SimtOptions::Of(seed),
                        late_body, kPatience);
  };
  return machine;
}

TEST(SimtTests, ASeedIsOneInterleaving) {
  const Graph program = BindSizes(MakeWorkload("adam").value(), {{"N", 301}}).value();
  const std::vector<Schedule> schedules = Derive(program, {}).value();
  std::set<int64_t> times;
  for (uint64_t seed = 0; seed < 2 * kSimtOrders; ++seed) {
    int64_t first = 0;
    for (uint64_t run = 0; run < 3; ++run) {
      int64_t ns = 0;
      VariantBatch batch(TimedMachine(seed, run, ns));
      for (size_t i = 0; i < schedules.size(); i += 9) {
        ASSERT_EQ(batch.Add(program, schedules[i],
                            {.protocol = Protocol::kGenerated,
                             .vec = 4,
                             .chunk = 64,
                             .blocks = 2,
                             .threads = 32},
                            3),
                  absl::OkStatus());
      }
      EXPECT_EQ(batch.Run(seed, /*steps=*/2), "") << "COCONET_SIMT_SEED=" << seed;
      if (run == 0) first = ns;
      EXPECT_EQ(ns, first) << "COCONET_SIMT_SEED=" << seed << ", run " << run;
    }
    times.insert(first);
  }
  EXPECT_GT(times.size(), size_t{kSimtOrders});
}

// All threads of a kernel of scalars once loaded those that one of them overwrites, some of them
// behind that.
TEST(SimtTests, ScalarsAreReadByWhoUpdatesThemOnly) {
  const Graph symbolic = Parse(R"(coconet 1
program scalars
input x : f32[N] local
state a : f32[] replicated
state b : f32[] replicated
state most : f32[] replicated each
update(a, a + 0.5 * b)
update(b, b - 0.5 * a)
update(most, most * b + amax(all_reduce(sum, x)))
)")
                             .value();
  const Graph program = BindSizes(symbolic, {{"N", std::vector<int64_t>{3, 70, 3}}}).value();
  const std::vector<Schedule> schedules = Derive(program, {}).value();
  for (uint64_t seed = 0; seed < kSimtOrders; ++seed) {
    VariantBatch batch(SimulatedMachine(SimtOptions::Of(seed)));
    for (size_t i = 0; i < schedules.size(); i += schedules.size() / 3 + 1) {
      const Config config{.protocol = Protocol::kGenerated,
                          .blocks = 1 + static_cast<int>(seed % 3),
                          .threads = 64};
      ASSERT_EQ(batch.Add(program, schedules[i], config, 2), absl::OkStatus());
    }
    EXPECT_EQ(batch.Run(seed, /*steps=*/2), "") << "COCONET_SIMT_SEED=" << seed;
  }
}

std::vector<Case> AllCases() {
  Config around_a_ring, in_bulk, staged, in_messages;
  around_a_ring.ring = true;
  around_a_ring.streaming = Streaming::kShared;
  in_bulk.bulk = true;
  staged.one_shot = OneShot::kStaged;
  in_messages.one_shot = OneShot::kLL;
  return {{"adam", DType::kF32, {{"N", 1000}}, 2, {}},
          {"adam", DType::kF32, {{"N", 700}}, 3, around_a_ring},
          {"adam", DType::kF32, {{"N", 1001}}, 4, in_bulk},
          {"adam", DType::kF16, {{"N", 65}}, 3, staged},
          {"attention", DType::kF16, {{"B", 2}, {"S", 5}, {"H", 12}, {"K", 8}}, 2, {}},
          {"lamb", DType::kBF16, {{"N", 333}}, 2, in_messages}};
}

INSTANTIATE_TEST_SUITE_P(, SimtTest, testing::ValuesIn(AllCases()), [](const auto& info) {
  return absl::StrCat(info.param.workload, "_", Name(info.param.dtype), "_", info.param.ranks);
});

}  // namespace
}  // namespace coconet
