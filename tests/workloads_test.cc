// Every derived schedule of every workload, on 1 to 8 ranks, at sizes that are odd, tiny or empty, with configs drawn at
// random, against the interpreter.

#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/workloads.h"
#include "gtest/gtest.h"
#include "jit/compiler.h"
#include "runtime/world.h"
#include "tests/differential_body.h"
#include "tests/kernel_set.h"
#include "tests/test_data.h"

namespace coconet {
namespace {

constexpr int kRanks[] = {1, 2, 3, 4, 8};

/// Sizes, and at which of them one schedule in how many is tried.
struct Size {
  int64_t n;
  unsigned one_in;
};
constexpr Size kSizes[] = {{0, 8}, {1, 8}, {7, 8}, {63, 8}, {64, 8}, {65, 8}, {1000, 4}, {4097, 1}, {70001, 24}};

struct Workload {
  std::string name;
  DType dtype;
};
std::ostream& operator<<(std::ostream& out, const Workload& workload) {
  return out << workload.name << " " << Name(workload.dtype);
}

std::vector<Workload> AllWorkloads() {
  std::vector<Workload> all;
  for (const WorkloadInfo& info : Workloads()) {
    for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) all.push_back({std::string(info.name), dtype});
  }
  return all;
}

template <class T, size_t N>
T Pick(std::mt19937_64& random, const T (&choices)[N]) {
  return choices[random() % N];
}

/// What is in a kernel's text: drawn once a world, so that variants share kernels.
Config DrawCompiled(std::mt19937_64& random) {
  Config config;
  config.vec = Pick(random, {1, 4, 16, 32});
  config.streaming = Pick(random, {Streaming::kNone, Streaming::kShared, Streaming::kAll});
  return config;
}

/// The rest: small chunks, so that there are many, and many flags.
Config DrawArguments(Protocol protocol, Config config, std::mt19937_64& random) {
  config.protocol = protocol;
  config.chunk = Pick<int64_t>(random, {64, 192, 4096});
  config.blocks = Pick(random, {1, 1, 2, 3});
  return config;
}

class WorkloadsTest : public testing::TestWithParam<Workload> {
 protected:
  /// All schedules of the workload, or some, at one size on one number of ranks, with both protocols.
  absl::Status AddVariants(const Graph& program, absl::Span<const Schedule> schedules, const Size& size, int ranks,
                           const Config& compiled, std::mt19937_64& random) {
    for (const Schedule& schedule : schedules) {
      if (random() % size.one_in != 0) continue;
      for (Protocol protocol : {Protocol::kLibrary, Protocol::kGenerated}) {
        const Config config = DrawArguments(protocol, compiled, random);
        ASSIGN_OR_RETURN(Variant variant, MakeVariant(program, schedule, config, ranks));
        const bool uses_library = absl::StrContains(variant.lowered.protocol, "library");
        kernels_.Add(variant.lowered);
        variants_[ranks].push_back(std::move(variant));
        if (!uses_library) break;  // the protocol makes no difference
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddAllVariants(std::mt19937_64& random) {
    ASSIGN_OR_RETURN(const Graph symbolic, MakeWorkload(GetParam().name, {.dtype = GetParam().dtype}));
    std::map<int, Config> compiled;
    for (int ranks : kRanks) compiled[ranks] = DrawCompiled(random);
    for (const Size& size : kSizes) {
      ASSIGN_OR_RETURN(const Graph program, BindSizes(symbolic, {{"N", size.n}}));
      ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(program));
      for (int ranks : kRanks) {
        RETURN_IF_ERROR(AddVariants(program, schedules, size, ranks, compiled[ranks], random));
      }
    }
    return absl::OkStatus();
  }

  /// Runs the variants of one world; the first failures, with what it takes to see them again.
  std::string RunAll(int ranks, const std::vector<std::string>& binaries, uint64_t seed, Tally& tally) {
    std::string failures;
    int failed = 0;
    const absl::Status world = RunWorld({.ranks = ranks}, [&](Rank& rank) -> absl::Status {
      ASSIGN_OR_RETURN(const std::unique_ptr<Module> module, LoadAll(rank, binaries));
      for (const Variant& variant : variants_[ranks]) {
        const absl::Status status = RunVariant(rank, *module, variant, seed, /*steps=*/2, tally);
        if (status.ok()) continue;
        if (rank.rank() == 0) absl::StrAppend(&failures, status.ToString(), "\n", Reproducer(variant, ranks, seed), "\n");
        if (!absl::IsInternal(status) || ++failed > 2 * ranks) return status;
      }
      return absl::OkStatus();
    });
    return world.ok() || !failures.empty() ? failures : world.ToString();
  }

  KernelSet kernels_;
  std::map<int, std::vector<Variant>> variants_;
};

TEST_P(WorkloadsTest, EveryScheduleComputesWhatTheProgramSays) {
  const uint64_t seed = FreshSeed();
  SCOPED_TRACE(absl::StrCat("COCONET_SEED=", seed));
  std::mt19937_64 random(seed);
  const absl::Status added = AddAllVariants(random);
  ASSERT_TRUE(added.ok()) << added;
  absl::StatusOr<std::unique_ptr<Compiler>> compiler =
      MakeHostCompiler({.cache_dir = absl::StrCat(testing::TempDir(), "/cache"), .optimize = Optimize::kFast});
  ASSERT_TRUE(compiler.ok()) << compiler.status();
  const absl::StatusOr<std::vector<std::string>> binaries = kernels_.Compile(**compiler);
  ASSERT_TRUE(binaries.ok()) << binaries.status();
  Tally tally;
  for (int ranks : kRanks) EXPECT_EQ(RunAll(ranks, *binaries, seed, tally), "");
  std::cout << tally.variants << " variants, " << kernels_.size() << " kernels, " << tally.elements << " elements, "
            << tally.undetermined << " of them undetermined\n";
  EXPECT_EQ(tally.undetermined, 0);
}

INSTANTIATE_TEST_SUITE_P(, WorkloadsTest, testing::ValuesIn(AllWorkloads()), [](const auto& info) {
  return absl::StrCat(info.param.name, "_", Name(info.param.dtype));
});

}  // namespace
}  // namespace coconet
