// Every derived schedule of every workload, on 1 to 8 ranks, at sizes that are odd, tiny or empty,
// with configs drawn at random, against the interpreter.

#include "coconet/workloads/workloads.h"

#include <algorithm>
#include <iterator>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "gtest/gtest.h"
#include "tests/harness/machine.h"
#include "tests/harness/sample.h"
#include "tests/harness/schedule_sampler.h"
#include "tests/harness/variant_batch.h"

ABSL_FLAG(
    bool, every_schedule, false,
    "try every schedule at every number of ranks, also of workloads with very many schedules");

namespace coconet {
namespace {

constexpr int kRanks[] = {1, 2, 3, 4, 8};
/// The most ranks of GPUs that are simulated thread for thread.
constexpr int kMostSimulatedRanks = 4;
constexpr int64_t kMostSimulatedElements = 1000;

/// Sizes, and at which of them one schedule in how many is tried.
struct Tried {
  Sizes sizes;
  unsigned one_in;
};

/// The sizes of optimizers, or of models, of which a program uses some.
std::vector<Tried> SizesOf(const WorkloadInfo& info) {
  if (info.optimizer) {
    std::vector<Tried> all = {{{{"N", 0}}, 12},   {{{"N", 1}}, 12},   {{{"N", 7}}, 12},
                              {{{"N", 63}}, 12},  {{{"N", 64}}, 12},  {{{"N", 65}}, 12},
                              {{{"N", 1000}}, 6}, {{{"N", 4097}}, 1}, {{{"N", 70001}}, 24}};
    const auto is_large = [](const Tried& tried) {
      return tried.sizes.at("N").sizes[0] > kMostSimulatedElements;
    };
    if (TheMachine().simulated)
      all.erase(std::remove_if(all.begin(), all.end(), is_large), all.end());
    return all;
  }
  const std::vector<Tried> all = {{{{"B", 1},
                                    {"S", 3},
                                    {"H", 5},
                                    {"K", 7},
                                    {"R", 1},
                                    {"D", 3},
                                    {"L", 1},
                                    {"T", 1},
                                    {"F", 6},
                                    {"E", 1},
                                    {"G", 1},
                                    {"C", 2}},
                                   4},
                                  {{{"B", 2},
                                    {"S", 33},
                                    {"H", 64},
                                    {"K", 20},
                                    {"R", 9},
                                    {"D", 32},
                                    {"L", {3, 0, 7}},
                                    {"T", 5},
                                    {"F", 70},
                                    {"E", 5},
                                    {"G", 8},
                                    {"C", 3}},
                                   1},
                                  {{{"B", 1},
                                    {"S", 128},
                                    {"H", 37},
                                    {"K", 24},
                                    {"R", 5},
                                    {"D", 130},
                                    {"L", {1, 9}},
                                    {"T", 40},
                                    {"F", 48},
                                    {"E", 3},
                                    {"G", 4},
                                    {"C", 9}},
                                   2}};
  std::vector<Tried> used;
  for (const Tried& tried : all) {
    Tried& mine = used.emplace_back(Tried{{}, tried.one_in});
    for (const auto& [symbol, unused] : info.presets[0].sizes)
      mine.sizes.insert_or_assign(symbol, tried.sizes.at(symbol));
  }
  return used;
}

/// Workloads that vary another one try one in so many of the schedules that the other one tries.
constexpr unsigned kOneInOfVariations = 10;

/// One in so many of all schedules is tried, without --every_schedule.
constexpr uint64_t kOneIn = 25;

/// Where there are more schedules, each is tried at one number of ranks, others at each; where
/// there are very many, one of two.
constexpr size_t kManySchedules = 12, kVeryManySchedules = 200;

struct Workload {
  WorkloadInfo info;
  DType dtype;
};
std::ostream& operator<<(std::ostream& out, const Workload& workload) {
  return out << workload.info.name << " " << Name(workload.dtype);
}

std::vector<Workload> AllWorkloads() {
  std::vector<Workload> all;
  for (const WorkloadInfo& info : Workloads()) {
    for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) all.push_back({info, dtype});
  }
  return all;
}

class WorkloadsTest : public testing::TestWithParam<Workload> {
 protected:
  /// On all numbers of ranks; where something is sent, of two stages.
  static std::vector<Target> WorldsOf(const Graph& program) {
    const bool sends = absl::c_any_of(
        program.nodes, [](const Node& node) { return std::holds_alternative<Send>(node.op); });
    std::vector<Target> worlds;
    for (int ranks : kRanks) {
      if (ranks <= kMostSimulatedRanks || !TheMachine().simulated)
        worlds.push_back({ranks, /*nodes=*/1, /*stages=*/sends ? 2 : 1});
    }
    return worlds;
  }

  static absl::Status AddVariants(std::mt19937_64& random, VariantBatch& batch) {
    ASSIGN_OR_RETURN(const Graph symbolic,
                     MakeWorkload(GetParam().info.name, {.dtype = GetParam().dtype}));
    ScheduleSampler sampler(WorldsOf(symbolic), random, batch);
    for (const Tried& tried : SizesOf(GetParam().info)) {
      const unsigned one_in =
          tried.one_in * (GetParam().info.varies.empty() ? 1 : kOneInOfVariations);
      // Types have much the same schedules; f32 has more of them tried.
      const bool all = absl::GetFlag(FLAGS_every_schedule);
      const uint64_t of_types = GetParam().dtype == DType::kF32 || all ? 1 : 4;
      OneIn sample(one_in * of_types * (all ? 1 : OneInFlag(kOneIn)), random);
      const auto tries = [&](size_t index, size_t count, size_t world) {
        if (!all && count > kManySchedules && (index + world) % std::size(kRanks) != 0)
          return false;
        return (all || count <= kVeryManySchedules || random() % 2 == 0) && sample.Takes();
      };
      ASSIGN_OR_RETURN(const Graph program, BindSizes(symbolic, tried.sizes));
      RETURN_IF_ERROR(sampler.Add(program, tries));
    }
    return absl::OkStatus();
  }
};

TEST_P(WorkloadsTest, EveryScheduleComputesWhatTheProgramSays) {
  const Tally tally = RunBatch(AddVariants);
  // The bounds of 16-bit sums that pass through a nonlinear function are wide; a norm of one or two
  // elements that cancel may be 0, and is divided by.
  EXPECT_LE(tally.undetermined, tally.elements / (GetParam().info.optimizer ? 10000 : 100));
}

INSTANTIATE_TEST_SUITE_P(, WorkloadsTest, testing::ValuesIn(AllWorkloads()), [](const auto& info) {
  return absl::StrCat(info.param.info.name, "_", Name(info.param.dtype));
});

}  // namespace
}  // namespace coconet
