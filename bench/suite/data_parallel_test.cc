// The benchmark runs to its end and writes the form that other programs read. Tests do
// not check times.

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/harness/benchmark_run.h"
#include "gtest/gtest.h"

namespace coconet::bench {
namespace {

TEST(DataParallel, WritesRowsOfTheAgreedForm) {
  const Finished run = RunBenchmark(
      "suite/data_parallel",
      {"--quick", "--case=dispatch,adam", "--N=257", "--budget=1", "--json=rows.json"});
  EXPECT_EQ(run.code, 0) << run.output;

  EXPECT_EQ(RowsOf("rows.json", "true"), 5) << run.output;  // two of dispatch, three of adam
  for (const char* type : {"text: $.case", "integer: $.ranks", "integer: $.n", "text: $.dtype",
                           "text: $.cpu", "text: $.date", "text: $.compiler"}) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(type, ": ");
    EXPECT_EQ(RowsOf("rows.json", absl::StrCat("typeof(", parts.second, ") = '", parts.first, "'")),
              5)
        << type;
  }
  // JSON has one kind of number: SQLite takes a time of whole microseconds for an integer.
  EXPECT_EQ(RowsOf("rows.json", "typeof($.ours_us) IN ('integer', 'real') AND $.ours_us > 0"), 5);
  EXPECT_EQ(RowsOf("rows.json",
                   "$.case = 'adam' AND $.n = 257 AND $.vs_default > 0"
                   " AND abs($.baseline_us / $.ours_us / $.ratio - 1) < 1e-3"),
            3);
}

TEST(DataParallel, NamesWhatItDoesNotKnow) {
  ExpectRefusal(
      "suite/data_parallel", {"--case=adem"},
      "--case: want some of first_sweep, dispatch, steps, warm_start, adam, adam_threads; have "
      "adem");
}

TEST(DataParallel, WantsASize) {
  for (const char* size : {"0", "16Pi", ""}) {
    ExpectRefusal("suite/data_parallel", {absl::StrCat("--N=64,", size)},
                  absl::StrCat("--N: want a size such as 4096 or 16Mi, have \"", size, "\""));
  }
}

}  // namespace
}  // namespace coconet::bench
