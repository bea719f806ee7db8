#include "autotune/session/online/candidates.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "autotune/measure/statistics.h"
#include "autotune/runner/rank_runner.h"
#include "autotune/search/kept_variants.h"
#include "autotune/search/time_budget.h"
#include "autotune/session/load/program_search.h"
#include "autotune/session/online/explorer.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// Share of the budget after which no more schedules are derived.
constexpr double kDeriveShare = 0.25;
/// Share after which no more variants are compiled, so that those that are can be verified.
constexpr double kCompileShare = 0.6;
/// Turns in which a variant is timed against the start, and the microseconds of a sample.
constexpr int kTurns = 3, kConfirmingTurns = 5;
constexpr double kSampleUs = 1000;
/// A variant that is faster by this in each turn becomes the start.
constexpr double kClearlyFaster = 0.95;
/// Variants whose earlier time is at most this multiple of the best's are explored again.
constexpr double kNear = 1.1;
/// How much less promising each further config of a schedule is than the one before, so that those
/// of other schedules come in between.
constexpr double kFurtherConfig = 0.15;

/// On rank 0: the numbers of the variants to prepare, the most promising first: those that an
/// earlier job has not decided on, those that no run has tried, by their expected times, and those
/// that were about as fast as the best.
std::vector<int> Promising(const Loading& loading, const VariantSet& set,
                           const TuningRecord& record, absl::Span<const VariantResult> known) {
  std::map<std::pair<std::string, std::string>, const VariantResult*> results;
  for (const VariantResult& result : known) results[{result.trace, Text(result.config)}] = &result;
  const std::vector<VariantResult> failed = loading.state->cache->Failures(record.key);
  for (const VariantResult& result : failed) results[{result.trace, Text(result.config)}] = &result;
  std::vector<int> always = {set.baseline};
  std::vector<std::pair<double, int>> open, untried, near;
  std::map<std::string, int> of_schedule;  // configs so far
  std::vector<int> kept = KeptVariants(loading.space, set, always);
  absl::c_stable_sort(
      kept, [&](int a, int b) { return set.variants[a].prior_us < set.variants[b].prior_us; });
  for (int v : kept) {
    const Variant& variant = set.variants[v];
    const std::string trace = TraceOf(variant);
    if (trace == record.best.trace && variant.config == record.best.config) continue;
    const int further = of_schedule[trace]++;
    const auto at = results.find({trace, Text(variant.config)});
    if (at == results.end()) {
      untried.emplace_back(variant.prior_us * (1 + kFurtherConfig * further), v);
      continue;
    }
    const VariantResult& result = *at->second;
    const bool is_near = record.best.timing.samples == 0 ||
                         result.timing.median_us <= kNear * record.best.timing.median_us;
    if (result.timing.samples == 0 || !is_near) continue;
    if (result.verdict == Verdict::kNotMeasured) open.emplace_back(result.timing.median_us, v);
    if (result.verdict == Verdict::kMeasured) near.emplace_back(result.timing.median_us, v);
  }
  if (record.complete) untried.clear();
  std::vector<int> promising;
  for (std::vector<std::pair<double, int>>* kind : {&open, &untried, &near}) {
    absl::c_sort(*kind);
    for (const auto& [us, v] : *kind) promising.push_back(v);
  }
  if (promising.size() > kMostPrepared) promising.resize(kMostPrepared);
  return promising;
}

/// Whether a program finds all its tensors where the other one has them.
bool IsPlacedAlike(absl::Span<const PlacedTensor> a, absl::Span<const PlacedTensor> b) {
  return a.size() == b.size() && absl::c_all_of(a, [&](const PlacedTensor& tensor) {
           return absl::c_any_of(b, [&](const PlacedTensor& other) {
             return tensor.name == other.name && tensor.role == other.role &&
                    tensor.type == other.type;
           });
         });
}

/// Compiles, verifies and times the variants of one exploration.
class Preparer {
 public:
  Preparer(const Loading& loading, Winner& start)
      : loading_(loading), start_(start), preparing_(loading.PreparationOf("it was prepared", 1)) {}

  /// Whether Prepare failed since the start may not be run.
  bool is_unfit() const { return is_unfit_; }

  absl::StatusOr<std::shared_ptr<const Exploration>> Prepare() {
    RETURN_IF_ERROR(Choose());
    if (variants_.size() == start_at_ + 1) {
      Tell("nothing is left to explore");
      return nullptr;
    }
    ASSIGN_OR_RETURN(runner_, MakeRunner());
    std::vector<int> numbers(variants_.size());
    absl::c_iota(numbers, 0);
    ASSIGN_OR_RETURN(const std::vector<std::optional<Failure>> compiled,
                     runner_->Compile(numbers, [&] { return IsOver(kCompileShare); }));
    results_.resize(variants_.size());
    turns_.resize(variants_.size());
    for (int v : numbers) {
      results_[v] = Describe(variants_[v]);
      if (compiled[v].has_value())
        Fail(v, *compiled[v]);
      else
        RETURN_IF_ERROR(Try(v));
      if (v != static_cast<int>(start_at_)) continue;
      if (FailsForGood(results_[v].verdict)) {
        is_unfit_ = true;
        return absl::FailedPreconditionError(
            absl::StrCat("Compile ", NameForMessages(loading_.program), ": ", Words(results_[v]),
                         ", which was verified here before, fails: ", results_[v].reason,
                         "; the tuning cache was told, compile again"));
      }
      if (turns_[v].empty()) {
        Tell("nothing is explored, since its best variant could not be timed within the budget");
        return nullptr;
      }
    }
    return Finish();
  }

 private:
  /// A turn: the microseconds of a step of the start, and of the variant.
  struct Turn {
    double start_us = 0, us = 0;
  };

  /// Whether that share of the budget is spent.
  bool IsOver(double share) const {
    return loading_.Interrupted() || Seconds() - loading_.start_s > share * loading_.budget_s;
  }
  void Tell(absl::string_view text) const {
    if (loading_.first() && loading_.state->options.progress)
      loading_.state->options.progress(
          absl::StrCat("online: ", NameForMessages(loading_.program), ": ", text));
  }
  /// By the fastest turn of each: other programs only make turns slower.
  double RatioOf(int v) const {
    double us = turns_[v][0].us, start_us = turns_[v][0].start_us;
    for (const Turn& turn : turns_[v]) us = std::min(us, turn.us);
    for (const std::vector<Turn>& turns : turns_) {
      for (const Turn& turn : turns) start_us = std::min(start_us, turn.start_us);
    }
    return us / start_us;
  }
  double MedianOfStart() const {
    std::vector<double> us;
    for (const std::vector<Turn>& turns : turns_) {
      for (const Turn& turn : turns) us.push_back(turn.start_us);
    }
    return Median(us);
  }
  bool IsClearlyFaster(int v) const {
    return !turns_[v].empty() && RatioOf(v) < kClearlyFaster &&
           absl::c_all_of(
               turns_[v],
               [](const Turn& turn) { return turn.us < kClearlyFaster * turn.start_us; });
  }

  /// Collective. Sets the variants: the baseline, the start if it is another one, and the rest.
  absl::Status Choose() {
    Preparation deriving = loading_.PreparationOf("its schedules were derived", kDeriveShare);
    std::vector<Schedule> planned;
    if (start_.variant.apart == nullptr) planned.push_back(start_.variant.schedule);
    ASSIGN_OR_RETURN(VariantSet set, Enumerate(loading_, deriving, std::nullopt, planned));
    ExpectTimes(loading_.space, set);
    std::vector<int> mine;
    if (loading_.first()) {
      known_ = loading_.state->cache->Variants(start_.record.key);
      mine = Promising(loading_, set, start_.record, known_);
    }
    ASSIGN_OR_RETURN(const std::vector<int> chosen, FromRank0(loading_.exchange(), mine));
    enumerated_ = static_cast<int>(set.variants.size());
    const int last_group = set.variants.back().group;
    const int start = NumberOf(start_.record.best, set.variants);
    variants_.push_back(set.variants[set.baseline]);
    if (start != set.baseline) {
      variants_.push_back(start_.variant);
      variants_.back().group = start >= 0 ? set.variants[start].group : last_group + 1;
      start_at_ = 1;
    }
    for (int v : chosen) {
      if (v != set.baseline) variants_.push_back(std::move(set.variants[v]));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<RankRunner>> MakeRunner() {
    ASSIGN_OR_RETURN(const uint64_t seed, AgreeOnSeed(loading_));
    return RankRunner::Create(loading_.rank(), loading_.program, variants_,
                              {.seed = seed,
                               .binaries = loading_.state->binaries.get(),
                               .watch = {},
                               .memory_limit = loading_.state->options.memory_limit,
                               .numerics = loading_.state->options.numerics(),
                               .interrupted = loading_.state->options.interrupted,
                               .phases = loading_.phases.get(),
                               .typical_rows = loading_.typical_rows});
  }

  void Fail(int v, const Failure& failure) {
    results_[v].verdict = failure.verdict;
    results_[v].reason = failure.reason;
    const bool tells = FailsForGood(failure.verdict) || MayPass(failure.verdict);
    if (loading_.first() && tells) loading_.state->cache->Fail(start_.record.key, results_[v]);
  }

  /// Collective. Verifies a variant, and times it against the start.
  absl::Status Try(int v) {
    if (!preparing_.GoOn()) {
      results_[v].reason = "no time was left to verify it";
      return absl::OkStatus();
    }
    const auto [protocol, bytes] = runner_->FactsOf(v);
    results_[v].protocol = protocol;
    results_[v].bytes = bytes;
    TuningCache* const journal = loading_.first() ? loading_.state->cache.get() : nullptr;
    if (journal != nullptr) journal->Begin(start_.record.key, results_[v]);
    ASSIGN_OR_RETURN(std::optional<Failure> failure, runner_->Load(v));
    if (!failure.has_value()) {
      ASSIGN_OR_RETURN(failure, runner_->Verify(v));
    }
    if (!failure.has_value()) {
      ASSIGN_OR_RETURN(failure, TimeTurns(v));
    }
    if (journal != nullptr) journal->End(start_.record.key, results_[v]);
    if (!failure.has_value()) return absl::OkStatus();
    turns_[v].clear();
    runner_->Unload(v);
    Fail(v, *failure);
    return absl::OkStatus();
  }

  /// Collective. Times variants that come before the start once that is there.
  absl::StatusOr<std::optional<Failure>> TimeTurns(int v) {
    const auto start = static_cast<int>(start_at_);
    if (v < start) return std::nullopt;
    if (v == start) {
      ASSIGN_OR_RETURN(const RankRunner::Sample first, runner_->Time(start, 1, 1));
      if (first.failure.has_value()) return first.failure;
      steps_ = static_cast<int>(std::clamp(kSampleUs / std::max(first.us, 1.0), 1.0, 1000.0));
      for (int before = 0; before < start; ++before) {
        if (results_[before].verdict != Verdict::kNotMeasured || !results_[before].reason.empty())
          continue;
        ASSIGN_OR_RETURN(const std::optional<Failure> failure, TimeTurns(before, start));
        if (!failure.has_value()) continue;
        turns_[before].clear();
        Fail(before, *failure);
      }
    }
    return TimeTurns(v, start);
  }
  absl::StatusOr<std::optional<Failure>> TimeTurns(int v, int start, int turns = kTurns) {
    for (int turn = 0; turn < turns; ++turn) {
      ASSIGN_OR_RETURN(const RankRunner::Sample before, runner_->Time(start, 1, steps_));
      if (before.failure.has_value()) return before.failure;
      ASSIGN_OR_RETURN(const RankRunner::Sample own, runner_->Time(v, 1, steps_));
      if (own.failure.has_value()) return own.failure;
      turns_[v].push_back({before.us, own.us});
    }
    return std::nullopt;
  }

  /// Collective. The variant that the job begins with: the fastest of those that stay clearly
  /// faster than the start in further turns.
  absl::StatusOr<int> First() {
    std::vector<int> faster;
    for (int v = 0; v < std::ssize(variants_); ++v) {
      if (IsClearlyFaster(v)) faster.push_back(v);
    }
    absl::c_stable_sort(faster, [&](int a, int b) { return RatioOf(a) < RatioOf(b); });
    const auto start = static_cast<int>(start_at_);
    for (int v : faster) {
      if (!preparing_.GoOn()) break;
      ASSIGN_OR_RETURN(const std::optional<Failure> failure, TimeTurns(v, start, kConfirmingTurns));
      if (!failure.has_value() && IsClearlyFaster(v)) return v;
      if (failure.has_value()) {
        turns_[v].clear();
        Fail(v, *failure);
      }
    }
    return start;
  }

  std::vector<PlacedTensor> TensorsOf(int v, const Lowered& lowered) const {
    return PlaceTensors(variants_[v].schedule.program().Expanded(), lowered.plan);
  }

  absl::StatusOr<std::shared_ptr<const Exploration>> Finish() {
    const auto start = static_cast<int>(start_at_);
    ASSIGN_OR_RETURN(const int first, First());
    const double level_us = MedianOfStart();
    int prepared = 0;
    for (int v = 0; v < std::ssize(variants_); ++v) {
      if (turns_[v].empty()) continue;
      ++prepared;
      std::vector<double> us;
      for (const Turn& turn : turns_[v]) us.push_back(level_us * turn.us / turn.start_us);
      results_[v].timing = Summarize(us);
    }
    auto made = std::make_shared<Exploration>();
    made->record = start_.record;
    made->incumbent_us = level_us * RatioOf(first) / RatioOf(start);
    UpdateRecord(first, prepared, made->record);
    const bool changes = first != start;
    if (changes || start_.module == nullptr) {
      start_.variant = variants_[first];
      RankRunner::Runnable taken = runner_->Take(first);
      start_.variant.lowered = std::move(taken.lowered);
      start_.module = std::move(taken.module);
    }
    const std::vector<PlacedTensor> tensors = TensorsOf(first, *start_.variant.lowered);
    std::vector<int> order;
    int slow = 0, apart = 0;
    for (int v = 0; v < std::ssize(variants_); ++v) {
      if (v == first || turns_[v].empty()) continue;
      if (RatioOf(v) / RatioOf(first) > ExplorerOptions{}.most_ratio) {
        ++slow;
      } else {
        order.push_back(v);
      }
    }
    absl::c_stable_sort(order, [&](int a, int b) { return RatioOf(a) < RatioOf(b); });
    for (int v : order) {
      if (std::ssize(made->candidates) == kMostExplored) break;
      const Trust trust = runner_->TrustIn(v);
      RankRunner::Runnable taken = runner_->Take(v);
      std::vector<PlacedTensor> own = TensorsOf(v, *taken.lowered);
      if (!IsPlacedAlike(tensors, own)) {
        ++apart;
        continue;
      }
      made->candidates.push_back({results_[v], level_us * RatioOf(v) / RatioOf(start), trust,
                                  std::move(taken.lowered), std::move(taken.module),
                                  std::move(own)});
    }
    Keep(*made);
    start_.record = made->record;
    TellAll(*made, prepared, slow, apart);
    if (made->candidates.empty()) return nullptr;
    return made;
  }

  void UpdateRecord(int first, int prepared, TuningRecord& record) const {
    const bool changes = first != static_cast<int>(start_at_);
    if (changes || record.best.timing.samples == 0) {
      record.best = results_[first];
      record.best.verdict = Verdict::kMeasured;
      record.trust = {runner_->TrustIn(first)};
      record.speed_up = {};
    }
    if (!turns_[0].empty() && (changes || record.baseline.timing.samples == 0)) {
      record.baseline = results_[0];
      record.baseline.verdict = Verdict::kMeasured;
    }
    record.variants = std::max(record.variants, enumerated_);
    record.search.tried += prepared;
    ++record.search.runs;
    record.search.spent_s += Seconds() - loading_.start_s;
    record.created_s = absl::ToUnixSeconds(absl::Now());
    record.soft = loading_.state->soft;
  }

  /// On rank 0: stores what the preparation showed.
  void Keep(Exploration& made) {
    if (!loading_.first()) return;
    made.variants = std::move(known_);
    for (const VariantResult& result : results_) {
      if (result.timing.samples > 0) made.prepared.push_back(result);
      if (result.timing.samples > 0 || FailsForGood(result.verdict))
        PutResult(result, made.variants);
    }
    PutResult(made.record.baseline, made.variants);
    PutResult(made.record.best, made.variants);
    loading_.state->cache->Store(made.record, made.variants);
  }

  void TellAll(const Exploration& made, int prepared, int slow, int apart) const {
    const size_t left = variants_.size() - prepared;
    std::vector<std::string> others;
    if (apart > 0)
      others.push_back(
          absl::StrCat(apart, " keep tensors otherwise than ", made.record.best.schedule));
    if (slow > 0) others.push_back(absl::StrCat(slow, " take more than twice as long"));
    if (left > 0)
      others.push_back(absl::StrCat(left, " failed, or were not prepared within the budget"));
    Tell(absl::StrCat("runs ", Words(made.record.best), ", exploring ", made.candidates.size(),
                      " variants in at most 5 % of the time of any 100 calls",
                      others.empty() ? "" : "; not explored: ", absl::StrJoin(others, ", ")));
  }

  const Loading& loading_;
  Winner& start_;
  Preparation preparing_;
  std::vector<VariantResult> known_;  // on rank 0
  std::vector<Variant> variants_;     // to prepare; the baseline first
  size_t start_at_ = 0;               // the start's number
  int enumerated_ = 0, steps_ = 1;
  bool is_unfit_ = false;
  std::unique_ptr<RankRunner> runner_;
  std::vector<VariantResult> results_;
  std::vector<std::vector<Turn>> turns_;  // by variant; empty: it failed, or was not timed
};

}  // namespace

void PutResult(const VariantResult& result, std::vector<VariantResult>& results) {
  const auto at = absl::c_find_if(
      results, [&](const VariantResult& other) { return SameVariant(result, other); });
  if (at == results.end())
    results.push_back(result);
  else
    *at = result;
}

absl::StatusOr<std::shared_ptr<const Exploration>> PrepareExploration(const Loading& loading,
                                                                      Winner& start) {
  std::string why;
  if (start.record.pinned) why = "its variant is pinned";
  if (GetEnv().assert_cached) why = "COCONET_ASSERT_CACHED forbids compiling variants";
  if (why.empty()) {
    Preparer preparer(loading, start);
    absl::StatusOr<std::shared_ptr<const Exploration>> made = preparer.Prepare();
    const absl::Status& status = made.status();
    const bool is_lost =
        absl::IsAborted(status) || absl::IsDeadlineExceeded(status) || absl::IsDataLoss(status);
    if (made.ok() || is_lost || preparer.is_unfit()) return made;
    why = std::string(status.message());
  }
  loading.state->Warn(
      absl::StrCat("online: ", NameForMessages(loading.program), ": nothing is explored: ", why));
  return nullptr;
}

}  // namespace coconet
