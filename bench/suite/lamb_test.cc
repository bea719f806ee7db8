// The benchmark runs to its end and writes the form that other programs read. Tests do
// not check times.

#include <string>

#include "absl/strings/str_cat.h"
#include "bench/harness/benchmark_run.h"
#include "gtest/gtest.h"

namespace coconet::bench {
namespace {

TEST(Lamb, WritesRowsOfTheAgreedForm) {
  const Finished run = RunBenchmark("suite/lamb", {"--quick", "--list=@gpt2/65536", "--budget=1",
                                                   "--json=lamb.json", "--markdown=lamb.md"});
  EXPECT_EQ(run.code, 0) << run.output;

  const std::string rows =
      "$.tensors = 148 AND $.list = '@gpt2/65536' AND $.error IS NULL AND $.ours_us > 0";
  EXPECT_EQ(RowsOf("lamb.json", rows), 3) << run.output;
  EXPECT_EQ(RowsOf("lamb.json", rows + " AND $.case = 'lamb' AND $.vs_default > 0"
                                       " AND abs($.baseline_us / $.ours_us / $.ratio - 1) < 1e-3"),
            1);
  // Schedules are the same, without protocol and numbers.
  const std::string flat =
      " AND substr($.variant, 1, instr($.variant, ' (')) ="
      " substr($.flat_variant, 1, instr($.flat_variant, ' ('))"
      " AND abs($.flat_us / $.ours_us / $.vs_flat - 1) < 1e-3";
  for (const char* name : {"lamb_flat", "adam_flat"})
    EXPECT_EQ(RowsOf("lamb.json", absl::StrCat(rows, " AND $.case = '", name, "'", flat)), 1);
}

TEST(Lamb, NamesWhatItDoesNotKnow) {
  ExpectRefusal("suite/lamb", {"--list=@bert-tiny"},
                "--list: list \"@bert-tiny\": want a model's, such as @bert-large or "
                "@bert-large/64");
}

}  // namespace
}  // namespace coconet::bench
