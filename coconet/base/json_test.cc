#include "coconet/base/json.h"

#include <cmath>

#include "gtest/gtest.h"

namespace coconet {
namespace {

TEST(JsonObject, PrintsEachKindOfValue) {
  JsonObject object;
  object.Set("case", "a \"b\"\n\\")
      .Set("n", int64_t{1} << 40)
      .Set("us", 1.5)
      .Set("limit", nullptr)
      .Set("met", true)
      .Set("inner", JsonObject().Set("x", 1).Text());
  EXPECT_EQ(object.Text().text,
            R"({"case": "a \"b\"\u000a\\", "n": 1099511627776, "us": 1.5, "limit": null, )"
            R"("met": true, "inner": {"x": 1}})");
}

TEST(JsonObject, HasNullForWhatIsNoNumber) {
  EXPECT_EQ(JsonObject().Set("a", NAN).Set("b", INFINITY).Text().text, R"({"a": null, "b": null})");
}

TEST(JsonObject, ReplacesAFieldInItsPlace) {
  EXPECT_EQ(JsonObject().Set("a", 1).Set("b", 2).Set("a", 3).Text().text, R"({"a": 3, "b": 2})");
}

TEST(JsonList, HasOneObjectPerLine) {
  EXPECT_EQ(JsonList({JsonObject().Set("a", 1).Text(), JsonObject().Text()}).text,
            "[\n{\"a\": 1},\n{}\n]");
}

}  // namespace
}  // namespace coconet
