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

TEST(ParseJsonObject, ReadsWhatIsPrinted) {
  JsonObject object;
  object.Set("text", "a \"b\"\n\\\x01 \xc3\xa9")
      .Set("n", int64_t{1} << 62)
      .Set("us", 1.5)
      .Set("none", nullptr)
      .Set("met", false)
      .Set("inner", JsonObject().Set("x", 1).Text());
  const absl::StatusOr<JsonObject> back = ParseJsonObject(object.Text().text);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(back->fields() == object.fields());
}

TEST(ParseJsonObject, ReadsEscapesBlanksAndNumbers) {
  const absl::StatusOr<JsonObject> object = ParseJsonObject(
      " { \"a\\u0041\" :\t\"\\ud83d\\ude00\\/\\u00e9\", \"b\": -0.25E1,\r\n"
      "\"c\": 9223372036854775808, \"d\": [1, {\"e\": []}] } ");
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_TRUE(object->Get("aA") == JsonValue("\xf0\x9f\x98\x80/\xc3\xa9"));
  EXPECT_TRUE(object->Get("b") == JsonValue(-2.5));
  EXPECT_TRUE(object->Get("c") == JsonValue(9223372036854775808.0));
  const absl::StatusOr<std::vector<JsonValue>> list =
      ParseJsonList(std::get<JsonText>(object->Get("d")).text);
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->size(), 2u);
  EXPECT_TRUE((*list)[0] == JsonValue(int64_t{1}));
  EXPECT_TRUE((*list)[1] == JsonValue(JsonText{"{\"e\": []}"}));
}

TEST(ParseJsonObject, RefusesWhatIsNone) {
  for (const std::string& text :
       {std::string(""),
        std::string("{"),
        std::string("[]"),
        std::string("{}x"),
        std::string("{\"a\"}"),
        std::string("{\"a\":}"),
        std::string("{\"a\":1,}"),
        std::string("{\"a\":01}"),
        std::string("{\"a\":1.}"),
        std::string("{\"a\":1e}"),
        std::string("{\"a\":1e999}"),
        std::string("{\"a\":NaN}"),
        std::string("{\"a\":+1}"),
        std::string("{\"a\":\"\n\"}"),
        std::string("{\"a\":\"\\x\"}"),
        std::string("{\"a\":\"\\ud800\"}"),
        std::string("{\"a\":\"\\udc00\"}"),
        std::string("{\"a\":\"\\u12g4\"}"),
        std::string("{\"a\":\"b"),
        std::string("{\"a\":1,\"a\":2}"),
        std::string("{'a':1}"),
        std::string("{\"a\":[1 2]}"),
        "{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}",
        std::string("{\"a\":\"\0\"}", 9)}) {
    const absl::StatusOr<JsonObject> object = ParseJsonObject(text);
    EXPECT_TRUE(absl::IsInvalidArgument(object.status())) << text.substr(0, 40);
  }
}

}  // namespace
}  // namespace coconet
