// The benchmark runs to its end and writes the form that other programs read. Tests do
// not check times.

#include <string>

#include "bench/harness/benchmark_run.h"
#include "gtest/gtest.h"

namespace coconet::bench {
namespace {

TEST(Lamb, WritesRowsOfTheAgreedForm) {
  const absl::StatusOr<Finished> run = RunBenchmark(
      "suite/lamb",
      {"--quick", "--list=@gpt2/65536", "--budget=1", "--json=lamb.json", "--markdown=lamb.md"});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->code, 0) << run->output;

  const JsonReader json = JsonReader::OfFile("lamb.json");
  ASSERT_EQ(json.Ask("SELECT json_valid(?1)"), 1);
  const std::string rows =
      "SELECT COUNT(*) FROM json_each(?1) WHERE json_extract(value, '$.tensors') = 148"
      " AND json_extract(value, '$.list') = '@gpt2/65536' AND json_extract(value, '$.error') IS "
      "NULL"
      " AND json_extract(value, '$.ours_us') > 0";
  EXPECT_EQ(json.Ask(rows), 3) << run->output;
  EXPECT_EQ(
      json.Ask(rows +
               " AND json_extract(value, '$.case') = 'lamb'"
               " AND abs(json_extract(value, '$.baseline_us') / json_extract(value, '$.ours_us')"
               " / json_extract(value, '$.ratio') - 1) < 1e-3 AND json_extract(value, "
               "'$.vs_default') > 0"),
      1);
  const auto schedule = [](std::string variant) {  // without protocol and numbers
    variant = "json_extract(value, '$." + variant + "')";
    return "substr(" + variant + ", 1, instr(" + variant + ", ' ('))";
  };
  for (const char* name : {"lamb_flat", "adam_flat"}) {
    EXPECT_EQ(
        json.Ask(rows + " AND json_extract(value, '$.case') = '" + name + "' AND " +
                 schedule("variant") + " = " + schedule("flat_variant") +
                 " AND abs(json_extract(value, '$.flat_us') / json_extract(value, '$.ours_us')"
                 " / json_extract(value, '$.vs_flat') - 1) < 1e-3"),
        1);
  }
}

TEST(Lamb, NamesWhatItDoesNotKnow) {
  const absl::StatusOr<Finished> run = RunBenchmark("suite/lamb", {"--list=@bert-tiny"});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->code, 2);
  EXPECT_EQ(
      run->output,
      "lamb: --list: list \"@bert-tiny\": want a model's, such as @bert-large or @bert-large/64\n");
}

}  // namespace
}  // namespace coconet::bench
