// The benchmark runs to its end and writes the form that other programs read. Tests do
// not check times.

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "bench/harness/benchmark_run.h"
#include "gtest/gtest.h"

namespace coconet::bench {
namespace {

TEST(DataParallel, WritesRowsOfTheAgreedForm) {
  const absl::StatusOr<Finished> run = RunBenchmark(
      "suite/data_parallel",
      {"--quick", "--case=dispatch,adam", "--N=257", "--budget=1", "--json=rows.json"});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->code, 0) << run->output;

  const JsonReader json = JsonReader::OfFile("rows.json");
  ASSERT_EQ(json.Ask("SELECT json_valid(?1)"), 1);
  EXPECT_EQ(json.Ask("SELECT json_array_length(?1)"), 5)
      << run->output;  // two of dispatch, three of adam
  for (const char* type : {"text $.case", "integer $.ranks", "integer $.n", "text $.dtype",
                           "real $.ours_us", "text $.cpu", "text $.date", "text $.compiler"}) {
    const std::string name = std::strchr(type, ' ') + 1, want(type, std::strchr(type, ' '));
    EXPECT_EQ(json.Ask(absl::StrCat("SELECT COUNT(*) FROM json_each(?1) WHERE json_type(value, '",
                                    name, "') = '", want, "'")),
              5)
        << type;
  }
  const std::string adam =
      "SELECT COUNT(*) FROM json_each(?1) WHERE json_extract(value, '$.case') = 'adam'";
  EXPECT_EQ(json.Ask(adam + " AND json_extract(value, '$.n') = 257"), 3);
  EXPECT_EQ(
      json.Ask(adam +
               " AND abs(json_extract(value, '$.baseline_us') / json_extract(value, '$.ours_us')"
               " / json_extract(value, '$.ratio') - 1) < 1e-3"),
      3);
  EXPECT_EQ(json.Ask(adam + " AND json_extract(value, '$.vs_default') > 0"), 3);
}

TEST(DataParallel, NamesWhatItDoesNotKnow) {
  const absl::StatusOr<Finished> run = RunBenchmark("suite/data_parallel", {"--case=adem"});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->code, 2);
  EXPECT_EQ(run->output,
            "data_parallel: --case: no case \"adem\"; there are first_sweep, dispatch, steps, "
            "warm_start, adam, "
            "adam_threads\n");
}

TEST(DataParallel, WantsASize) {
  for (const char* size : {"0", "16Pi", ""}) {
    const absl::StatusOr<Finished> run =
        RunBenchmark("suite/data_parallel", {absl::StrCat("--N=64,", size)});
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_EQ(run->code, 2);
    EXPECT_EQ(run->output,
              absl::StrCat("data_parallel: --N: want a size such as 4096 or 16Mi, have \"", size,
                           "\"\n"));
  }
}

}  // namespace
}  // namespace coconet::bench
