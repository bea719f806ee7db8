#include "autotune/session/load/program_search.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "autotune/runner/rank_runner.h"
#include "autotune/search/kept_variants.h"
#include "autotune/search/parts.h"
#include "autotune/search/recomputation.h"
#include "autotune/search/time_budget.h"
#include "autotune/search/tuner.h"
#include "autotune/search/variants.h"
#include "autotune/session/load/plans.h"
#include "autotune/session/load/program_loader.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// Shares of the budget at which derivation and lowering end, so that most is left for trying what
/// they have found.
constexpr double kDeriveShare = 0.25, kLowerShare = 0.4;
/// Share of the budget in which the parts of a program are tuned.
constexpr double kPartsShare = 0.6;
/// A share of what is left of the budget when a share of it is spent.
constexpr double ShareSpent(double spent, double of_rest) { return spent + (1 - spent) * of_rest; }

TunerOptions OptionsOfTuner(const Loading& loading, uint64_t seed) {
  const SessionOptions& user = loading.state->options;
  TunerOptions options;
  options.budget_s = loading.budget_s;
  options.seed = seed;
  options.search = user.search;
  options.anew = user.retune;
  if (user.optimize == Optimize::kFull) options.job_steps = user.job_steps;
  options.tries_all = loading.rank().topology().simulated;
  options.soft = loading.state->soft;
  if (options.tries_all || user.optimize == Optimize::kFast) options.most_load = 1;
  options.settles = !options.tries_all && user.optimize == Optimize::kFull;
  if (!options.settles) options.race.most_lost = 1;
  if (user.optimize == Optimize::kFast)
    options.race.settled = options.race.samples = options.race.most_samples = options.pairs = 2;
  if (loading.start.has_value()) {
    options.settles = false;
    options.job_steps = 0;  // few variants are tried, which are to be compared well
    options.race.settled = std::min(options.race.settled, loading.start->samples);
    options.race.samples = std::min(options.race.samples, loading.start->samples);
    options.race.most_samples = std::min(options.race.most_samples, 3 * loading.start->samples);
  }
  if (!loading.first()) return options;
  options.seconds = Seconds;
  options.start_s = loading.start_s;
  options.interrupted = user.interrupted;
  if (user.progress)
    options.progress = [&loading](absl::string_view text) { loading.Report(text); };
  options.journal = loading.state->cache.get();
  return options;
}

CompileWatch WatchOfCompiler(const Loading& loading) {
  CompileWatch watch;
  if (!loading.first()) return watch;
  watch.progress = [&loading](int done, int of) {
    loading.Report(absl::StrCat("compiled ", done, " of ", of, " kernel files"));
  };
  return watch;
}

/// The parts of a program as they are tuned, each on its own.
struct Apart {
  std::optional<Variant> variant;  // none: there is one part, or one that cannot be tuned alone
  bool complete = true;            // every schedule of every part was tried
};

/// Whether an error says that a part cannot be tuned alone: nothing of it runs or can be
/// verified.
bool IsOfPart(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) || absl::IsInternal(status) ||
         absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status);
}

/// Collective. Tunes each kind of part as a program of its own, with an equal share of the budget's
/// larger half, unless the cache has it. Kinds that are left when the budget ends are not tuned; no
/// kind is if only some schedules are admitted.
absl::StatusOr<Apart> TuneParts(const Loading& loading) {
  if (loading.TriesSome() || loading.start.has_value()) return Apart{};
  const auto parts = std::make_shared<const Parts>(SplitIntoParts(loading.program));
  if (parts->parts.size() == 1) return Apart{};
  Combination combination{parts, {}};
  Apart apart;
  Preparation tuning = loading.PreparationOf("its parts were tuned", kPartsShare);
  for (const Graph& kind : parts->kinds) {
    if (!tuning.GoOn()) {
      RETURN_IF_ERROR(tuning.status());
      return Apart{std::nullopt, /*complete=*/false};
    }
    const absl::StatusOr<LoadedProgram> loaded =
        FindOrTune(loading.state, kind,
                   kPartsShare * loading.budget_s / static_cast<double>(parts->kinds.size()),
                   {.is_part = true});
    if (IsOfPart(loaded.status())) return Apart{};
    RETURN_IF_ERROR(loaded.status());
    apart.complete = apart.complete && loaded->record.complete;
    combination.kinds.push_back({loaded->compiled->schedule, loaded->record.best.config});
  }
  apart.variant = VariantOf(std::move(combination));
  return apart;
}

std::vector<int> WithBaseline(int baseline, const std::vector<int>& favourites) {
  std::vector<int> first = {baseline};
  absl::c_remove_copy(favourites, std::back_inserter(first), baseline);
  return first;
}

/// Collective.
absl::StatusOr<std::unique_ptr<RankRunner>> RunnerOf(const Loading& loading, const VariantSet& set,
                                                     const std::vector<int>& favourites,
                                                     uint64_t seed, Preparation& lowering) {
  return RankRunner::Create(loading.rank(), loading.program, set.variants,
                            {.seed = seed,
                             .binaries = loading.state->binaries.get(),
                             .watch = WatchOfCompiler(loading),
                             .first = WithBaseline(set.baseline, favourites),
                             .go_on = [&]() -> absl::StatusOr<bool> {
                               const bool go_on = lowering.GoOn();
                               RETURN_IF_ERROR(lowering.status());
                               return go_on;
                             },
                             .memory_limit = loading.state->options.memory_limit,
                             .numerics = loading.state->options.numerics(),
                             .interrupted = loading.state->options.interrupted,
                             .phases = loading.phases.get(),
                             .typical_rows = loading.typical_rows});
}

/// Whether the configs differ in how a library multiplies, and in nothing else.
bool MultiplyDifferently(Config a, const Config& b) {
  if (a.gemm == b.gemm) return false;
  a.gemm = b.gemm;
  return a == b;
}

/// The variant of each plan that does what was simulated: it runs collectives beside computation if
/// that may gain; if there are several, the one with the least expected time. For the first plan
/// also the other ways to multiply, which need no other kernels.
std::vector<int> LikeliestOf(const Plans& plans, const std::vector<Variant>& variants) {
  std::vector<int> likeliest;
  for (const PlannedSchedule& plan : plans.schedules) {
    int chosen = -1;
    for (int v = 0; v < std::ssize(variants); ++v) {
      if (variants[v].schedule.trace() != plan.schedule.trace()) continue;
      const auto rank = [&](int variant) {
        return std::pair(!variants[variant].config.concurrent, variants[variant].prior_us);
      };
      if (chosen < 0 || rank(v) < rank(chosen)) chosen = v;
    }
    if (chosen < 0) continue;
    likeliest.push_back(chosen);
    for (int v = 0; likeliest.front() == chosen && v < std::ssize(variants); ++v) {
      if (variants[v].schedule.trace() == plan.schedule.trace() &&
          MultiplyDifferently(variants[v].config, variants[chosen].config))
        likeliest.push_back(v);
    }
  }
  return likeliest;
}

/// Returns those in `always`, and the `most` others expected to be fastest, ascending.
std::vector<int> WithPromising(const VariantSet& set, absl::Span<const int> always, int most) {
  std::set<int> kept(always.begin(), always.end());
  std::vector<std::pair<double, int>> others;
  for (int v = 0; v < std::ssize(set.variants); ++v) {
    if (!kept.contains(v)) others.emplace_back(set.variants[v].prior_us, v);
  }
  absl::c_sort(others);
  for (int i = 0; i < std::min<int>(most, std::ssize(others)); ++i) kept.insert(others[i].second);
  return {kept.begin(), kept.end()};
}

/// The numbers of variants that other sizes have shown to be fast, which are added to the set
/// unless it has them. Those that do not hold for these sizes are left out.
std::vector<int> AddSeen(const Loading& loading, VariantSet& set) {
  std::vector<VariantResult> seen = loading.favourites;
  if (loading.start.has_value()) absl::c_copy(loading.start->variants, std::back_inserter(seen));
  std::vector<int> numbers;
  if (loading.TriesSome()) return numbers;
  for (const VariantResult& variant : seen) {
    int number = NumberOf(variant, set.variants);
    absl::StatusOr<Variant> made = loading.VariantNamed(variant.trace, variant.config);
    if (!made.ok()) continue;
    if (number < 0) {
      number = static_cast<int>(set.variants.size());
      made->group = set.variants.back().group + 1;
      set.variants.push_back(*std::move(made));
    }
    if (!absl::c_linear_search(numbers, number)) numbers.push_back(number);
  }
  return numbers;
}

/// Collective. Keeps the KeptVariants of rank 0, with the favourites and the incumbent, whose
/// numbers follow. Keeps all in an exhaustive search, of what the user has chosen, and on simulated
/// GPUs, which are to run all.
absl::Status LeaveOut(const Loading& loading, VariantSet& set, TunerOptions& options) {
  const SessionOptions& user = loading.state->options;
  const bool starts = loading.start.has_value();
  if (!starts &&
      (user.search == SearchKind::kExhaustive || !user.choice.empty() || options.tries_all))
    return absl::OkStatus();
  std::vector<int> followed = options.favourites;
  followed.push_back(options.incumbent < 0 ? set.baseline : options.incumbent);
  std::vector<int> always = followed;
  always.push_back(set.baseline);
  ASSIGN_OR_RETURN(
      const std::vector<int> kept,
      FromRank0(loading.exchange(), starts ? WithPromising(set, always, loading.start->promising)
                                           : KeptVariants(loading.space, set, always)));
  set = OnlyKept(std::move(set), kept, followed);
  if (options.incumbent >= 0) options.incumbent = followed.back();
  followed.pop_back();
  options.favourites = std::move(followed);
  options.left_out = set.left_out;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<VariantSet> Enumerate(const Loading& loading, Preparation& deriving,
                                     std::optional<Variant> apart,
                                     absl::Span<const Schedule> planned) {
  const Phases::Part part(loading.phases.get(), Phase::kEnumerate);
  absl::StatusOr<VariantSet> set =
      loading.Variants([&] { return deriving.GoOn(); }, /*few=*/apart.has_value(), planned);
  RETURN_IF_ERROR(deriving.status());
  if (set.ok() && apart.has_value()) {
    apart->group = set->variants.back().group + 1;
    set->variants.push_back(*std::move(apart));
  }
  ASSIGN_OR_RETURN(const std::optional<Exchange::Difference> differs,
                   loading.exchange().FindDifference(set.ok() ? DigestOf(*set) : "none"));
  if (set.ok() && differs.has_value())
    return absl::InternalError(
        absl::StrCat("tune: ranks 0 and ", differs->rank, " derived different variants"));
  return set;
}

int NumberOf(const VariantResult& variant, absl::Span<const Variant> variants) {
  const auto at = absl::c_find_if(variants, [&](const Variant& v) {
    return v.config == variant.config && TraceOf(v) == variant.trace;
  });
  return at == variants.end() ? -1 : static_cast<int>(at - variants.begin());
}

absl::StatusOr<Found> Search(const Loading& loading, const std::optional<Winner>& known) {
  ASSIGN_OR_RETURN(const uint64_t seed, AgreeOnSeed(loading));
  Apart apart;
  {
    const Phases::Part part(loading.phases.get(), Phase::kParts);
    ASSIGN_OR_RETURN(apart, TuneParts(loading));
  }
  const bool combines = apart.variant.has_value();
  Plans plans;
  {
    const Phases::Part part(loading.phases.get(), Phase::kPlan);
    if (!loading.start.has_value()) {
      ASSIGN_OR_RETURN(plans, FindPlans(loading, seed));
    }
  }
  std::vector<Schedule> planned = plans.OnlySchedules();
  if (known.has_value() && known->variant.apart == nullptr)
    planned.push_back(known->variant.schedule);  // which this search need not find again
  const double done =
      std::max(combines ? kPartsShare : 0, (Seconds() - loading.start_s) / loading.budget_s);
  Preparation deriving =
      loading.PreparationOf("its schedules were derived", ShareSpent(done, kDeriveShare));
  ASSIGN_OR_RETURN(VariantSet set, Enumerate(loading, deriving, std::move(apart.variant), planned));
  TunerOptions options = OptionsOfTuner(loading, seed);
  const int combined = static_cast<int>(set.variants.size()) - 1;
  options.favourites = AddSeen(loading, set);
  {
    const Phases::Part part(loading.phases.get(), Phase::kEnumerate);
    ExpectTimes(loading.space, set);
  }
  if (combines) options.favourites.push_back(combined);
  ASSIGN_OR_RETURN(const std::vector<int> likeliest,
                   FromRank0(loading.exchange(), LikeliestOf(plans, set.variants)));
  absl::c_copy(likeliest, std::back_inserter(options.favourites));
  if (known.has_value()) options.incumbent = NumberOf(known->record.best, set.variants);
  RETURN_IF_ERROR(LeaveOut(loading, set, options));
  loading.Report(absl::StrCat(set.variants.size(), " variants to check and time"));
  Preparation lowering =
      loading.PreparationOf("its variants were lowered", ShareSpent(done, kLowerShare));
  absl::StatusOr<std::unique_ptr<RankRunner>> runner =
      RunnerOf(loading, set, options.favourites, seed, lowering);
  const std::optional<int64_t> least = RankRunner::OverLimit(runner.status());
  if (least.has_value() && loading.state->options.choice.empty()) {
    loading.Report("no schedule fits the memory limit: computing values again");
    VariantSet smaller =
        WithinMemory(set, loading.space, loading.target(), *loading.state->options.memory_limit,
                     loading.state->options.admits);
    if (!smaller.variants.empty()) {
      const absl::Status without = runner.status();
      set = std::move(smaller);
      options.favourites.clear();
      options.incumbent = known.has_value() ? NumberOf(known->record.best, set.variants) : -1;
      options.left_out = 0;
      runner = RunnerOf(loading, set, options.favourites, seed, lowering);
      // Return the one of the two errors that has the smaller need.
      if (RankRunner::OverLimit(runner.status()).value_or(0) > *least) return without;
    }
  }
  RETURN_IF_ERROR(lowering.status());
  if (absl::IsCancelled(runner.status()))
    return loading.InterruptedWhile("its test data were made");
  RETURN_IF_ERROR(runner.status());
  // A limit that leaves out nothing is none.
  const bool limited = least.has_value() || (*runner)->leaves_out();
  options.key_text = limited ? loading.limited_text : loading.plain_text;
  options.key = Fingerprint(options.key_text);
  if (known.has_value() && known->record.key == options.key) options.earlier = known->record.search;
  options.partial =
      deriving.ended() || lowering.ended() || !apart.complete || loading.start.has_value();
  ASSIGN_OR_RETURN(Tuned tuned, Tune((*runner)->Entrants(), set.baseline, **runner,
                                     loading.exchange(), options));
  KeepPredictions(loading, plans, tuned.variants);
  RankRunner::Runnable best = (*runner)->Take(tuned.best);
  Found found{{std::move(tuned.record), set.variants[tuned.best], std::move(best.module)},
              std::move(tuned.variants),
              options.incumbent};
  found.winner.variant.lowered = std::move(best.lowered);
  return found;
}

}  // namespace coconet
