// A rank that fails in the midst of generated programs, as MPI processes: every kind of program and
// world; all die once, some fail otherwise.

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/commands/command.h"
#include "tests/errors/faults.h"
#include "tests/harness/test_data.h"

namespace coconet {
namespace {

struct Case {
  FaultProgram program;
  Fault fault;
};

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (const FaultProgram& program : FaultPrograms()) {
    if (program.target.world() > 4) continue;
    cases.push_back({program, Fault::kDies});
    if (program.name == "lamb_4_2" || program.name == "pipeline_2_1_2") {
      for (Fault fault : {Fault::kReturns, Fault::kLeaves, Fault::kSleeps})
        cases.push_back({program, fault});
    }
  }
  return cases;
}

class MpiFaults : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(In, MpiFaults, testing::ValuesIn(AllCases()), [](const auto& info) {
  return absl::StrCat(info.param.program.name, "_", Name(info.param.fault));
});

TEST_P(MpiFaults, OfARankAreErrorsOfTheOthersThatNameIt) {
  const auto& [program, fault] = GetParam();
  const uint64_t seed = FreshSeed();
  const int ranks = program.target.world();
  const Ended ended =
      RunCommand({"mpirun", "--oversubscribe", "--enable-recovery", "-n", absl::StrCat(ranks),
                  "tests/fault_worker", absl::StrCat(testing::TempDir(), "/cache"),
                  absl::StrCat(seed), program.name, Name(fault)});
  int right = 0;
  for (absl::string_view line : absl::StrSplit(ended.out, '\n'))
    right += absl::StrContains(line, " is right: ");
  EXPECT_EQ(right, fault == Fault::kDies ? ranks - 1 : ranks)
      << ended.out << ended.err << "COCONET_SEED=" << seed;
}

}  // namespace
}  // namespace coconet
