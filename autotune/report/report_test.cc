#include "autotune/report/report.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "autotune/report/testing/sample_report.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(ReportHtml, NeedsNoOtherFileAndNoNetwork) {
  const std::string page = ReportHtml(SampleReport());
  for (const char* loads : {"http:", "https:", "src=", "<link", "@import", "url("})
    EXPECT_THAT(page, Not(HasSubstr(loads)));
  EXPECT_THAT(page, HasSubstr("default-src &#39;none&#39;"));
}

TEST(ReportHtml, EscapesAllData) {
  const std::string page = ReportHtml(SampleReport());
  EXPECT_THAT(page, Not(HasSubstr(kHostileName)));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;throw new Error(&#39;ran&#39;)&lt;/script&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("<b>a device</b>")));
  EXPECT_THAT(page, Not(HasSubstr("</td><b>bold")));
  EXPECT_EQ(Count(page, "<script>"), 1) << "its own";
}

TEST(ReportHtml, SaysWhyVariantsLostInWholeWords) {
  const std::string page = ReportHtml(SampleReport());
  EXPECT_THAT(page, HasSubstr("not tried: neither promising nor drawn"));
  EXPECT_THAT(
      page, HasSubstr(absl::StrCat("compile error: kernel.cc:17: error: ", std::string(300, 'x'))));
  EXPECT_THAT(page, HasSubstr("as long as the best"));
}

TEST(ReportHtml, ShowsEachRecordCrossoversAndPredictions) {
  const Report report = SampleReport();
  const std::string page = ReportHtml(report);
  for (const ReportRecord& of : report.records)
    EXPECT_THAT(page, HasSubstr(absl::StrCat("id=\"record-", of.record.key, "\"")));
  EXPECT_GE(Count(page, "class=\"crossing\""), 2);
  EXPECT_THAT(page, HasSubstr("the best effective bandwidth seen"));
  EXPECT_THAT(page, HasSubstr("3000 predictions"));
  EXPECT_THAT(page, HasSubstr("of simulated GPUs, which say nothing of real ones"));
}

TEST(ReportHtml, OfAnEmptyCacheSaysSo) {
  const std::string page = ReportHtml({.cache = "tuning.db", .which = "all"});
  EXPECT_THAT(page, HasSubstr("There is no record"));
  EXPECT_THAT(page, HasSubstr("The cache has no predictions"));
}

TEST(ReportJson, HasTheNumbersOfThePage) {
  const std::string json = ReportJson(SampleReport());
  for (const char* field : {"\"speedup_low\": ", "\"crossovers\": [", "\"predicted_us\": ",
                            "\"reason\": \"not tried: neither promising nor drawn\"",
                            "\"limit_us\": ", "\"device from rank 0\": \"AMD EPYC"})
    EXPECT_THAT(json, HasSubstr(field));
}

TEST(PlanHtml, NamesLayersOnTheLanes) {
  const std::string page = PlanHtml("A plan", {"of <four> ranks"}, SamplePlan());
  for (const char* words : {"computation", "communication", ">h0", "of &lt;four&gt; ranks",
                            "as written, combined to 30 MiB"})
    EXPECT_THAT(page, HasSubstr(words));
  EXPECT_GE(Count(page, "class=\"task "), 20);
}

}  // namespace
}  // namespace coconet
