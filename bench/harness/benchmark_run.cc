#include "bench/harness/benchmark_run.h"

#include <fstream>
#include <regex>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autotune/store/database.h"
#include "coconet/base/status.h"
#include "gtest/gtest.h"

namespace coconet::bench {
namespace {

absl::StatusOr<int64_t> Count(const std::string& json, const std::string& condition) {
  ASSIGN_OR_RETURN(Database db,
                   Database::Open(testing::TempDir() + "/json.db", Access::kReadWrite));
  const std::string sql =
      "SELECT COUNT(*) FROM json_each(?1) WHERE " +
      std::regex_replace(condition, std::regex(R"(\$\.\w+)"), "json_extract(value, '$&')");
  ASSIGN_OR_RETURN(Statement statement, db.Prepare(sql));
  statement.Bind(json);
  RETURN_IF_ERROR(statement.Step().status());
  return statement.Int(0);
}

}  // namespace

Finished RunBenchmark(const std::string& program, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), absl::StrCat("bench/", program));
  const auto run = RunProcess({.argv = arguments,
                               .input = {},
                               .environment = {"BUILD_WORKING_DIRECTORY=" + testing::TempDir()},
                               .time_limit_s = 280});
  EXPECT_TRUE(run.ok()) << run.status();
  return run.value_or(Finished());
}

void ExpectRefusal(const std::string& program, std::vector<std::string> arguments,
                   const std::string& message) {
  const Finished run = RunBenchmark(program, std::move(arguments));
  EXPECT_EQ(run.code, 2);
  const std::string name = program.substr(program.rfind('/') + 1);
  EXPECT_EQ(run.output, absl::StrCat(name, ": ", message, "\n"));
}

int64_t RowsOf(const std::string& file, const std::string& condition) {
  std::stringstream json;
  json << std::ifstream(testing::TempDir() + "/" + file).rdbuf();
  const absl::StatusOr<int64_t> count = Count(json.str(), condition);
  EXPECT_TRUE(count.ok()) << condition << ": " << count.status() << "\n" << json.str();
  return count.value_or(-1);
}

}  // namespace coconet::bench
