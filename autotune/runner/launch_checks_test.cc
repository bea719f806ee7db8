// Launches of real variants, one by one, right and with an element changed.
#include "autotune/runner/launch_checks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autotune/measure/arena.h"
#include "autotune/runner/rank_runner.h"
#include "autotune/search/sizes/small_sizes.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"
#include "coconet/language/text.h"
#include "coconet/workloads/training_steps.h"
#include "coconet/workloads/workloads.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jit/compile/compiler.h"
#include "runtime/world.h"

namespace coconet {
namespace {

using ::testing::HasSubstr;

constexpr WorldOptions kTwoRanks = {.ranks = 2, .timeout_s = 60, .pin = false};

uint64_t Seed() { return GetEnv().seed.value_or(std::random_device()()); }

/// What the checks said, on one rank.
struct Said {
  int launches = 0;
  int unchecked = 0;  // launches without a result that can be checked
  int changed = 0, missed = 0;
  Reference::Coverage coverage;
  std::string failure;  // of a launch whose results are as the launch left them
};

/// Memory of a plan's buffers, and what runs on it.
struct Bound {
  std::unique_ptr<Module> module;
  std::vector<std::unique_ptr<Memory>> memory;
  Instance instance;
};

absl::StatusOr<std::unique_ptr<Bound>> Bind(Rank& rank, const TypedGraph& program,
                                            const Lowered& lowered, const std::string& path) {
  auto bound = std::make_unique<Bound>();
  ASSIGN_OR_RETURN(bound->module, rank.Load(path));
  bound->instance.plan = &lowered.plan;
  bound->instance.tensors = PlaceTensors(program, lowered.plan);
  for (const Buffer& buffer : lowered.plan.buffers) {
    if (buffer.role == BufferRole::kSync) {
      bound->instance.buffers.push_back(nullptr);
      continue;
    }
    ASSIGN_OR_RETURN(bound->memory.emplace_back(),
                     rank.Allocate(BytesOn(rank, buffer) + kGuardBytes, buffer.symmetric));
    bound->instance.buffers.push_back(bound->memory.back().get());
  }
  return bound;
}

/// Flips the sign and the magnitude of an element that the rank holds of a result.
void Change(Rank& rank, const Plan& plan, const PlacedTensor& result, int64_t position,
            Instance& instance) {
  const Part part = PartOf(result.type, plan.ranks, rank.stage_rank());
  const auto size = static_cast<int64_t>(SizeOf(result.type.dtype));
  char* const at =
      static_cast<char*>(instance.buffers[result.buffer]->own()) + part.Stored(position) * size;
  const double x = LoadElement(result.type.dtype, at, 0).real();
  StoreElement(result.type.dtype, at, 0, std::isfinite(x) ? 1 - 2 * x : 1);
}

absl::Status CheckLaunches(Rank& rank, const Graph& program, const Variant& variant,
                           Compiler& compiler, uint64_t seed, Said& said) {
  ASSIGN_OR_RETURN(const Lowered lowered, Lower(variant.schedule, variant.config, TargetOf(rank)));
  const std::vector<LaunchProgram> launches = LaunchPrograms(variant.schedule.program(), lowered);
  std::string path;
  if (!lowered.kernels.empty()) {
    ASSIGN_OR_RETURN(const Binary binary, compiler.Compile(lowered.kernels));
    path = binary.path;
  }
  if (path.empty()) return absl::OkStatus();  // library calls only
  ASSIGN_OR_RETURN(const std::unique_ptr<Bound> bound,
                   Bind(rank, variant.schedule.program(), lowered, path));
  Instance& instance = bound->instance;
  ASSIGN_OR_RETURN(const Reference reference,
                   Reference::Create(program, rank.mesh(), rank.rank(), seed));
  RETURN_IF_ERROR(PrepareStep(rank, instance, reference));
  std::mt19937_64 random(seed + static_cast<uint64_t>(rank.rank()));
  int done = 0;
  for (const LaunchProgram& launch : launches) {
    EXPECT_EQ(launch.begin, done) << "the launches are all steps";
    const Plan part = StepsOf(lowered.plan, launch.begin, launch.end);
    ASSIGN_OR_RETURN(std::unique_ptr<BoundPlan> steps,
                     rank.Bind(part, *bound->module, instance.buffers, 20));
    ASSIGN_OR_RETURN(const std::optional<Failure> ran, RunTogether(rank, *steps));
    if (ran.has_value()) return absl::InternalError(ran->reason);
    done = launch.end;
    ++said.launches;
    said.unchecked += launch.writes.empty() ? 1 : 0;
    LaunchChecks checks(rank, reference.data(), seed, nullptr);
    ASSIGN_OR_RETURN(const std::optional<Failure> failure,
                     checks.Check(launch, lowered.plan, instance.buffers));
    said.coverage.elements += checks.coverage().elements;
    said.coverage.undetermined += checks.coverage().undetermined;
    EXPECT_EQ(checks.skipped(), 0) << launch.label;
    if (failure.has_value()) {
      said.failure = absl::StrCat(failure->reason, "\n", launch.kind, Print(launch.program));
      return absl::OkStatus();
    }
    if (launch.writes.empty()) continue;
    // One rank changes an element of one result, and puts it back.
    const LaunchResult& chosen = launch.writes[seed % launch.writes.size()];
    if (!chosen.rows.empty()) continue;  // the element may be in a row that is not in use
    const PlacedTensor& result = chosen.tensor;
    const int64_t held = PartOf(result.type, rank.stage_size(), 0).elements();
    if (held == 0 || held > 64) continue;
    const std::string kept(static_cast<const char*>(instance.buffers[result.buffer]->own()),
                           BytesOn(rank, lowered.plan.buffers[result.buffer]));
    if (rank.rank() == 0)
      Change(rank, lowered.plan, result, static_cast<int64_t>(random() % held), instance);
    LaunchChecks again(rank, reference.data(), seed, nullptr);
    ASSIGN_OR_RETURN(const std::optional<Failure> found,
                     again.Check(launch, lowered.plan, instance.buffers));
    ++said.changed;
    said.missed += found.has_value() ? 0 : 1;
    EXPECT_THAT(found.has_value() ? found->reason : "of what it read, have",
                HasSubstr("of what it read, have"));
    std::memcpy(instance.buffers[result.buffer]->own(), kept.data(), kept.size());
    RETURN_IF_ERROR(rank.exchange().Barrier());
  }
  EXPECT_EQ(done, static_cast<int>(lowered.plan.steps.size()));
  return absl::OkStatus();
}

/// Checks a few variants with different schedules.
std::vector<Said> CheckVariants(const Graph& program, const WorldOptions& world, int most) {
  const uint64_t seed = Seed();
  SCOPED_TRACE(absl::StrCat(program.name, " COCONET_SEED=", seed));
  const absl::StatusOr<VariantSet> set = EnumerateVariants(program,
                                                           {.ranks = world.ranks / world.stages,
                                                            .nodes = std::max(world.nodes, 1),
                                                            .cores = 2,
                                                            .library = true},
                                                           nullptr, nullptr, /*few=*/true);
  EXPECT_TRUE(set.ok()) << set.status();
  if (!set.ok()) return {};
  const std::string folder = absl::StrCat(testing::TempDir(), "/objects");
  absl::StatusOr<std::unique_ptr<Compiler>> compiler =
      MakeHostCompiler({.cache_dir = folder, .optimize = Optimize::kFast});
  EXPECT_TRUE(compiler.ok()) << compiler.status();
  std::vector<Said> all;
  for (int i = 0; i < most; ++i) {
    const Variant& variant =
        set->variants[i == 0 ? set->baseline : (seed + i * 7919ull) % set->variants.size()];
    if (variant.apart != nullptr) continue;
    std::vector<Said> said(world.ranks);
    const absl::Status status = RunWorld(world, [&](Rank& rank) {
      return CheckLaunches(rank, program, variant, **compiler, seed, said[rank.rank()]);
    });
    EXPECT_TRUE(status.ok()) << status << Print(variant.schedule) << Text(variant.config);
    EXPECT_EQ(said[0].failure, "") << Print(variant.schedule) << Text(variant.config);
    all.push_back(said[0]);
  }
  return all;
}

/// What all of a program's launches came to.
void ExpectAllChecked(const Graph& program, const WorldOptions& world, int most) {
  Said sum;
  for (const Said& said : CheckVariants(program, world, most)) {
    sum.launches += said.launches;
    sum.unchecked += said.unchecked;
    sum.changed += said.changed;
    sum.missed += said.missed;
    sum.coverage.elements += said.coverage.elements;
    sum.coverage.undetermined += said.coverage.undetermined;
  }
  EXPECT_GT(sum.launches, 0);
  // What is between nodes is in no rank's memory whole.
  EXPECT_LE(world.nodes > 1 ? 2 * sum.unchecked : 8 * sum.unchecked, sum.launches) << program.name;
  EXPECT_LE(10 * sum.coverage.undetermined, sum.coverage.elements) << program.name;
  // An element without a bound may be anything.
  EXPECT_LE(5 * sum.missed, sum.changed) << program.name;
}

TEST(LaunchChecks, SeeWhatLaunchesOfWorkloadsLeave) {
  for (const char* name : {"adam", "lamb", "clip", "stochastic", "mlp", "sequence", "attention",
                           "decode", "dlrm_embedding", "moe"}) {
    const absl::StatusOr<Graph> program = MakeWorkload(name);
    ASSERT_TRUE(program.ok()) << program.status();
    Sizes sizes;
    for (const WorkloadInfo& info : Workloads()) {
      if (info.name == name) sizes = info.presets[0].sizes;
    }
    const absl::StatusOr<Graph> bound = BindSizes(*program, sizes);
    ASSERT_TRUE(bound.ok()) << name << bound.status();
    ExpectAllChecked(Expand(Shrink(*bound, {.elements = 500})), kTwoRanks, 3);
  }
}

TEST(LaunchChecks, SeeWhatLaunchesLeaveOnSeveralNodesAndStages) {
  ExpectAllChecked(*BindSizes(*MakeWorkload("adam"), {{"N", 333}}),
                   {.ranks = 4, .nodes = 2, .timeout_s = 60, .pin = false}, 4);
  ExpectAllChecked(*BindSizes(*MakeWorkload("pipeline"), {{"B", 3}, {"S", 5}, {"H", 7}}),
                   {.ranks = 4, .stages = 2, .timeout_s = 60, .pin = false}, 4);
}

TEST(LaunchChecks, SeeWhatLaunchesOfTrainingStepsLeave) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const absl::StatusOr<Graph> step = GptStep(
        {.layers = 1, .width = 6, .heads = 2, .vocabulary = 11, .sequence = 5}, {.dtype = dtype});
    ASSERT_TRUE(step.ok()) << step.status();
    ExpectAllChecked(*step, kTwoRanks, 2);
  }
}

TEST(LaunchChecks, TakeOneOfEachKind) {
  const absl::StatusOr<Graph> step = GptStep({.layers = 6, .width = 8, .heads = 2});
  ASSERT_TRUE(step.ok());
  const absl::StatusOr<VariantSet> set =
      EnumerateVariants(*step, {.ranks = 2, .cores = 2}, nullptr, nullptr, /*few=*/true);
  ASSERT_TRUE(set.ok()) << set.status();
  const Variant& variant = set->variants[set->baseline];
  const absl::Status status = RunWorld(kTwoRanks, [&](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const Lowered lowered,
                     Lower(variant.schedule, variant.config, TargetOf(rank)));
    const std::vector<LaunchProgram> launches = LaunchPrograms(variant.schedule.program(), lowered);
    const TestData data(*step, 1, 2);
    LaunchChecks checks(rank, data, 1, nullptr);
    const std::vector<const LaunchProgram*> chosen = checks.Unchecked(launches);
    EXPECT_LT(2 * chosen.size(), launches.size());
    EXPECT_TRUE(std::is_sorted(chosen.begin(), chosen.end(),
                               [](const auto* a, const auto* b) { return a->begin < b->begin; }));
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace coconet
