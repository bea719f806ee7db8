#include "autotune/session/load/plans.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "autotune/calibrate/calibrate.h"
#include "autotune/cost/measured_cost_model.h"
#include "autotune/runner/rank_runner.h"
#include "autotune/store/wire.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "coconet/schedule/derivation/derive.h"

namespace coconet {
namespace {

/// Share of what is left of the budget that the search takes, and the most seconds: more gain less
/// than a thousandth (docs/planning.md).
constexpr double kSearchShare = 0.1, kMostSearchSeconds = 10;
/// PlanSearchOptions::settled.
constexpr double kSettled = 4;
/// Seconds that must be left for a calibration to begin: fewer are better spent on the program.
constexpr double kLeastLeftForCalibration = 40;
/// Share of what is left of the budget after which a calibration is given up. What it compiled is
/// in the binary cache, so that it takes the next job less.
constexpr double kCalibrationShare = 0.5;

double SecondsLeft(const Loading& loading) {
  return loading.budget_s - (Seconds() - loading.start_s);
}

/// Collective. None where there are none and too little time is left to measure them. Cancelled
/// where the user interrupted, or the time for it was over.
absl::StatusOr<std::optional<Rates>> FindRates(const Loading& loading, const Schedule& plain,
                                               const std::string& key_text) {
  SessionState& state = *loading.state;
  TuningCache* cache = state.cache.get();
  const double left_s = SecondsLeft(loading);
  ASSIGN_OR_RETURN(const std::string has_time,
                   loading.exchange().Broadcast(left_s < kLeastLeftForCalibration ? "" : "yes"));
  if (has_time.empty()) return KnownRates(state.rank, cache, key_text);
  loading.Report("measuring rates of this machine, where they are not known");
  const double end_s = Seconds() + kCalibrationShare * left_s;
  ASSIGN_OR_RETURN(
      Rates rates,
      CalibrateOnce(state.rank, *state.binaries, cache,
                    {.products = DistinctProducts(plain, TargetOf(state.rank)),
                     .interrupted = [&] { return loading.Interrupted() || Seconds() > end_s; }}));
  return rates;
}

/// Rank 0's work for which the others wait, with messages so often that no wait times out.
class Awaited {
 public:
  explicit Awaited(Exchange& exchange) : exchange_(exchange) {}

  /// On rank 0, often, while it works. False once the ranks have lost contact.
  bool Beat() {
    if (Seconds() - last_s_ < kInterval || !contact_.ok()) return contact_.ok();
    contact_ = exchange_.Broadcast(kWorking).status();
    last_s_ = Seconds();
    return contact_.ok();
  }
  /// Collective, once rank 0 is done: its result.
  absl::StatusOr<std::string> Result(const std::string& mine) {
    RETURN_IF_ERROR(contact_);
    ASSIGN_OR_RETURN(std::string message, exchange_.Broadcast(absl::StrCat(kDone, mine)));
    while (message == kWorking) {
      ASSIGN_OR_RETURN(message, exchange_.Broadcast(""));
    }
    return message.substr(kDone.size());
  }

 private:
  static constexpr absl::string_view kWorking = "working", kDone = "done ";
  static constexpr double kInterval = 0.3;

  Exchange& exchange_;
  double last_s_ = Seconds();
  absl::Status contact_;
};

/// On rank 0.
absl::StatusOr<std::vector<PlannedSchedule>> SearchHere(const Loading& loading, const Rates& rates,
                                                        const std::string& calibration,
                                                        uint64_t seed, Awaited& awaited) {
  const MeasuredCostModel measured(rates);
  const CorrectedCostModel model(measured,
                                 MeasurementsOf(loading.state->cache->Predictions(calibration)));
  PlanningOptions options{.copies = true};
  options.search.seconds = std::clamp(kSearchShare * SecondsLeft(loading), 0.0, kMostSearchSeconds);
  options.search.settled = kSettled;
  options.search.seed = seed;
  options.search.go_on = [&] { return awaited.Beat() && !loading.Interrupted(); };
  options.search.progress = [&](const PlanProgress& progress) {
    loading.Report(absl::StrFormat("planned %d times: %.4g ms simulated, %.2f %% over the bound",
                                   progress.evaluations, progress.us / 1e3,
                                   100 * std::max(0.0, progress.gap())));
  };
  return PlannedSchedules(loading.program, loading.target(), model, options);
}

std::string Encode(const std::vector<PlannedSchedule>& plans) {
  Packer out;
  out.Int(static_cast<int64_t>(plans.size()));
  for (const PlannedSchedule& plan : plans) {
    out.Fields(TraceText(plan.schedule.trace()), plan.us, plan.bound_us, plan.exposed_us,
               plan.peak_bytes);
  }
  return out.bytes();
}

absl::StatusOr<std::vector<PlannedSchedule>> Decode(absl::string_view bytes, const Graph& program) {
  Unpacker in(bytes);
  std::vector<PlannedSchedule> plans;
  for (int64_t left = in.Int(); left > 0; --left) {
    PlannedSchedule& plan = plans.emplace_back();
    std::string trace;
    in.Fields(trace, plan.us, plan.bound_us, plan.exposed_us, plan.peak_bytes);
    ASSIGN_OR_RETURN(const std::vector<Transformation> transformations, ParseTrace(trace));
    ASSIGN_OR_RETURN(plan.schedule, Replay(program, transformations));
  }
  RETURN_IF_ERROR(in.Done());
  return plans;
}

/// "plan of gpt_step: 96 kernels, 312 launches, 14 buckets".
std::string LabelOf(const Graph& program, const Schedule& s) {
  return absl::StrCat("plan of ", NameForMessages(program), ": ", s.kernels().size(), " kernels, ",
                      s.launches().size(), " launches, ", s.buckets().size(), " buckets");
}

}  // namespace

std::vector<Schedule> Plans::OnlySchedules() const {
  std::vector<Schedule> only;
  for (const PlannedSchedule& plan : schedules) only.push_back(plan.schedule);
  return only;
}

absl::StatusOr<Plans> FindPlans(const Loading& loading, uint64_t seed) {
  Plans plans;
  const bool is_large = loading.program.size() > DeriveOptions::kLargeProgram;
  if (!is_large || loading.TriesSome() || loading.rank().topology().simulated) return plans;
  ASSIGN_OR_RETURN(const Schedule plain, InitialSchedule(loading.program));
  ASSIGN_OR_RETURN(const std::string key_text, CalibrationKeyText(loading.rank()));
  const auto warn = [&](const absl::Status& why) {
    loading.state->Warn(absl::StrCat("planning ", NameForMessages(loading.program), ": ",
                                     why.message(), "; it has no planned schedules"));
  };
  const absl::StatusOr<std::optional<Rates>> rates = FindRates(loading, plain, key_text);
  if (const absl::Status all = loading.exchange().Agree(rates.status()); !all.ok()) {
    if (!absl::IsCancelled(all)) warn(all);
    return plans;
  }
  if (!rates->has_value()) return plans;
  plans.calibration = Fingerprint(key_text);
  std::string found;
  Awaited awaited(loading.exchange());
  if (loading.first()) {
    const absl::StatusOr<std::vector<PlannedSchedule>> here =
        SearchHere(loading, **rates, plans.calibration, seed, awaited);
    if (here.ok())
      found = Encode(*here);
    else
      warn(here.status());
  }
  ASSIGN_OR_RETURN(found, awaited.Result(found));
  if (found.empty()) return plans;
  ASSIGN_OR_RETURN(plans.schedules, Decode(found, loading.program));
  return plans;
}

void KeepPredictions(const Loading& loading, const Plans& plans,
                     absl::Span<const VariantResult> variants) {
  if (!loading.first()) return;
  std::map<std::string, double> best_us;  // by trace
  for (const VariantResult& variant : variants) {
    if (variant.timing.samples == 0) continue;
    const auto [best, is_new] = best_us.try_emplace(variant.trace, variant.timing.median_us);
    best->second = std::min(best->second, variant.timing.median_us);
  }
  std::vector<Prediction> predictions;
  for (const PlannedSchedule& plan : plans.schedules) {
    const std::string trace = TraceText(plan.schedule.trace());
    const auto measured = best_us.find(trace);
    if (measured == best_us.end()) continue;
    const Prediction& p = predictions.emplace_back(
        Prediction{plans.calibration, Fingerprint(absl::StrCat(loading.key, "\n", trace)),
                   LabelOf(loading.program, plan.schedule), plan.us, measured->second,
                   absl::ToUnixSeconds(absl::Now())});
    loading.Report(absl::StrFormat("%s: %.4g ms predicted, %.4g ms measured (%+.1f %%)", p.label,
                                   p.predicted_us / 1e3, p.measured_us / 1e3, 100 * p.error()));
  }
  if (!predictions.empty()) loading.state->cache->AddPredictions(predictions);
}

}  // namespace coconet
