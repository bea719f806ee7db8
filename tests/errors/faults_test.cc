// A rank that fails in the midst of generated programs, whose ranks are threads: every kind of
// program, world and fault.

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jit/compile/compiler.h"
#include "tests/errors/faults.h"
#include "tests/harness/machine.h"
#include "tests/harness/sample.h"
#include "tests/harness/test_data.h"
#include "tests/kernels/kernel_set.h"

namespace coconet {
namespace {

class Faults : public testing::TestWithParam<FaultProgram> {};
INSTANTIATE_TEST_SUITE_P(In, Faults, testing::ValuesIn(FaultPrograms()),
                         [](const auto& info) { return info.param.name; });

/// One in so many programs has the faults that are noticed at a deadline only.
constexpr uint64_t kWaitsOneIn = 3;

/// As small as the machine wants it.
FaultProgram ProgramOf(const std::string& name) {
  const std::vector<FaultProgram> programs = FaultPrograms(/*small=*/TheMachine().simulated);
  const auto program = std::find_if(programs.begin(), programs.end(),
                                    [&](const FaultProgram& p) { return p.name == name; });
  CC_CHECK(program != programs.end());
  return *program;
}

size_t NumberOf(const FaultProgram& program) {
  const std::vector<FaultProgram> programs = FaultPrograms();
  return static_cast<size_t>(
      std::find_if(programs.begin(), programs.end(),
                   [&](const FaultProgram& p) { return p.name == program.name; }) -
      programs.begin());
}

std::vector<std::string> Compiled(const std::vector<LoweredVariant>& variants) {
  KernelSet kernels;
  for (const LoweredVariant& variant : variants) kernels.Add(variant.lowered);
  const auto compiler = TheMachine()
                            .make_compiler({.cache_dir = absl::StrCat(testing::TempDir(), "/cache"),
                                            .optimize = Optimize::kFast})
                            .value();
  return kernels.Compile(*compiler).value();
}

TEST_P(Faults, OfARankAreErrorsOfTheOthersThatNameIt) {
  const FaultProgram program = ProgramOf(GetParam().name);
  const uint64_t seed = FreshSeed();
  const std::vector<LoweredVariant> variants = FaultVariants(program, seed).value();
  const std::vector<std::string> binaries = Compiled(variants);
  const Target& target = program.target;
  const bool may_wait = (NumberOf(program) + seed) % OneInFlag(kWaitsOneIn) == 0;
  for (const LoweredVariant& variant : variants) {
    for (Fault fault : {Fault::kReturns, Fault::kLeaves, Fault::kSleeps, Fault::kSkips}) {
      if (!MustBeNoticed(fault, variant)) continue;
      if (fault == Fault::kSkips && TheMachine().gpu)
        continue;  // it takes the place of kernels of the host
      const bool waits = fault == Fault::kSleeps || fault == Fault::kSkips;
      if (waits && (&variant != &variants.back() || !may_wait)) continue;  // each takes seconds
      std::vector<std::string> wrong(target.world());
      const WorldOptions options{.ranks = target.world(),
                                 .stages = target.stages,
                                 .nodes = target.world_nodes(),
                                 .timeout_s = TimeoutOf(fault, target, TheMachine().gpu)};
      const absl::Status status = TheMachine().run_world(options, [&](Rank& rank) -> absl::Status {
        ASSIGN_OR_RETURN(const std::unique_ptr<Module> module, LoadAll(rank, binaries));
        return RunIntoFault(rank, *module, variant, fault, seed, wrong[rank.rank()]);
      });
      EXPECT_FALSE(status.ok());
      EXPECT_THAT(wrong, testing::Each("")) << "A rank " << Name(fault) << "\n"
                                            << Reproducer(variant, seed);
    }
  }
}

TEST(FaultsOfMessages, SayThatNoDataCame) {
  const std::vector<LoweredVariant> variants =
      FaultVariants(ProgramOf("messages_3"), /*seed=*/1).value();
  ASSERT_EQ(variants[0].lowered.protocol, "one-shot ll");
  const std::vector<std::string> binaries = Compiled({variants[0]});
  std::vector<std::string> wrong(3);
  const absl::Status status = TheMachine().run_world(
      {.ranks = 3, .timeout_s = TimeoutOf(Fault::kReturns, 3, TheMachine().gpu)},
      [&](Rank& rank) -> absl::Status {
        ASSIGN_OR_RETURN(const std::unique_ptr<Module> module, LoadAll(rank, binaries));
        return RunIntoFault(rank, *module, variants[0], Fault::kReturns, /*seed=*/1,
                            wrong[rank.rank()]);
      });
  EXPECT_THAT(status.message(), testing::HasSubstr(", flag in data: want epoch "));
  EXPECT_THAT(wrong, testing::Each(""));
}

}  // namespace
}  // namespace coconet
