// A few faults of each kind that small jobs can meet, drawn from fixed seeds; the rest are in
// //tests/faults:faults_long.

#include <cstdlib>
#include <string>

#include "gtest/gtest.h"
#include "tests/faults/fault_case.h"

namespace coconet {
namespace {

WarmCaches& Warm() {
  static auto& warm = *new WarmCaches(testing::TempDir() + "/warm");
  return warm;
}

class FaultsShort : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Of, FaultsShort,
                         testing::Values("kill_all", "missing", "damaged", "clock", "options"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(FaultsShort, LeaveKeysAnswersAndRecordsAsTheyAre) {
  const CaseOptions options{.only = GetParam(), .quick = true};
  for (const uint64_t seed : {1, 2}) {
    const CaseReport report = RunFaultCase(seed, options, Warm());
    for (const auto& [finding, what] : report.findings)
      ADD_FAILURE()
          << Name(finding) << ": " << what << "\n  " << report.words
          << "\n  again: bazel run //tests/faults:faults_long -- --faults=1 --quick --only="
          << options.only << " --seed=" << seed;
  }
}

TEST(FaultsShort, SayWhereALaterJobCannotTune) {
  setenv("COCONET_CXX", "/no/compiler", 1);
  WarmCaches cold(testing::TempDir() + "/cold");
  const CaseReport report = RunFaultCase(1, {.only = "clock", .quick = true}, cold);
  unsetenv("COCONET_CXX");
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].first, FindingOfCase::kUnusableKey);
  EXPECT_NE(report.findings[0].second.find("/no/compiler"), std::string::npos);
}

}  // namespace
}  // namespace coconet
