#include "bench/harness/row.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace coconet::bench {
namespace {

TEST(Row, PrintsAsJson) {
  Row row;
  row.Set("case", "a \"b\"\n")
      .Set("n", 7)
      .Set("ours_us", 1.5)
      .Set("limit_us", nullptr)
      .Set("met", true);
  EXPECT_EQ(Json({row, Row().Set("n", int64_t{1} << 40)}),
            "[\n{\"case\": \"a \\\"b\\\"\\u000a\", \"n\": 7, \"ours_us\": 1.5, \"limit_us\": null, "
            "\"met\": true},\n"
            "{\"n\": 1099511627776}\n]\n");
}

TEST(Row, SaysWhichBarsItMisses) {
  Row row;
  row.Set("ratio", 2.5).Set("ours_us", 0.31).SetBars(BarsOf("ratio >= 2.5, ours_us <= 0.3"));
  EXPECT_EQ(std::get<std::string>(row.Get("bar")), "ratio >= 2.5, ours_us <= 0.3");
  EXPECT_EQ(std::get<std::string>(row.Get("missed")), "ours_us");
  EXPECT_FALSE(std::get<bool>(row.Get("met")));
}

TEST(Row, MissesABarWithoutAValue) {
  Row row;
  row.Set("ours_us", nullptr).SetBars({Bar{"ours_us", Bar::Side::kAtMost, 1}});
  EXPECT_FALSE(std::get<bool>(row.Get("met")));
}

TEST(Row, HasNoVerdictWithoutABar) {
  Row row;
  row.SetBars({});
  EXPECT_EQ(row.Get("met"), Value(nullptr));
}

std::vector<Column> Columns() { return ColumnsOf("n|count, time|time|ours_us"); }

TEST(Column, HasTheTextOfAField) {
  Row row;
  row.Set("case", "adam").Set("ranks", 2).Set("ours_us", 1500.0).Set("of_limit", 0.5);
  const auto text = [&](absl::string_view column) { return ColumnsOf(column)[0].cell(row); };
  EXPECT_EQ(text("case"), "adam");
  EXPECT_EQ(text("ranks"), "2");
  EXPECT_EQ(text("ours|time"), "1.5 ms");
  EXPECT_EQ(text("took|s|ranks"), "2 s");
  EXPECT_EQ(text("of limit|ratio"), "0.50");
  EXPECT_EQ(text("share|100*%.1f%%|of_limit"), "50.0%");
  EXPECT_EQ(text("half|%.2f s|of_limit"), "0.50 s");
  EXPECT_EQ(text("fast|yes|met"), "NO");
  EXPECT_EQ(text("met"), "");
  const Column computed[] = {
      {"twice", [](const Row& r) { return absl::StrCat(2 * r.Number("ranks")); }}};
  EXPECT_EQ(ColumnsOf("case, twice|*", computed)[1].cell(row), "4");
  row.Set("error", "no\nmore");
  EXPECT_EQ(text("case|result"), "FAILED: no");
}

TEST(Table, AlignsColumns) {
  const Row rows[] = {Row().Set("n", 16 << 20).Set("ours_us", 12900.0), Row().Set("n", 5)};
  EXPECT_EQ(Table(rows, Columns()), "n     time\n16Mi  12.9 ms\n5\n");
}

TEST(Table, EscapesBarsInMarkdown) {
  const Row rows[] = {Row().Set("n", 1024).Set("ours_us", 0.25)};
  const Column bars[] = {{"a", [](const Row&) { return std::string("x|y"); }}};
  EXPECT_EQ(MarkdownTable(rows, bars), "| a |\n| --- |\n| x\\|y |\n");
}

TEST(Table, PrintsAsMarkdown) {
  const Row rows[] = {Row().Set("n", 1024).Set("ours_us", 0.25)};
  EXPECT_EQ(MarkdownTable(rows, Columns()), "| n | time |\n| --- | --- |\n| 1Ki | 0.25 us |\n");
}

}  // namespace
}  // namespace coconet::bench
