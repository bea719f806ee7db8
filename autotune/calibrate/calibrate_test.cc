#include "autotune/calibrate/calibrate.h"

#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "autotune/calibrate/by_node.h"
#include "autotune/calibrate/probes.h"
#include "autotune/calibrate/timed_program.h"
#include "coconet/base/status.h"
#include "gtest/gtest.h"
#include "jit/compile/temp_dir.h"
#include "runtime/world.h"

namespace coconet {
namespace {

TEST(Probes, AreOneLaunchEach) {
  const absl::StatusOr<std::vector<Graph>> kernels = KernelProbes(), products = ProductProbes();
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  ASSERT_TRUE(products.ok()) << products.status();
  for (const Graph& probe : *kernels) {
    const absl::StatusOr<TimedProgram> launch = MakeTimedProgram(probe, {}, 1);
    ASSERT_TRUE(launch.ok()) << probe.name << ": " << launch.status();
    EXPECT_EQ(launch->work.kind, Work::Kind::kKernel) << probe.name;
  }
  for (const Graph& probe : *products) {
    const absl::StatusOr<TimedProgram> launch = MakeTimedProgram(probe, {}, 1);
    ASSERT_TRUE(launch.ok()) << launch.status();
    EXPECT_EQ(launch->work.kind, Work::Kind::kProduct);
  }
}

TEST(Probes, OfCollectivesAreOneLaunchEachOnAnyNodes) {
  const absl::StatusOr<std::vector<Graph>> collectives = CollectiveProbes();
  ASSERT_TRUE(collectives.ok()) << collectives.status();
  EXPECT_FALSE(collectives->empty());
  for (const Graph& probe : *collectives) {
    for (const Target& target : {Target(2), Target(2, 2), Target(4, 2)}) {
      const absl::StatusOr<TimedProgram> launch = MakeTimedProgram(probe, {}, target);
      ASSERT_TRUE(launch.ok()) << probe.name << ": " << launch.status();
      EXPECT_EQ(launch->work.kind, Work::Kind::kCollective);
      EXPECT_EQ(launch->work.group, Group::kStage);
    }
  }
}

/// Compiled binaries go to `dir`.
Binaries::Options OptionsIn(const std::string& dir) {
  Binaries::Options options;
  options.target = BinaryTarget("", 0);
  options.cache_dir = dir;
  options.compiler = [dir]() -> absl::StatusOr<std::shared_ptr<Compiler>> {
    return MakeCompilerFor(/*arch=*/"", /*simulated=*/false,
                           {.cache_dir = dir, .optimize = Optimize::kFast});
  };
  options.warn = [](absl::string_view) {};
  return options;
}

TEST(Calibrate, TimesCollectivesWithinAndAcrossNodes) {
  const absl::StatusOr<std::unique_ptr<TempDir>> folder = TempDir::Make();
  ASSERT_TRUE(folder.ok()) << folder.status();
  for (const int nodes : {1, 2, 4}) {
    const absl::Status status =
        RunWorld({.ranks = 4, .nodes = nodes}, [&](Rank& rank) -> absl::Status {
          ASSIGN_OR_RETURN(const std::unique_ptr<Binaries> binaries,
                           Binaries::Open(rank, OptionsIn((*folder)->path())));
          ASSIGN_OR_RETURN(const std::vector<MeasuredWork> measured,
                           MeasureCollectivesByNode(rank, *binaries));
          std::set<std::pair<CollectiveStep::Kind, Group>> kinds;
          for (const auto& [work, us] : measured) {
            EXPECT_EQ(work.kind, Work::Kind::kCollective);
            EXPECT_GT(us, 0);
            EXPECT_TRUE(std::isfinite(us));
            kinds.emplace(work.collective, work.group);
          }
          const std::set<std::pair<CollectiveStep::Kind, Group>> of_two_nodes = {
              {CollectiveStep::Kind::kReduceScatter, Group::kNode},
              {CollectiveStep::Kind::kAllReduce, Group::kAcross},
              {CollectiveStep::Kind::kAllGather, Group::kNode}};
          EXPECT_EQ(kinds, nodes == 2 ? of_two_nodes : decltype(kinds)());
          return absl::OkStatus();
        });
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST(Calibrate, OnceAMachineAndWorld) {
  const absl::StatusOr<std::unique_ptr<TempDir>> folder = TempDir::Make();
  ASSERT_TRUE(folder.ok()) << folder.status();
  const std::string dir = (*folder)->path();
  const absl::Status status = RunWorld({.ranks = 2}, [&](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const std::unique_ptr<Binaries> binaries,
                     Binaries::Open(rank, OptionsIn(dir)));
    std::unique_ptr<TuningCache> cache;
    if (rank.rank() == 0) cache = TuningCache::Open(dir + "/tuning.db", nullptr);
    ASSIGN_OR_RETURN(const Rates first, CalibrateOnce(rank, *binaries, cache.get()));
    ASSIGN_OR_RETURN(const Rates second, CalibrateOnce(rank, *binaries, cache.get()));
    EXPECT_EQ(first, second) << "the second time it comes from the cache";
    EXPECT_GE(first.computation_beside, 1);
    EXPECT_GE(first.collective_beside, 1);
    EXPECT_FALSE(first.collectives.empty());
    for (double effort : first.effort) EXPECT_TRUE(std::isfinite(effort) && effort >= 0);
    // A product that it has not measured is added to what is known.
    Work product{.kind = Work::Kind::kProduct};
    product.dtype = DType::kF32;
    product.batch = 1;
    product.m = 33;
    product.n = 17;
    product.k = 65;
    const CalibrationTerms terms{.products = {product}};
    ASSIGN_OR_RETURN(Rates third, CalibrateOnce(rank, *binaries, cache.get(), terms));
    ASSIGN_OR_RETURN(const Rates fourth, CalibrateOnce(rank, *binaries, cache.get(), terms));
    EXPECT_EQ(third, fourth);
    EXPECT_EQ(third.products.size(), first.products.size() + 1);
    third.products.pop_back();
    EXPECT_EQ(third, first);
    if (cache != nullptr) {
      EXPECT_EQ(cache->Calibrations().size(), 1u);
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace coconet
