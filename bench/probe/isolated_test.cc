#include "bench/probe/isolated.h"

#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "bench/probe/probe_row.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet::bench {
namespace {

using ::testing::HasSubstr;

Row ResultOf(const ProbeLine& line) {
  return RowOf(line, 2)
      .Set("us", 12.5 * line.number)
      .Set("registers", "32")
      .Set("kernels", JsonList({JsonObject().Set("kernel", "fuse(C)").Text()}));
}

/// What a process does: `meet` is called with the number of each line that has begun.
auto EachLine(void (*meet)(int number)) {
  return [meet](absl::Span<const ProbeLine> left, const Listener& listener) {
    for (const ProbeLine& line : left) {
      listener.begins();
      meet(line.number);
      listener.is_done(ResultOf(line));
    }
  };
}

/// Runs `count` lines; returns their rows.
std::vector<Row> RunLines(int count,
                          absl::FunctionRef<void(absl::Span<const ProbeLine>, const Listener&)> run,
                          Isolation isolation = {}) {
  std::vector<ProbeLine> lines(count);
  for (int i = 0; i < count; ++i) lines[i].number = i + 1;
  std::vector<Row> rows;
  isolation.is_done = [&, is_done = isolation.is_done](const Row& row) {
    rows.push_back(row);
    if (is_done) is_done(row);
  };
  RunIsolated(lines, run, isolation);
  EXPECT_EQ(rows.size(), lines.size());
  return rows;
}

TEST(ProbeRow, ComesBackFromItsBytes) {
  const Row row = ResultOf({.number = 3, .text = "adam | N=4"});
  const absl::StatusOr<Row> back = DecodeRow(Encode(row));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(Encode(*back), Encode(row));
  EXPECT_THAT(back->Json().text, HasSubstr("\"registers\": \"32\""));
  EXPECT_THAT(back->Json().text, HasSubstr("{\"kernel\": \"fuse(C)\"}"));
  EXPECT_THAT(back->Json().text, HasSubstr("\"verified\": null, \"us\": 37.5"));
  const std::string bytes = Encode(row);
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(DecodeRow(bytes.substr(0, length)).ok()) << length;
}

TEST(RunIsolated, GoesOnAfterALineThatEndsItsProcess) {
  const std::vector<Row> rows = RunLines(5, EachLine([](int number) {
                                           if (number == 2) raise(SIGSEGV);
                                           if (number == 4) _exit(7);
                                         }));
  for (int at : {0, 2, 4}) EXPECT_EQ(rows[at].Number("us"), 12.5 * (at + 1));
  EXPECT_THAT(TextOf(rows[1], "error"), HasSubstr("ended by signal 11"));
  EXPECT_THAT(TextOf(rows[3], "error"), HasSubstr("exit code 7"));
}

TEST(RunIsolated, EndsALineThatTakesTooLong) {
  const std::vector<Row> rows = RunLines(
      2, EachLine([](int number) { sleep(number == 1 ? 1000 : 0); }), {.line_seconds = 0.5});
  EXPECT_THAT(TextOf(rows[0], "error"), HasSubstr("not done after 0.5 s (--line-seconds)"));
  EXPECT_EQ(TextOf(rows[1], "error"), "");
}

TEST(RunIsolated, SaysWhatDidNotRunWhenInterrupted) {
  bool stops = false;
  const std::vector<Row> rows = RunLines(
      2,
      [](absl::Span<const ProbeLine> left, const Listener& listener) {
        listener.begins();
        listener.is_done(ResultOf(left[0]));
      },
      {.interrupted = [&] { return stops; }, .is_done = [&](const Row&) { stops = true; }});
  EXPECT_EQ(TextOf(rows[0], "error"), "");
  EXPECT_EQ(TextOf(rows[1], "error"), "interrupted before it ran");
}

TEST(RunIsolated, BlamesTheFirstLineOfAProcessThatTellsNothing) {
  const std::vector<Row> rows =
      RunLines(2, [](absl::Span<const ProbeLine> left, const Listener& listener) {
        if (left[0].number == 1) _exit(3);
        listener.is_done(ResultOf(left[0]));
      });
  EXPECT_THAT(TextOf(rows[0], "error"), HasSubstr("exit code 3"));
  EXPECT_EQ(TextOf(rows[1], "error"), "");
}

}  // namespace
}  // namespace coconet::bench
