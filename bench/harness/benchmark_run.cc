#include "bench/harness/benchmark_run.h"

#include <fstream>
#include <regex>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "autotune/store/database.h"
#include "coconet/base/status.h"
#include "gtest/gtest.h"

namespace coconet::bench {

absl::StatusOr<Finished> RunBenchmark(const std::string& program,
                                      std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), absl::StrCat("bench/", program));
  return RunProcess({.argv = arguments,
                     .input = {},
                     .environment = {"BUILD_WORKING_DIRECTORY=" + testing::TempDir()},
                     .time_limit_s = 280});
}

JsonReader JsonReader::OfFile(const std::string& name) {
  std::stringstream text;
  text << std::ifstream(testing::TempDir() + "/" + name).rdbuf();
  return JsonReader(text.str());
}

int64_t JsonReader::Ask(const std::string& sql) const {
  const absl::StatusOr<int64_t> answer = TryAsk(sql);
  EXPECT_TRUE(answer.ok()) << sql << ": " << answer.status() << "\n" << json_;
  return answer.value_or(-1);
}

int64_t JsonReader::Rows(const std::string& condition) const {
  return Ask("SELECT COUNT(*) FROM json_each(?1) WHERE " +
             std::regex_replace(condition, std::regex(R"(\$\.\w+)"), "json_extract(value, '$&')"));
}

absl::StatusOr<int64_t> JsonReader::TryAsk(const std::string& sql) const {
  ASSIGN_OR_RETURN(Database db,
                   Database::Open(testing::TempDir() + "/json.db", Access::kReadWrite));
  ASSIGN_OR_RETURN(Statement statement, db.Prepare(sql));
  statement.Bind(json_);
  ASSIGN_OR_RETURN(const bool found, statement.Step());
  return found ? statement.Int(0) : -1;
}

}  // namespace coconet::bench
