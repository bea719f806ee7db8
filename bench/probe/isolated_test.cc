#include "bench/probe/isolated.h"

#include <signal.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet::bench {
namespace {

using ::testing::HasSubstr;

ProbeResult ResultOf(int line) {
  ProbeResult result;
  result.line = line;
  result.text = "adam | N=4";
  result.us = 12.5 * line;
  result.kernels = {{.label = "fuse(C)",
                     .blocks = 2,
                     .threads = 64,
                     .has_footprint = true,
                     .registers = 32,
                     .resident_blocks = 4,
                     .shared_bytes = 128}};
  result.launches_us = {{"fuse(C)", 3.5}};
  return result;
}

TEST(ProbeResult, ComesBackFromItsBytes) {
  const absl::StatusOr<ProbeResult> back = DecodeProbeResult(Encode(ResultOf(3)));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(RowOf(*back).Json().text, RowOf(ResultOf(3)).Json().text);
  EXPECT_THAT(RowOf(*back).Json().text, HasSubstr("\"registers\": \"32\""));
  const std::string bytes = Encode(ResultOf(3));
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(DecodeProbeResult(bytes.substr(0, length)).ok()) << length;
}

TEST(RunIsolated, GoesOnAfterALineThatEndsItsProcess) {
  int told = 0;
  const std::vector<ProbeResult> results =
      RunIsolated({1, 2, 3, 4, 5},
                  [](const std::vector<int>& left, Teller& teller) {
                    for (int line : left) {
                      teller.Begins(line);
                      if (line == 2) raise(SIGSEGV);
                      if (line == 4) _exit(7);
                      teller.IsDone(ResultOf(line));
                    }
                  },
                  {.is_done = [&](const ProbeResult&) { ++told; }});
  ASSERT_EQ(results.size(), 5u);
  EXPECT_EQ(told, 5);
  for (int at : {0, 2, 4}) EXPECT_EQ(results[at].us, 12.5 * (at + 1));
  EXPECT_THAT(results[1].error, HasSubstr("ended by signal 11"));
  EXPECT_THAT(results[3].error, HasSubstr("exit code 7"));
}

TEST(RunIsolated, EndsALineThatTakesTooLong) {
  const std::vector<ProbeResult> results =
      RunIsolated({1, 2},
                  [](const std::vector<int>& left, Teller& teller) {
                    for (int line : left) {
                      teller.Begins(line);
                      if (line == 1) sleep(1000);
                      teller.IsDone(ResultOf(line));
                    }
                  },
                  {.line_seconds = 0.5});
  EXPECT_THAT(results[0].error, HasSubstr("not done after 0.5 s (--line-seconds)"));
  EXPECT_EQ(results[1].error, "");
}

TEST(RunIsolated, SaysWhatDidNotRunWhenInterrupted) {
  bool stops = false;
  const std::vector<ProbeResult> results = RunIsolated(
      {1, 2},
      [](const std::vector<int>& left, Teller& teller) {
        teller.Begins(left[0]);
        teller.IsDone(ResultOf(left[0]));
      },
      {.interrupted = [&] { return stops; }, .is_done = [&](const ProbeResult&) { stops = true; }});
  EXPECT_EQ(results[0].error, "");
  EXPECT_EQ(results[1].error, "interrupted before it ran");
}

TEST(RunIsolated, BlamesTheFirstLineOfAProcessThatTellsNothing) {
  const std::vector<ProbeResult> results =
      RunIsolated({1, 2},
                  [](const std::vector<int>& left, Teller& teller) {
                    if (left[0] == 1) _exit(3);
                    teller.IsDone(ResultOf(2));
                  },
                  {});
  EXPECT_THAT(results[0].error, HasSubstr("exit code 3"));
  EXPECT_EQ(results[1].error, "");
}

}  // namespace
}  // namespace coconet::bench
