#include "coconet/base/chrome_trace.h"

#include "gtest/gtest.h"

namespace coconet {
namespace {

TEST(ChromeTrace, KeepsNanosecondsFarFromTheBegin) {
  EXPECT_EQ(TextOf(ChromeEvent{.name = "a",
                               .category = "kernel",
                               .begin_us = 12345678901.125,
                               .us = 2,
                               .lane = {3, 1}})
                .text,
            R"({"name": "a", "cat": "kernel", "ph": "X", "ts": 12345678901.125, "dur": 2, )"
            R"("pid": 3, "tid": 1})");
}

TEST(ChromeTrace, HasArgumentsAndNames) {
  const ChromeEvent event{
      .name = "\"a\"", .category = "c", .args = JsonObject().Set("Group size", int64_t{2}).Text()};
  EXPECT_EQ(TextOf(event).text,
            R"({"name": "\"a\"", "cat": "c", "ph": "X", "ts": 0, "dur": 0, "pid": 0, "tid": 0, )"
            R"("args": {"Group size": 2}})");
  EXPECT_EQ(
      NameOfThread({0, 1}, "lane 1").text,
      R"({"name": "thread_name", "ph": "M", "pid": 0, "tid": 1, "args": {"name": "lane 1"}})");
  EXPECT_EQ(NameOfProcess(2, "rank 2").text,
            R"({"name": "process_name", "ph": "M", "pid": 2, "args": {"name": "rank 2"}})");
}

}  // namespace
}  // namespace coconet
