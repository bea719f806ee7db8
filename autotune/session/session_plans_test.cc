// Programs that are too large for all of their schedules to be derived: their plans.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autotune/calibrate/calibrate.h"
#include "autotune/cost/rates.h"
#include "autotune/store/tuning_cache.h"
#include "autotune/testing/session_fixture.h"
#include "coconet/base/fingerprint.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/workloads/training_steps.h"

namespace coconet {
namespace {

class SessionPlansTest : public SessionTest {
 protected:
  SessionPlansTest() {
    own_cache_ = true;
    // The program has many layers that are alike: its kernels are few, and quickly compiled.
    program_ = MlpStep({.layers = 40, .inputs = 8, .width = 8, .outputs = 8, .examples = 4});
  }

  std::unique_ptr<TuningCache> OpenCache() {
    return TuningCache::Open(Options().cache_file, nullptr);
  }

  /// Rates as those of a calibration, which takes longer than this test should.
  absl::Status StoreRates() {
    Rates rates;
    rates.launch_us = 2;
    rates.effort.fill(1e-4);
    rates.levels = {{1e5, 1e-5, 1e-5}};
    rates.products = {{DType::kF32, 1, 64, 64, 64, false, false, 20}};
    rates.collectives = {{CollectiveStep::Kind::kAllReduce, Group::kStage, 20, {1e-3, 0, 0}}};
    return RunWorld({.ranks = 2}, [&](Rank& rank) -> absl::Status {
      ASSIGN_OR_RETURN(const std::string key_text, CalibrationKeyText(rank));
      if (rank.rank() == 0)
        OpenCache()->StoreCalibration({Fingerprint(key_text), key_text, Json(rates), 1});
      return absl::OkStatus();
    });
  }

  /// `budget_s`: less than a calibration wants.
  absl::Status Tune(double budget_s, bool& from_cache) {
    SessionOptions options = Options();
    options.budget_s = budget_s;
    options.progress = [this](absl::string_view text) { absl::StrAppend(&told_text_, text, "\n"); };
    return RunRanks(
        2,
        [&](Session& session) -> absl::Status {
          ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program_));
          if (session.rank() == 0) from_cache = tuned.from_cache();
          return StepAndCheck(tuned, session, 3);
        },
        options);
  }

  /// Stored variants of planned schedules, of which something was measured.
  int TimedPlans() {
    const std::unique_ptr<TuningCache> cache = OpenCache();
    int timed = 0;
    for (const TuningRecord& record : cache->List()) {
      for (const VariantResult& variant : cache->Variants(record.key))
        timed += absl::StrContains(absl::StrCat("; ", variant.trace), "; order(") &&
                 variant.timing.samples > 0;  // not "reorder("
    }
    return timed;
  }

  std::string told_text_;  // while tuning
};

TEST_F(SessionPlansTest, AreVerifiedAndTimedAndTheirPredictionsAreKept) {
  ASSERT_TRUE(program_.ok()) << program_.status();
  ASSERT_GT(program_->size(), DeriveOptions::kLargeProgram);
  absl::Status status = StoreRates();
  ASSERT_TRUE(status.ok()) << status;
  bool from_cache = true;
  // Beside other tests there may be time for the baseline only; a later job goes on.
  for (int jobs = 0; jobs < 4 && TimedPlans() == 0; ++jobs) {
    status = Tune(20, from_cache);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_FALSE(from_cache);
  }
  EXPECT_GT(TimedPlans(), 0) << told_text_ << absl::StrJoin(warnings_, "\n");
  const std::vector<Prediction> predictions = OpenCache()->Predictions("");
  ASSERT_FALSE(predictions.empty());
  for (const Prediction& p : predictions) {
    EXPECT_TRUE(absl::StrContains(p.label, "plan of mlp_step")) << p.label;
    EXPECT_GT(p.predicted_us, 0);
    EXPECT_GT(p.measured_us, 0);
  }
}

TEST_F(SessionPlansTest, AreNotMadeWithoutRatesAndTime) {
  bool from_cache = true;
  const absl::Status status = Tune(5, from_cache);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(TimedPlans(), 0);
  EXPECT_TRUE(OpenCache()->Predictions("").empty());
}

}  // namespace
}  // namespace coconet
