// Steps of different lanes that use one buffer, of which one writes it, wait for each other, and
// temporaries that share memory do not live at the same time.

#include <algorithm>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/ir/graph.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/testing/random_program.h"
#include "coconet/workloads/training_steps.h"
#include "gtest/gtest.h"
#include "jit/config/config_traits.h"
#include "jit/lower/lower.h"
#include "runtime/node/lanes.h"
#include "runtime/plan_memory.h"
#include "runtime/testing/temporary_checks.h"
#include "tests/harness/random_config.h"
#include "tests/harness/test_data.h"

namespace coconet {
namespace {

/// By step: its number on its lane, and how many steps of the other lane are surely done before it
/// begins.
struct Order {
  std::vector<int> on_lane, done;
};
Order DoneBefore(const Plan& plan) {
  std::vector<int> done(plan.steps.size()), on_lane(plan.steps.size());
  std::vector<int> last(kLanes, -1);
  int count[kLanes] = {0, 0};
  for (int step = 0; step < std::ssize(done); ++step) {
    const int lane = LaneOf(plan.steps[step]);
    on_lane[step] = count[lane]++;
    done[step] = last[lane] < 0 ? 0 : done[last[lane]];
    for (int before : AfterOf(plan.steps[step])) {
      if (LaneOf(plan.steps[before]) != lane)
        done[step] = std::max(done[step], on_lane[before] + 1);
    }
    last[lane] = step;
  }
  return {on_lane, done};
}

/// A step of `a`, and one of the later `b` on the other lane that does not wait for it; {-1, -1}:
/// there are none.
std::pair<int, int> Unordered(const Plan& plan, const PlacedLaunch& a, const PlacedLaunch& b,
                              const Order& order) {
  for (int first = a.begin; first < a.end; ++first) {
    for (int second = b.begin; second < b.end; ++second) {
      if (LaneOf(plan.steps[first]) != LaneOf(plan.steps[second]) &&
          order.done[second] <= order.on_lane[first])
        return {first, second};
    }
  }
  return {-1, -1};
}

/// What is wrong with a plan's order; "" where nothing is.
std::string WhyUnordered(const Plan& plan, const std::vector<PlacedLaunch>& launches) {
  const Order done = DoneBefore(plan);
  struct Use {
    int launch;
    bool writes;
  };
  std::map<int, std::vector<Use>> uses;  // by buffer
  for (int at = 0; at < std::ssize(launches); ++at) {
    if (launches[at].begin == launches[at].end) continue;
    for (const auto& [node, buffer] : launches[at].reads) uses[buffer].push_back({at, false});
    for (const auto& [node, buffer] : launches[at].writes) uses[buffer].push_back({at, true});
  }
  for (const auto& [buffer, of_buffer] : uses) {
    for (const Use& a : of_buffer) {
      for (const Use& b : of_buffer) {
        if (a.launch >= b.launch || !(a.writes || b.writes)) continue;
        const auto [first, second] = Unordered(plan, launches[a.launch], launches[b.launch], done);
        if (first >= 0) {
          return absl::StrCat("step ", second, " does not wait for step ", first,
                              " on the other lane, and both use ", plan.buffers[buffer].name, "\n",
                              Print(plan));
        }
      }
    }
  }
  return "";
}

/// What is wrong with a plan's order where a step begins while the one before still runs; "" where
/// nothing is.
std::string WhyUnorderedAcross(const Plan& plan, const std::vector<PlacedLaunch>& launches) {
  const auto uses = [](const PlacedLaunch& a, int buffer, bool as_well) {
    const auto has = [&](const auto& of_a) {
      return absl::c_any_of(of_a, [&](const auto& use) { return use.second == buffer; });
    };
    return has(a.writes) || (as_well && has(a.reads));
  };
  const auto meet = [&](const PlacedLaunch& a, const PlacedLaunch& b) {
    for (const auto& [node, buffer] : a.writes) {
      if (uses(b, buffer, true)) return true;
    }
    return absl::c_any_of(a.reads, [&](const auto& use) { return uses(b, use.second, false); });
  };
  for (const Outlasting& o : plan.outlasting) {
    const auto launch = absl::c_find_if(
        launches, [&](const PlacedLaunch& at) { return at.begin <= o.step && o.step < at.end; });
    if (launch == launches.end()) return absl::StrCat("step ", o.step, " is of no launch");
    for (const PlacedLaunch& next : launches) {
      if (!meet(*launch, next)) continue;
      for (int step = next.begin; step < next.end; ++step) {
        if (LaneOf(plan.steps[step]) != 0 || (o.until >= 0 && o.until <= step)) continue;
        return absl::StrCat("step ", step, " does not wait for step ", o.step,
                            " of the run before, and both use a buffer\n", Print(plan));
      }
    }
  }
  return "";
}

struct Seen {
  int plans = 0, buckets = 0, outlasting = 0;
  int beside = 0, shared = 0;  // steps on lane 1; plans some of whose temporaries share memory
  double most = 1;             // temporaries over their lower bound
};

/// Lowers schedules of the program that have concurrency.
void CheckProgram(const Graph& program, const Target& target, std::mt19937_64& random, size_t limit,
                  Seen& seen) {
  const bool by_node = target.nodes > 1 && target.ranks_per_node() > 1;
  absl::StatusOr<std::vector<Schedule>> schedules = Derive(program, {.by_node = by_node});
  if (absl::IsResourceExhausted(schedules.status()))
    schedules = Derive(program, {.by_node = by_node, .few = true});
  ASSERT_TRUE(schedules.ok()) << schedules.status();
  for (size_t i = 0; i < std::min(limit, schedules->size()); ++i) {
    const Schedule s = DrawOrder(
        (*schedules)[schedules->size() <= limit ? i : random() % schedules->size()], random);
    for (Protocol protocol : {Protocol::kLibrary, Protocol::kGenerated}) {
      Config config = DrawArguments(DrawCompiledConfig(random), s, random);
      config.protocol = protocol;
      config.concurrent = HasConcurrency(s, protocol, target.nodes);
      const auto bucket = static_cast<int64_t>(random() % 3 * 2000);
      config.bucket = config.concurrent && s.buckets().empty() ? bucket : 0;
      if (!config.concurrent ||
          !Validate(config, s, {.ranks = target.ranks, .nodes = target.nodes}).ok())
        continue;
      const absl::StatusOr<PlacedLaunches> launches =
          CutIntoLaunches(s, LeftToLibrary(protocol, target.nodes), {true, config.bucket});
      ASSERT_TRUE(launches.ok()) << launches.status();
      for (const PlacedLaunches::Chain& chain : launches->chains) {
        EXPECT_EQ(chain.last - chain.first + 1, std::ssize(chain.overlap))
            << "launches among those of an overlap\n"
            << Print(program) << TraceText(s.trace()) << "\n"
            << Text(config);
      }
      seen.buckets += static_cast<int>(launches->buckets.size());
      for (const std::vector<NodeId>& bucket : s.buckets()) {
        if (!DoneBy(LeftToLibrary(protocol, target.nodes), s.program(), bucket[0])) continue;
        EXPECT_EQ(launches->of[bucket.back()] - launches->of[bucket[0]] + 1, std::ssize(bucket))
            << "launches among those of a bucket\n"
            << Print(program) << TraceText(s.trace()) << "\n"
            << Text(config);
      }
      const absl::StatusOr<Lowered> lowered = Lower(s, config, target);
      ASSERT_TRUE(lowered.ok()) << lowered.status();
      EXPECT_EQ(WhyUnordered(lowered->plan, lowered->launches), "")
          << Print(program) << TraceText(s.trace()) << "\n"
          << Text(config);
      EXPECT_EQ(WhyUnorderedAcross(lowered->plan, lowered->launches), "")
          << Print(program) << TraceText(s.trace()) << "\n"
          << Text(config);
      EXPECT_EQ(CheckLanes(lowered->plan), absl::OkStatus());
      seen.outlasting += static_cast<int>(lowered->plan.outlasting.size());
      ++seen.plans;
      for (const Step& step : lowered->plan.steps) seen.beside += LaneOf(step);
      seen.shared += TemporariesOverlap(lowered->plan);
      for (int rank : {0, target.ranks - 1}) {
        const TemporaryPlaces places = PlaceTemporaries(lowered->plan, rank);
        EXPECT_EQ(WhyOverlapping(lowered->plan, places, rank), "")
            << Print(program) << TraceText(s.trace()) << "\n"
            << Text(config);
      }
      const PlanMemory memory = MemoryOf(lowered->plan);
      if (memory.live > 0) {
        seen.most = std::max(
            seen.most, static_cast<double>(memory.temporaries) / static_cast<double>(memory.live));
      }
    }
  }
}

TEST(Lanes, OfRandomProgramsWaitForEachOther) {
  const uint64_t seed = FreshSeed();
  std::mt19937_64 random(seed);
  Seen seen;
  for (int i = 0; i < 100 && !testing::Test::HasFailure(); ++i) {
    const Graph program =
        RandomProgram(random(), {.kind = i % 2 == 0 ? ProgramKind::kStep : ProgramKind::kModel,
                                 .operations = 20,
                                 .max_communications = 6});
    const Target target = i % 3 == 0 ? Target{2, 2} : i % 3 == 1 ? Target{4, 2} : Target{3};
    CheckProgram(program, target, random, /*limit=*/6, seen);
  }
  std::cout << seen.plans << " plans, " << seen.buckets << " buckets, " << seen.beside
            << " steps beside others, " << seen.outlasting << " beside those of the next run, "
            << seen.shared << " plans whose temporaries share memory\n";
  EXPECT_FALSE(testing::Test::HasFailure()) << "COCONET_SEED=" << seed;
  EXPECT_GT(seen.plans, 20);
  EXPECT_GT(seen.beside, 20);
  EXPECT_GT(seen.shared, 0);
}

/// The sums of one step's gradients are added to the weights at the end of the next.
TEST(Lanes, OfDelayedGradientsReachIntoTheNextStep) {
  const absl::StatusOr<Graph> program = Parse(R"(coconet 1
program delayed
input x : f32[32, 16] local
input t : f32[32, 1] local
input lr : f32[]
state w : f32[16, 1] replicated
state d : f32[16, 1] replicated
off = matmul(x, w) - t
update(d, all_reduce(sum, matmul(x, off, transpose_a)))
update(w, w - lr * d)
)");
  ASSERT_TRUE(program.ok()) << program.status();
  const Schedule s = InitialSchedule(*program).value();
  ASSERT_TRUE(HasConcurrency(s, Protocol::kLibrary, 2));
  const absl::StatusOr<Lowered> lowered = Lower(s, {.concurrent = true}, {2, 2});
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  const Plan& plan = lowered->plan;
  ASSERT_EQ(plan.outlasting.size(), 1u) << Print(plan);
  EXPECT_TRUE(std::holds_alternative<CollectiveStep>(plan.steps[plan.outlasting[0].step]));
  EXPECT_EQ(WhyUnorderedAcross(plan, lowered->launches), "");
  EXPECT_GE(plan.outlasting[0].until, 2) << "begins without the products\n" << Print(plan);
}

TEST(Lanes, OfTrainingStepsWaitForEachOther) {
  std::mt19937_64 random(1);
  Seen seen;
  const absl::StatusOr<Graph> gpt = GptStep(
      {.layers = 3, .width = 16, .heads = 2, .vocabulary = 40, .sequence = 8, .examples = 2});
  ASSERT_TRUE(gpt.ok()) << gpt.status();
  CheckProgram(*gpt, {2, 2}, random, /*limit=*/20, seen);
  CheckProgram(*gpt, {4, 2}, random, /*limit=*/20, seen);
  EXPECT_GT(seen.shared, 4);
  EXPECT_GT(seen.plans, 4);
  EXPECT_GT(seen.buckets, 10);
  EXPECT_GT(seen.beside, 100);
}

TEST(Memory, OfTrainingStepsIsNearItsLowerBound) {
  const absl::StatusOr<Graph> gpt = GptStep(
      {.layers = 3, .width = 64, .heads = 2, .vocabulary = 256, .sequence = 32, .examples = 2});
  ASSERT_TRUE(gpt.ok()) << gpt.status();
  std::mt19937_64 random(2);
  Seen seen;
  CheckProgram(*gpt, {2, 2}, random, /*limit=*/20, seen);
  std::cout << "temporaries over their lower bound: at most " << seen.most << "\n";
  EXPECT_GT(seen.plans, 2);
  EXPECT_LE(seen.most, 1.1);
}

}  // namespace
}  // namespace coconet
