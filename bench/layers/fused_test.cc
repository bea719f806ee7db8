// The benchmark runs to its end, its sides agree, and it writes the form that other programs read.
// Tests do not check times.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/harness/benchmark_run.h"
#include "gtest/gtest.h"

namespace coconet::bench {
namespace {

/// A quick run of a case, and what is true of `count` of its rows: besides `rows`, if the run
/// succeeds, that they have a time of ours and no error.
struct QuickRun {
  std::string which;  // --case
  std::vector<std::string> flags;
  std::string rows;
  int count;
  int code = 0;
};

std::string NameOf(const QuickRun& run) {
  return absl::StrCat(run.which, run.code == 0 ? "" : "_fails");
}
void PrintTo(const QuickRun& run, std::ostream* out) { *out << NameOf(run); }

class Fused : public testing::TestWithParam<QuickRun> {};

TEST_P(Fused, WritesRows) {
  const std::string file = NameOf(GetParam()) + ".json", which = GetParam().which;
  std::vector<std::string> flags = GetParam().flags;
  flags.insert(flags.end(), {"--quick", "--case=" + which, "--json=" + file});
  const Finished run = RunBenchmark("layers/fused", flags);
  // Network namespaces take root or user namespaces (bench/cluster/run.sh).
  if (absl::StrContains(run.output, "not here: ")) GTEST_SKIP() << run.output;
  EXPECT_EQ(run.code, GetParam().code) << run.output;
  const std::string timed = GetParam().code == 0 ? "$.error IS NULL AND $.ours_us > 0 AND " : "";
  EXPECT_EQ(RowsOf(file, absl::StrCat("$.case = '", which, "' AND ", timed, GetParam().rows)),
            GetParam().count)
      << run.output;
  // Where ours can store in either order, both are in the row.
  const std::string orders =
      "$.remote_first_us > 0 AND abs($.plain_order_us / $.remote_first_us / $.order_ratio - 1) < "
      "1e-3 AND $.ours_us = CASE $.order_picked WHEN 'plain' THEN $.plain_order_us"
      " WHEN 'remote first' THEN $.remote_first_us END";
  EXPECT_EQ(RowsOf(file, orders), RowsOf(file, "$.variant LIKE 'fuse(C, A2A)%' AND $.case = 'low'"))
      << run.output;
}

const QuickRun kRuns[] = {
    {.which = "low",
     .flags = {"--ranks=2", "--indices=zipf", "--budget=2"},
     .rows = "$.tables = 16 AND $.pooling_us > 0 AND $.imbalance >= 1"
             " AND abs($.baseline_us / $.ours_us / $.ratio - 1) < 1e-3",
     .count = 2},  // f32 and bf16
    {.which = "pooling",
     .flags = {"--indices=zipf", "--budget=1", "--fbgemm=/nowhere"},
     .rows = "$.loop_us > 0 AND $.ranks = 1 AND $.fbgemm_ratio IS NULL"
             " AND $.fbgemm LIKE 'absent: %/nowhere/torch/lib/libc10.so%'",
     .count = 2},  // f32 and bf16
    {.which = "decode",
     .flags = {"--ranks=2", "--dtype=bf16", "--budget=1"},
     .rows = "$.baseline_us > 0 AND $.reduce_us > 0 AND $.bound_us >= $.peak_us"
             " AND $.copies = 1 AND $.peer = 'absent'",
     .count = 6},  // 1, 4 and 16 tokens, twice
    {.which = "nodes",
     .flags = {"--dtype=bf16", "--indices=uniform", "--budget=1"},
     .rows = "$.sending_us > 0 AND $.bytes > 0 AND $.bound_us >= $.computation_us",
     .count = 1},
    {.which = "moe",
     .flags = {"--dtype=bf16", "--budget=1"},
     .rows = "$.sending_us > 0 AND $.capacity > 0 AND $.bound_us >= $.computation_us",
     .count = 2},  // balanced and skewed
    {.which = "decode",
     .flags = {"--ranks=2", "--dtype=f32", "--peer=/none/peer.so"},
     .rows = "$.error LIKE '%--peer: /none/peer.so: %'",
     .count = 6,
     .code = 1},
};

INSTANTIATE_TEST_SUITE_P(Cases, Fused, testing::ValuesIn(kRuns),
                         [](const auto& of) { return NameOf(of.param); });

TEST(FusedFlags, NamesWhatItDoesNotKnow) {
  for (const auto& [flags, error] : {
           std::pair(
               "--case=dlrn",
               "--case: want some of dlrm, low, micro, pooling, nodes, decode, moe; have dlrn"),
           {"--experts=9", "--experts: want some of 8, 64; have 9"},
           {"--local_batch=0", "--local_batch: want a number from 1 on; have 0"},
           {"--case=moe --ranks=4",
            "no row has what --case, --ranks, --dtype, --indices and --experts name: nodes and moe "
            "have 2 ranks, with --quick moe has 8 experts"},
       }) {
    ExpectRefusal("layers/fused", absl::StrSplit(flags, ' '), error);
  }
}

}  // namespace
}  // namespace coconet::bench
