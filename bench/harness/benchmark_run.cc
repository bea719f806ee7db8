#include "bench/harness/benchmark_run.h"

#include <fstream>
#include <regex>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "autotune/store/database.h"
#include "coconet/base/status.h"
#include "gtest/gtest.h"

namespace coconet::bench {

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

JsonReader JsonReader::OfFile(const std::string& name) {
  std::stringstream text;
  text << std::ifstream(testing::TempDir() + "/" + name).rdbuf();
  JsonReader reader(text.str());
  EXPECT_EQ(reader.Ask("SELECT json_valid(?1)"), 1) << name;
  return reader;
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
