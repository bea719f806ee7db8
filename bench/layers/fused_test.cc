// The benchmark runs to its end, its sides agree, and it writes the form that other programs read.
// Tests do not check times.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/harness/benchmark_run.h"
#include "gtest/gtest.h"

namespace coconet::bench {
namespace {

/// A quick run of cases, and what is true of so many rows.
struct QuickRun {
  const char* name;
  std::vector<std::string> flags;
  std::string rows;
  int count;
  int code = 0;
};

void PrintTo(const QuickRun& run, std::ostream* out) { *out << run.name; }

class Fused : public testing::TestWithParam<QuickRun> {};

TEST_P(Fused, WritesRows) {
  const std::string file = absl::StrCat(GetParam().name, ".json");
  std::vector<std::string> flags = GetParam().flags;
  flags.insert(flags.end(), {"--quick", absl::StrCat("--json=", file)});
  const absl::StatusOr<Finished> run = RunBenchmark("layers/fused", flags);
  ASSERT_TRUE(run.ok()) << run.status();
  // Network namespaces take root or user namespaces (bench/cluster/run.sh).
  if (absl::StrContains(run->output, "not here: ")) GTEST_SKIP() << run->output;
  EXPECT_EQ(run->code, GetParam().code) << run->output;
  const JsonReader json = JsonReader::OfFile(file);
  ASSERT_EQ(json.Ask("SELECT json_valid(?1)"), 1);
  EXPECT_EQ(json.Rows(GetParam().rows), GetParam().count) << run->output;
  // Where ours can store in either order, both are in the row.
  const std::string orders =
      "$.remote_first_us > 0 AND abs($.plain_order_us / $.remote_first_us / $.order_ratio - 1) < "
      "1e-3 AND $.ours_us = CASE $.order_picked WHEN 'plain' THEN $.plain_order_us"
      " WHEN 'remote first' THEN $.remote_first_us END";
  EXPECT_EQ(json.Rows(orders), json.Rows("$.variant LIKE 'fuse(C, A2A)%' AND $.case = 'low'"))
      << run->output;
}

const QuickRun kRuns[] = {
    {.name = "fused",
     .flags = {"--case=low", "--ranks=2", "--indices=zipf", "--budget=2"},
     .rows = "$.case = 'low' AND $.tables = 16 AND $.error IS NULL AND $.ours_us > 0"
             " AND $.pooling_us > 0 AND $.imbalance >= 1"
             " AND abs($.baseline_us / $.ours_us / $.ratio - 1) < 1e-3",
     .count = 2},  // f32 and bf16
    {.name = "pooling",
     .flags = {"--case=pooling", "--indices=zipf", "--budget=1", "--fbgemm=/nowhere"},
     .rows = "$.case = 'pooling' AND $.error IS NULL AND $.ours_us > 0 AND $.loop_us > 0"
             " AND $.ranks = 1 AND $.fbgemm LIKE 'absent: %/nowhere/torch/lib/libc10.so%'"
             " AND $.fbgemm_ratio IS NULL",
     .count = 2},  // f32 and bf16
    {.name = "decode",
     .flags = {"--case=decode", "--ranks=2", "--dtype=bf16", "--budget=1"},
     .rows = "$.case = 'decode' AND $.error IS NULL AND $.ours_us > 0 AND $.baseline_us > 0"
             " AND $.reduce_us > 0 AND $.bound_us >= $.peak_us AND $.copies = 1"
             " AND $.peer = 'absent'",
     .count = 6},  // 1, 4 and 16 tokens, twice
    {.name = "nodes",
     .flags = {"--case=nodes", "--dtype=bf16", "--indices=uniform", "--budget=1"},
     .rows = "$.case = 'nodes' AND $.error IS NULL AND $.ours_us > 0 AND $.sending_us > 0"
             " AND $.bytes > 0 AND $.bound_us >= $.computation_us",
     .count = 1},
    {.name = "moe",
     .flags = {"--case=moe", "--dtype=bf16", "--budget=1"},
     .rows = "$.case = 'moe' AND $.error IS NULL AND $.ours_us > 0 AND $.sending_us > 0"
             " AND $.capacity > 0 AND $.bound_us >= $.computation_us",
     .count = 2},  // balanced and skewed
    {.name = "peer",
     .flags = {"--case=decode", "--ranks=2", "--dtype=f32", "--peer=/none/peer.so"},
     .rows = "$.error LIKE '%--peer: /none/peer.so: %'",
     .count = 6,
     .code = 1},
};

INSTANTIATE_TEST_SUITE_P(Cases, Fused, testing::ValuesIn(kRuns),
                         [](const auto& of) { return std::string(of.param.name); });

TEST(FusedFlags, NamesWhatItDoesNotKnow) {
  const absl::StatusOr<Finished> run = RunBenchmark("layers/fused", {"--case=dlrn"});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->code, 2);
  EXPECT_EQ(run->output,
            "fused: --case: want dlrm, low, micro, pooling, nodes, decode or moe, have dlrn\n");
}

}  // namespace
}  // namespace coconet::bench
