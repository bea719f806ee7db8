#include "autotune/cost/rates.h"

#include <string>

#include "gtest/gtest.h"

namespace coconet {
namespace {

Rates SomeRates() {
  Rates rates;
  rates.launch_us = 0.25;
  rates.overlap = 3.5;
  for (size_t e = 0; e < kEfforts; ++e) rates.effort[e] = 0.5 * static_cast<double>(e);
  rates.levels = {{1024, 0.5, 0.25}, {4096, 2, 1}};
  rates.products = {{DType::kBF16, 4, 128, 64, 32, true, false, 17.5}};
  rates.collectives = {{CollectiveStep::Kind::kAllGather, Group::kNode, 5, {0.5, 0, 0.25}},
                       {CollectiveStep::Kind::kAllReduce, Group::kStage, 7, {0.5, 1, 0.25}}};
  rates.computation_beside = 1.5;
  rates.collective_beside = 2;
  return rates;
}

TEST(Rates, ParseWhatTheyPrint) {
  const absl::StatusOr<Rates> parsed = ParseRates(Json(SomeRates()));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, SomeRates());
}

TEST(Rates, OtherTextIsRefused) {
  const auto refusal = [](absl::string_view text) {
    const absl::StatusOr<Rates> parsed = ParseRates(text);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << text;
    return std::string(parsed.status().message());
  };
  EXPECT_EQ(refusal("none"), "rates: want one JSON object");
  EXPECT_EQ(refusal(R"({"launch": fast})"), "rates: want \"name\": number, have \"launch\": fast");
  EXPECT_EQ(refusal(R"({"speed": 1})"), "rates: there is no rate \"speed\"");
  EXPECT_EQ(refusal(R"({"read 3": 1})"), "rates: there is no rate \"read 3\"");
  EXPECT_EQ(refusal(R"({"product f32 1 2": 1})"), "rates: there is no rate \"product f32 1 2\"");
  EXPECT_EQ(refusal(R"({"collective 99 0 call": 1})"),
            "rates: there is no rate \"collective 99 0 call\"");
}

}  // namespace
}  // namespace coconet
