#include "autotune/report/html.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Html, EscapesTextsAndAttributes) {
  EXPECT_EQ(Words("<b>&\"'").text(), "&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(Element("a", {{"href", "\"><script>"}}, "x < y").text(),
            "<a href=\"&quot;&gt;&lt;script&gt;\">x &lt; y</a>");
}

TEST(Html, NestsAndEndsElements) {
  EXPECT_EQ(Element("p", {}, {Words("a"), Element("b", {}, "c")}).text(), "<p>a<b>c</b></p>");
  EXPECT_EQ(Element("input", {{"type", "search"}}).text(), "<input type=\"search\">");
}

TEST(HtmlTable, AlignsNumbersAndSortsByThem) {
  const std::string table =
      HtmlTable("Times", {"what", "#time"}, {{{Words("a")}, {Words("1 ms"), "1000"}}}, true).text();
  EXPECT_THAT(table, HasSubstr("<td class=\"number\" data-sort=\"1000\">1 ms</td>"));
  EXPECT_THAT(table, HasSubstr("tabindex=\"0\" role=\"region\" aria-label=\"Times\""));
  EXPECT_THAT(table, HasSubstr("<button"));
  EXPECT_THAT(HtmlTable("Times", {"a"}, {}).text(), Not(HasSubstr("<button")));
}

}  // namespace
}  // namespace coconet
