#include "bench/nodes/node_row.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace coconet::bench {
namespace {

/// The parts of a step on a link of that rate, with `more` times the bytes, and `besides_us`
/// besides.
StepParts OnLink(const std::string& rate, double bytes, double besides_us, double more) {
  const double unit = absl::EndsWith(rate, "kbit") ? 1e3 : 1e6;
  const double us =
      rate == "none" ? 0 : 8e6 * more * bytes / (std::strtod(rate.c_str(), nullptr) * unit);
  return {.computation_us = 1000, .sending_us = us + besides_us};
}

TEST(NodeRow, ChoosesTheRateAtWhichSendingTakesItsShare) {
  for (const double bytes : {200.0, 1e5, 1e7}) {
    for (const double besides : {0.0, 300.0}) {
      std::vector<std::string> rates;
      const auto chosen = ChooseLinkRate(static_cast<int64_t>(bytes), {}, [&](const auto& rate) {
        rates.push_back(rate);
        return OnLink(rate, bytes, besides, 1.4);
      });
      ASSERT_TRUE(chosen.ok()) << chosen.status();
      EXPECT_GE(chosen->parts.share(), 0.6);
      EXPECT_LE(chosen->parts.share(), 1);
      EXPECT_EQ(rates.front(), "none");
      EXPECT_EQ(rates.back(), chosen->rate);
    }
  }
  const auto exact =
      ChooseLinkRate(100000, {}, [](const std::string& rate) { return OnLink(rate, 1e5, 0, 1); });
  EXPECT_EQ(exact->rate, "1000mbit");  // 8e5 bits in 800 us
}

TEST(NodeRow, SaysWhereNoRateDoes) {
  const auto slow = [](const std::string&) { return StepParts{1000, 1500}; };
  EXPECT_EQ(ChooseLinkRate(1, {}, slow).status(),
            absl::FailedPreconditionError("links without a limit: sending takes 1.5e+03 us, "
                                          "computation 1e+03 us, want at most 1 of it"));
  const auto fast = [](const std::string&) { return StepParts{1000, 5}; };
  EXPECT_EQ(ChooseLinkRate(1, {.tries = 2}, fast).status(),
            absl::FailedPreconditionError(
                "links at 2 rates: sending took 0.005 of computation in the end, want 0.6 to 1"));
}

TEST(NodeRow, BoundsAStepByTheProcessorAndTheLink) {
  EXPECT_EQ(OverlapBound({1000, 800}, 100), 1100);
  EXPECT_EQ(OverlapBound({1000, 1800}, 100), 1800);
}

}  // namespace
}  // namespace coconet::bench
