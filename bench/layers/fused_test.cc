// The benchmark runs to its end, its sides agree, and it writes the form that other programs read.
// Tests do not check times.
#include <string>

#include "bench/harness/benchmark_run.h"
#include "gtest/gtest.h"

namespace coconet::bench {
namespace {

TEST(Fused, WritesRowsOfTheAgreedForm) {
  const absl::StatusOr<Finished> run = RunBenchmark(
      "layers/fused",
      {"--quick", "--case=low", "--ranks=2", "--indices=zipf", "--budget=2", "--json=fused.json"});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->code, 0) << run->output;
  const JsonReader json = JsonReader::OfFile("fused.json");
  ASSERT_EQ(json.Ask("SELECT json_valid(?1)"), 1);
  const std::string rows =
      "SELECT COUNT(*) FROM json_each(?1) WHERE json_extract(value, '$.case') = 'low'"
      " AND json_extract(value, '$.tables') = 16 AND json_extract(value, '$.error') IS NULL"
      " AND json_extract(value, '$.ours_us') > 0 AND json_extract(value, '$.pooling_us') > 0"
      " AND json_extract(value, '$.imbalance') >= 1"
      " AND abs(json_extract(value, '$.baseline_us') / json_extract(value, '$.ours_us')"
      " / json_extract(value, '$.ratio') - 1) < 1e-3";
  EXPECT_EQ(json.Ask(rows), 2) << run->output;  // f32 and bf16
  const std::string orders =
      "SELECT COUNT(*) FROM json_each(?1) WHERE json_extract(value, '$.remote_first_us') > 0"
      " AND abs(json_extract(value, '$.plain_order_us') / json_extract(value, '$.remote_first_us')"
      " / json_extract(value, '$.order_ratio') - 1) < 1e-3"
      " AND json_extract(value, '$.ours_us') = CASE json_extract(value, '$.order_picked')"
      " WHEN 'plain' THEN json_extract(value, '$.plain_order_us')"
      " WHEN 'remote first' THEN json_extract(value, '$.remote_first_us') END";
  const std::string fused =
      "SELECT COUNT(*) FROM json_each(?1) WHERE json_extract(value, '$.variant') LIKE "
      "'fuse(C, A2A)%'";
  EXPECT_EQ(json.Ask(orders), json.Ask(fused)) << run->output;
}

TEST(Fused, WritesRowsOfPoolingWithoutFbgemm) {
  const absl::StatusOr<Finished> run =
      RunBenchmark("layers/fused", {"--quick", "--case=pooling", "--indices=zipf", "--budget=1",
                                    "--fbgemm=/nowhere", "--json=pooling.json"});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->code, 0) << run->output;
  const JsonReader json = JsonReader::OfFile("pooling.json");
  const std::string rows =
      "SELECT COUNT(*) FROM json_each(?1) WHERE json_extract(value, '$.case') = 'pooling'"
      " AND json_extract(value, '$.error') IS NULL AND json_extract(value, '$.ours_us') > 0"
      " AND json_extract(value, '$.loop_us') > 0 AND json_extract(value, '$.ranks') = 1"
      " AND json_extract(value, '$.fbgemm') LIKE 'absent: %/nowhere/torch/lib/libc10.so%'"
      " AND json_extract(value, '$.fbgemm_ratio') IS NULL";
  EXPECT_EQ(json.Ask(rows), 2) << run->output;  // f32 and bf16
}

TEST(Fused, WritesRowsOfDecode) {
  const absl::StatusOr<Finished> run =
      RunBenchmark("layers/fused", {"--quick", "--case=decode", "--ranks=2", "--dtype=bf16",
                                    "--budget=1", "--json=decode.json"});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->code, 0) << run->output;
  const JsonReader json = JsonReader::OfFile("decode.json");
  const std::string rows =
      "SELECT COUNT(*) FROM json_each(?1) WHERE json_extract(value, '$.case') = 'decode'"
      " AND json_extract(value, '$.error') IS NULL AND json_extract(value, '$.ours_us') > 0"
      " AND json_extract(value, '$.baseline_us') > 0 AND json_extract(value, '$.reduce_us') > 0"
      " AND json_extract(value, '$.bound_us') >= json_extract(value, '$.peak_us')"
      " AND json_extract(value, '$.copies') = 1 AND json_extract(value, '$.peer') = 'absent'";
  EXPECT_EQ(json.Ask(rows), 6) << run->output;  // 1, 4 and 16 tokens, twice
}

TEST(Fused, WritesRowsOfEmbeddingsOnTwoNodes) {
  const absl::StatusOr<Finished> run =
      RunBenchmark("layers/fused", {"--quick", "--case=nodes", "--dtype=bf16", "--indices=uniform",
                                    "--budget=1", "--json=nodes.json"});
  ASSERT_TRUE(run.ok()) << run.status();
  // Network namespaces take root or user namespaces (bench/cluster/run.sh).
  if (run->output.find("not here: ") != std::string::npos) GTEST_SKIP() << run->output;
  EXPECT_EQ(run->code, 0) << run->output;
  const JsonReader json = JsonReader::OfFile("nodes.json");
  const std::string rows =
      "SELECT COUNT(*) FROM json_each(?1) WHERE json_extract(value, '$.case') = 'nodes'"
      " AND json_extract(value, '$.error') IS NULL AND json_extract(value, '$.ours_us') > 0"
      " AND json_extract(value, '$.sending_us') > 0 AND json_extract(value, '$.bytes') > 0"
      " AND json_extract(value, '$.bound_us') >= json_extract(value, '$.computation_us')";
  EXPECT_EQ(json.Ask(rows), 1) << run->output;
}

TEST(Fused, WritesRowsOfAMixtureOfExperts) {
  const absl::StatusOr<Finished> run = RunBenchmark(
      "layers/fused", {"--quick", "--case=moe", "--dtype=bf16", "--budget=1", "--json=moe.json"});
  ASSERT_TRUE(run.ok()) << run.status();
  // Network namespaces take root or user namespaces (bench/cluster/run.sh).
  if (run->output.find("not here: ") != std::string::npos) GTEST_SKIP() << run->output;
  EXPECT_EQ(run->code, 0) << run->output;
  const JsonReader json = JsonReader::OfFile("moe.json");
  const std::string rows =
      "SELECT COUNT(*) FROM json_each(?1) WHERE json_extract(value, '$.case') = 'moe'"
      " AND json_extract(value, '$.error') IS NULL AND json_extract(value, '$.ours_us') > 0"
      " AND json_extract(value, '$.sending_us') > 0 AND json_extract(value, '$.capacity') > 0"
      " AND json_extract(value, '$.bound_us') >= json_extract(value, '$.computation_us')";
  EXPECT_EQ(json.Ask(rows), 2) << run->output;  // balanced and skewed
}

TEST(Fused, SaysThatAPeerIsNotThere) {
  const absl::StatusOr<Finished> run =
      RunBenchmark("layers/fused", {"--quick", "--case=decode", "--ranks=2", "--dtype=f32",
                                    "--peer=/none/peer.so", "--json=peer.json"});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->code, 1) << run->output;
  EXPECT_EQ(JsonReader::OfFile("peer.json")
                .Ask("SELECT COUNT(*) FROM json_each(?1) WHERE json_extract(value, '$.error') LIKE "
                     "'%--peer: /none/peer.so: %'"),
            6)
      << run->output;
}

TEST(Fused, NamesWhatItDoesNotKnow) {
  const absl::StatusOr<Finished> run = RunBenchmark("layers/fused", {"--case=dlrn"});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->code, 2);
  EXPECT_EQ(run->output,
            "fused: --case: want dlrm, low, micro, pooling, nodes, decode or moe, have dlrn\n");
}

}  // namespace
}  // namespace coconet::bench
