// Mistakes that are planted in the text of kernels and in the library are found, by simulated GPUs
// or by what verifies kernels for CPUs, by the check that is there for them, and what is as it is
// has none. These are, among all mistakes on simulated GPUs, the first of each kind at each case,
// and among those on CPUs the first of each kind and place; //tests:long tries all, by
// //tests:mutation_score.

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "coconet/base/status.h"
#include "gtest/gtest.h"
#include "tests/mutation/host_mutation_run.h"
#include "tests/mutation/mutation_run.h"
#include "tests/mutation/planted/mutation_edits.h"

namespace coconet {
namespace {

std::string CacheDir() { return absl::StrCat(testing::TempDir(), "/cache"); }
std::string TestName(const std::string& name) { return absl::StrReplaceAll(name, {{"-", "_"}}); }

TEST(MutationTest, IsOfEveryKindAndEveryCase) {
  std::set<std::string> names, cases, kinds;
  for (const Mutation& mutation : Mutations()) {
    EXPECT_TRUE(names.insert(mutation.name).second) << mutation.name;
    EXPECT_FALSE(mutation.expected.empty()) << mutation.name;
    cases.insert(mutation.at);
    for (const MutationKind& kind : mutation.expected) kinds.insert(Name(kind));
  }
  EXPECT_GE(names.size(), 170u);
  for (const MutationCase& at : MutationCases()) EXPECT_EQ(cases.count(at.name), 1u) << at.name;
  EXPECT_EQ(kinds, (std::set<std::string>{"bad barrier", "bad product", "bad registers",
                                          "bad shuffle", "bad tensor map", "data race", "deadlock",
                                          "divergent barrier", "misaligned", "never written",
                                          "out of bounds", "unfinished copy", "unfinished product",
                                          "unwritten output", "wrong answer"}));
}

TEST(MutationTest, OnCpusIsOfEveryKindAndEveryCase) {
  std::set<std::string> names, cases, kinds, places;
  for (const Mutation& mutation : Mutations()) names.insert(mutation.name);
  const size_t simulated = names.size();
  for (const Mutation& mutation : HostMutations()) {
    EXPECT_TRUE(names.insert(mutation.name).second) << mutation.name;
    EXPECT_FALSE(mutation.expected.empty()) << mutation.name;
    cases.insert(mutation.at);
    for (const MutationKind& kind : mutation.expected) kinds.insert(Name(kind));
  }
  EXPECT_GE(names.size() - simulated, 130u);
  EXPECT_GE(names.size(), 300u);
  for (const MutationCase& at : HostCases()) EXPECT_EQ(cases.count(at.name), 1u) << at.name;
  for (HostFinding finding : kAllHostFindings)
    EXPECT_EQ(kinds.count(std::string(Name(finding))), 1u) << Name(finding);
}

TEST(MutationTest, HasItsPlaceInTheTextOfTheKernels) {
  for (const Mutation& mutation : Mutations())
    EXPECT_EQ(CheckPlace(mutation), absl::OkStatus()) << mutation.name;
}

TEST(MutationTest, HasItsPlaceInTheTextOfTheKernelsForCpusOrInTheLibrary) {
  for (const Mutation& mutation : HostMutations())
    EXPECT_EQ(CheckHostPlace(mutation), absl::OkStatus()) << mutation.name;
}

TEST(MutationTest, IsRefusedWhereItsTextIsNotThereOnce) {
  Mutation mutation{"", "", "pull", {FindingKind::kRace}, {{"sync.h", "no such text", ""}}};
  EXPECT_TRUE(absl::IsFailedPrecondition(RunMutation(mutation, CacheDir()).status()));
  mutation.edits = {{"sync.h", "grid.Sync();", ""}};
  EXPECT_TRUE(absl::IsFailedPrecondition(RunMutation(mutation, CacheDir()).status()));
  mutation.edits = {{"none.h", "", ""}};
  EXPECT_TRUE(absl::IsInvalidArgument(RunMutation(mutation, CacheDir()).status()));
  mutation.at = "no such case";
  EXPECT_TRUE(absl::IsInvalidArgument(RunMutation(mutation, CacheDir()).status()));
}

/// The first mutation at each case that is to be found by the same checks.
std::vector<Mutation> FirstOfEachKind() {
  std::set<std::string> seen;
  std::vector<Mutation> first;
  for (const Mutation& mutation : Mutations()) {
    std::string key = mutation.at;
    for (const MutationKind& kind : mutation.expected) absl::StrAppend(&key, ", ", Name(kind));
    if (seen.insert(key).second) first.push_back(mutation);
  }
  return first;
}

class PlantedTest : public testing::TestWithParam<Mutation> {};

TEST_P(PlantedTest, IsFoundByTheRightCheck) {
  const absl::StatusOr<MutationOutcome> outcome = RunMutation(GetParam(), CacheDir());
  ASSERT_EQ(outcome.status(), absl::OkStatus());
  EXPECT_TRUE(IsCaught(GetParam(), *outcome))
      << GetParam().what << " After " << outcome->tried << " interleavings: " << outcome->report;
}

INSTANTIATE_TEST_SUITE_P(, PlantedTest, testing::ValuesIn(FirstOfEachKind()),
                         [](const auto& info) { return TestName(info.param.name); });

class AsItIsTest : public testing::TestWithParam<MutationCase> {};

TEST_P(AsItIsTest, HasNoMistake) {
  const absl::StatusOr<MutationOutcome> outcome = RunUnmutated(GetParam(), CacheDir());
  ASSERT_EQ(outcome.status(), absl::OkStatus());
  EXPECT_FALSE(outcome->kind.has_value()) << outcome->report;
}

INSTANTIATE_TEST_SUITE_P(, AsItIsTest, testing::ValuesIn(MutationCases()),
                         [](const auto& info) { return TestName(info.param.name); });

/// By where the first edit is, the first mutation of each kind; of those of the library, which is
/// compiled for each, the first of each floor.
std::vector<Mutation> FirstOnCpus() {
  std::set<std::string> seen;
  std::vector<Mutation> first;
  for (const Mutation& mutation : HostMutations()) {
    const MutationEdit& edit = mutation.edits[0];
    const std::string file = edit.file;
    const std::string key = IsOfLibrary(edit) ? file.substr(0, file.find('/'))
                                              : absl::StrCat(file == kKernelText ? file : "header",
                                                             Name(mutation.expected[0]));
    if (seen.insert(key).second) first.push_back(mutation);
  }
  return first;
}

class PlantedOnCpusTest : public testing::TestWithParam<Mutation> {};

TEST_P(PlantedOnCpusTest, IsFoundByTheRightCheck) {
  const absl::StatusOr<MutationOutcome> outcome = RunOnHost(GetParam(), CacheDir());
  ASSERT_EQ(outcome.status(), absl::OkStatus());
  EXPECT_TRUE(IsCaught(GetParam(), *outcome))
      << GetParam().what << " Found "
      << (outcome->kind.has_value() ? Name(*outcome->kind) : "nothing") << ": " << outcome->report;
}

TEST_P(PlantedOnCpusTest, IsNotFoundWhereItIsNot) {
  const MutationCase at = FindMutationCase(GetParam().at).value();
  const absl::StatusOr<MutationOutcome> outcome = RunUnmutatedOnHost(at, CacheDir());
  ASSERT_EQ(outcome.status(), absl::OkStatus());
  EXPECT_FALSE(outcome->kind.has_value()) << outcome->report;
}

INSTANTIATE_TEST_SUITE_P(, PlantedOnCpusTest, testing::ValuesIn(FirstOnCpus()),
                         [](const auto& info) { return TestName(info.param.name); });

}  // namespace
}  // namespace coconet
