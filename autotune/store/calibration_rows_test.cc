#include "autotune/store/calibration_rows.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autotune/store/cache_file.h"
#include "autotune/testing/tuning_cache_fixture.h"
#include "coconet/base/fingerprint.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

class CalibrationRows : public testing::Test {
 protected:
  CalibrationRows() {
    absl::StatusOr<Database> db = Database::Open(":memory:", Access::kReadWrite);
    EXPECT_TRUE(db.ok()) << db.status();
    db_.emplace(*std::move(db));
    EXPECT_TRUE(Migrate(*db_).ok());
  }
  std::optional<Database> db_;
};

TEST_F(CalibrationRows, KeepTheNewestRatesOfAMachine) {
  const std::string text = "machine: a\nranks: 2\n";
  Calibration calibration{Fingerprint(text), text, "{}", 10};
  ASSERT_TRUE(WriteCalibration(*db_, calibration).ok());
  calibration.rates = R"({"launch": 1})";
  calibration.created_s = 20;
  ASSERT_TRUE(WriteCalibration(*db_, calibration).ok());
  const Calibration other{Fingerprint("other"), "other", "{}", 15};
  ASSERT_TRUE(WriteCalibration(*db_, other).ok());
  const auto found = ReadCalibration(*db_, calibration.key);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, calibration);
  EXPECT_EQ(*ReadCalibration(*db_, "none"), std::nullopt);
  EXPECT_EQ(*ReadCalibrations(*db_), (std::vector<Calibration>{calibration, other}));
}

TEST_F(CalibrationRows, PredictionsComeBackNewestFirst) {
  const Prediction a{"k", "digest a", "softmax", 10, 8, 1}, b{"l", "digest b", "gelu", 3, 4, 2};
  ASSERT_TRUE(WritePredictions(*db_, {{a, b}}).ok());
  EXPECT_EQ(*ReadPredictions(*db_, ""), (std::vector<Prediction>{b, a}));
  EXPECT_EQ(*ReadPredictions(*db_, "k"), (std::vector<Prediction>{a}));
  EXPECT_DOUBLE_EQ(a.error(), 0.25);
}

TEST_F(CalibrationRows, ATimeOfNothingIsRefused) {
  const absl::Status status = WritePredictions(*db_, {{{"k", "d", "softmax", 10, 0, 1}}});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "prediction of softmax: want times above 0, have 0 us");
  EXPECT_TRUE(ReadPredictions(*db_, "")->empty()) << "nothing of the call is stored";
}

}  // namespace
}  // namespace coconet
