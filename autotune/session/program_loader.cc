#include "autotune/session/program_loader.h"

#include <gnu/libc-version.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <random>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "autotune/search/binaries.h"
#include "autotune/search/parts.h"
#include "autotune/search/rank_runner.h"
#include "autotune/search/tuner.h"
#include "autotune/search/variants.h"
#include "autotune/session/key.h"
#include "autotune/session/preparation.h"
#include "autotune/store/process_identity.h"
#include "autotune/store/wire.h"
#include "coconet/base/env.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"

namespace coconet {
namespace {

/// Shares of the budget at which derivation and lowering end, so that most is left for trying what
/// they have found.
constexpr double kDeriveShare = 0.25, kLowerShare = 0.4;
/// Share of the budget in which the parts of a program are tuned.
constexpr double kPartsShare = 0.6;
/// A share of what is left of the budget when a share of it is spent.
constexpr double Share(double spent, double of_rest) { return spent + (1 - spent) * of_rest; }

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string CacheFileOf(const SessionOptions& options) {
  if (options.admits) return ":none:";
  if (!options.cache_file.empty()) return options.cache_file;
  return GetEnv().cache_dir.empty() ? "" : absl::StrCat(GetEnv().cache_dir, "/tuning.db");
}

/// State of one FindOrTune.
class Loader {
 public:
  Loader(const std::shared_ptr<SessionState>& state, Graph program, double budget_s)
      : state_(state),
        rank_(state->rank),
        exchange_(state->rank.exchange()),
        budget_s_(budget_s),
        program_(std::move(program)) {}

  absl::StatusOr<LoadedProgram> Load() {
    RETURN_IF_ERROR(SetUp());
    RETURN_IF_ERROR(AskForProducts());
    space_ = SpaceOf(state_->topologies, rank_.mesh(), state_->options.sum_order);
    RETURN_IF_ERROR(AskCache());
    ASSIGN_OR_RETURN(std::optional<Winner> known, TakeKnown());
    const bool may_tune = state_->options.policy == Policy::kTune && !GetEnv().assert_cached;
    const bool retune = may_tune && state_->options.retune;
    if (known.has_value() && !retune && (known->record.complete || !may_tune)) {
      ASSIGN_OR_RETURN(const bool holds, StillHolds(*known));
      if (holds) {
        CheckSoft(known->record, may_tune);
        return Assemble(*std::move(known), true, {});
      }
      known.reset();
    }
    if (!may_tune) {
      const std::string what = absl::StrCat(
          "Compile ", program_.name, ": ",
          unfit_.empty()
              ? "no record in the tuning cache for this program, these sizes and this machine"
              : unfit_);
      if (state_->options.policy == Policy::kCacheOnly) return absl::NotFoundError(what);
      return absl::FailedPreconditionError(
          absl::StrCat(what, ", and COCONET_ASSERT_CACHED forbids tuning"));
    }
    return TuneAnew(std::move(known));
  }

 private:
  bool first() const { return rank_.rank() == 0; }

  /// Tells the user what is going on, and how much time is left for it.
  void Report(absl::string_view text) const {
    if (!first() || !state_->options.progress) return;
    const double left_s = budget_s_ - (Seconds() - start_s_);
    state_->options.progress(
        absl::StrFormat("at most %.0f s left: %s", std::max(left_s, 0.0), text));
  }

  /// A record of other minor versions is used now, and improved by the next job that may tune.
  void CheckSoft(const TuningRecord& record, bool may_tune) {
    if (!first() || record.soft == state_->soft) return;
    const bool marks = may_tune && state_->cache->stores();
    state_->Warn(absl::StrCat("tuning cache: the record of ", program_.name, " was tuned with ",
                              record.soft, ", and here is ", state_->soft, ": it is used",
                              marks ? ", and the next job tunes it further" : ""));
    if (marks) state_->cache->MarkStale(key_, state_->soft);
  }

  /// Collective.
  absl::StatusOr<std::unique_ptr<Binaries>> OpenBinaries() const {
    const Topology& here = rank_.topology();
    const auto stop = std::make_shared<std::atomic<bool>>(false);
    const CompilerOptions options{.cache_dir = GetEnv().cache_dir,
                                  .optimize = state_->options.optimize,
                                  .stop = stop,
                                  .driver = here.driver};
    return Binaries::Open(
        rank_, {.target = BinaryTarget(here.arch, here.driver),
                .cache_dir = options.cache_dir,
                .compiler = [options,
                             &here] { return MakeCompilerFor(here.arch, here.simulated, options); },
                .stop = stop,
                .warn = [state = state_.get()](
                            absl::string_view text) { state->Warn(std::string(text)); }});
  }

  /// Collective, once per session. Opens the caches and gathers topologies.
  absl::Status SetUp() {
    if (!state_->topologies.empty()) return absl::OkStatus();
    if (first()) {
      state_->cache = TuningCache::Open(
          CacheFileOf(state_->options),
          [state = state_.get()](absl::string_view text) { state->Warn(std::string(text)); });
    }
    Packer mine;
    mine.Text(Encode(rank_.topology())).Text(gnu_get_libc_version());
    ASSIGN_OR_RETURN(const std::vector<std::string> all, exchange_.AllGather(mine.bytes()));
    std::vector<Topology> topologies;
    std::vector<std::string> libcs;
    for (const std::string& theirs : all) {
      Unpacker in(theirs);
      ASSIGN_OR_RETURN(Topology topology, DecodeTopology(in.Text()));
      topologies.push_back(std::move(topology));
      libcs.push_back(in.Text());
      RETURN_IF_ERROR(in.Done());
    }
    state_->soft = SoftText(topologies, libcs);
    ASSIGN_OR_RETURN(state_->binaries, OpenBinaries());
    state_->topologies = std::move(topologies);
    return absl::OkStatus();
  }

  /// Collective, once per session. Gathers which libraries multiply the program's matrices.
  absl::Status AskForProducts() {
    multiplies_ = absl::c_any_of(
        program_.nodes, [](const Node& node) { return std::holds_alternative<MatMul>(node.op); });
    if (!multiplies_ || !state_->products.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(state_->products, exchange_.AllGather(rank_.Products()));
    return absl::OkStatus();
  }

  absl::Status AskCache() {
    Packer message;
    if (first()) {
      const std::vector<std::string> products =
          multiplies_ ? state_->products : std::vector<std::string>();
      key_text_ = KeyText({&program_, state_->options.sum_order, rank_.mesh(), state_->topologies,
                           state_->binaries->compilers(), products});
      known_ = state_->cache->Find(key_text_);
      message.Text(key_text_).Text(known_.has_value() ? Encode(*known_) : "");
    }
    ASSIGN_OR_RETURN(const std::string from_first, exchange_.Broadcast(message.bytes()));
    Unpacker in(from_first);
    key_text_ = in.Text();
    const std::string record = in.Text();
    RETURN_IF_ERROR(in.Done());
    key_ = Fingerprint(key_text_);
    if (!record.empty()) {
      ASSIGN_OR_RETURN(known_, DecodeRecord(record));
    }
    return absl::OkStatus();
  }

  /// Best variant of a record, lowered once: what is verified is what is dispatched.
  struct Winner {
    TuningRecord record;
    Variant variant;
    std::unique_ptr<Module> module = nullptr;  // null: not loaded yet
  };

  /// Lowers the record's best variant; an error when the record does not hold for this program.
  absl::StatusOr<Winner> LowerRecord(TuningRecord record) const {
    RETURN_IF_ERROR(Validate(record));
    if (record.key_text != key_text_) return absl::DataLossError("its key is another one");
    Winner winner;
    Variant& variant = winner.variant;
    variant.config = record.best.config;
    if (IsCombination(record.best.trace)) {
      const auto parts = std::make_shared<const Parts>(SplitIntoParts(program_));
      ASSIGN_OR_RETURN(Combination apart, ParseCombination(record.best.trace, parts, space_));
      variant = VariantOf(std::move(apart));
    } else {
      ASSIGN_OR_RETURN(const std::vector<Transformation> trace, ParseTrace(record.best.trace));
      ASSIGN_OR_RETURN(variant.schedule, Replay(program_, trace));
      RETURN_IF_ERROR(Validate(variant.config, variant.schedule, space_));
    }
    ASSIGN_OR_RETURN(Lowered lowered, LowerVariant(variant, TargetOf(rank_)));
    variant.lowered = std::make_shared<const Lowered>(std::move(lowered));
    winner.record = std::move(record);
    return winner;
  }

  /// Collective. The stored record, lowered, when it holds for this program on all ranks; else a
  /// warning and no value.
  absl::StatusOr<std::optional<Winner>> TakeKnown() {
    if (!known_.has_value()) return std::nullopt;
    absl::StatusOr<Winner> winner = LowerRecord(*std::move(known_));
    const absl::Status valid = exchange_.Agree(winner.status());
    if (valid.ok()) return std::optional<Winner>(*std::move(winner));
    state_->Warn(absl::StrCat("tuning cache: the record of ", program_.name, " does not hold (",
                              valid.message(), ") and is ignored"));
    return std::nullopt;
  }

  /// Collective. Finds or compiles the binary, and loads it.
  absl::StatusOr<std::unique_ptr<Module>> ModuleOf(const std::string& source) {
    std::string path;
    if (!source.empty()) {
      ASSIGN_OR_RETURN(const std::vector<absl::StatusOr<std::string>> paths,
                       state_->binaries->Compile({&source, 1}, {}));
      ASSIGN_OR_RETURN(path, paths[0]);
    }
    ASSIGN_OR_RETURN(Binaries::Loaded loaded, state_->binaries->Load(path, source));
    RETURN_IF_ERROR(loaded.status);
    return std::move(loaded.module);
  }

  absl::StatusOr<LoadedProgram> Assemble(Winner winner, bool from_cache,
                                         std::vector<VariantResult> variants) {
    auto compiled = std::make_shared<CompiledProgram>();
    compiled->session = state_;
    compiled->program = Expand(program_);
    compiled->schedule = std::move(winner.variant.schedule);
    compiled->lowered = std::move(winner.variant.lowered);
    compiled->tensors =
        PlaceTensors(compiled->schedule.program().Expanded(), compiled->lowered->plan);
    compiled->variants = std::move(variants);
    compiled->module = std::move(winner.module);
    if (compiled->module == nullptr) {
      ASSIGN_OR_RETURN(compiled->module, ModuleOf(compiled->lowered->source));
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> digests,
                     exchange_.AllGather(CodeFingerprint(*compiled->lowered)));
    for (size_t r = 1; r < digests.size(); ++r) {
      if (digests[r] != digests[0])
        return absl::InternalError(
            absl::StrCat("Compile: ranks 0 and ", r, " made different plans of one schedule"));
    }
    return LoadedProgram{std::move(winner.record), from_cache, std::move(compiled)};
  }

  /// Collective. Seed of verification data and of the order of measurements: COCONET_SEED, else
  /// random.
  absl::StatusOr<uint64_t> AgreeOnSeed() {
    Packer mine;
    mine.Int(static_cast<int64_t>(GetEnv().seed.value_or(std::random_device()())));
    ASSIGN_OR_RETURN(const std::string same, exchange_.Broadcast(mine.bytes()));
    return static_cast<uint64_t>(Unpacker(same).Int());
  }

  bool Interrupted() const { return state_->options.interrupted && state_->options.interrupted(); }
  absl::Status InterruptedWhile(absl::string_view doing) const {
    return absl::CancelledError(absl::StrCat(
        "tuning ", program_.name, " was interrupted before anything was measured, while ", doing));
  }

  /// Work that goes before measuring, "its schedules were derived", until that share of the budget
  /// is spent.
  Preparation PreparationOf(absl::string_view doing, double share) const {
    return {exchange_,
            {state_->options.interrupted, start_s_ + share * budget_s_, Seconds,
             InterruptedWhile(doing)}};
  }

  /// The plain variant, where results are so long that a winner is compared with it; else none.
  std::vector<Variant> PlainToCompareWith(const Variant& winner) const {
    const Graph expanded = Expand(program_);
    const bool is_long = absl::c_any_of(expanded.nodes, [](const Node& node) {
      const TensorType* type = DeclaredType(node.op);
      return type != nullptr && NumElements(type->shape) > Reference::kFullElements;
    });
    if (!is_long) return {};
    // The baseline is in the set, however little is derived.
    absl::StatusOr<VariantSet> set =
        EnumerateVariants(program_, space_, nullptr, [] { return false; });
    if (!set.ok()) return {};
    Variant& plain = set->variants[set->baseline];
    if (TraceOf(plain) == TraceOf(winner) && plain.config == winner.config) return {};
    return {std::move(plain)};
  }

  /// Collective. Runs the winner once more on fresh data, and loads it where it passes.
  absl::StatusOr<std::optional<Failure>> VerifyAgain(Winner& winner) {
    ASSIGN_OR_RETURN(const uint64_t seed, AgreeOnSeed());
    std::vector<Variant> variants = {winner.variant};
    for (Variant& plain : PlainToCompareWith(winner.variant)) variants.push_back(std::move(plain));
    ASSIGN_OR_RETURN(const std::unique_ptr<RankRunner> runner,
                     RankRunner::Create(rank_, program_, variants,
                                        {.seed = seed,
                                         .binaries = state_->binaries.get(),
                                         .watch = {},
                                         .interrupted = state_->options.interrupted}));
    std::vector<int> numbers(variants.size());
    absl::c_iota(numbers, 0);
    ASSIGN_OR_RETURN(const std::vector<std::optional<Failure>> compiled,
                     runner->Compile(numbers, [this] { return Interrupted(); }));
    if (compiled[0].has_value() && compiled[0]->verdict == Verdict::kNotMeasured)
      return absl::CancelledError("interrupted");
    if (compiled[0].has_value()) return compiled[0];
    std::optional<Failure> failure;
    for (size_t plain = 1; plain < variants.size(); ++plain) {
      if (compiled[plain].has_value()) continue;
      ASSIGN_OR_RETURN(failure, runner->Load(static_cast<int>(plain)));
      if (failure.has_value()) continue;
      RETURN_IF_ERROR(runner->Verify(static_cast<int>(plain)).status());
      runner->Unload(static_cast<int>(plain));
    }
    ASSIGN_OR_RETURN(failure, runner->Load(0));
    if (failure.has_value()) return failure;
    ASSIGN_OR_RETURN(failure, runner->Verify(0));
    winner.record.trust = {runner->TrustIn(0)};
    winner.module = runner->Take(0).module;
    return failure;
  }

  /// Collective. Whether this code was verified on this machine; not with COCONET_VERIFY.
  absl::StatusOr<bool> IsTrusted(const Winner& known) {
    ASSIGN_OR_RETURN(const std::string machine, exchange_.Broadcast(MachineDigest()));
    const std::string fingerprint = CodeFingerprint(*known.variant.lowered);
    return !GetEnv().verify && absl::c_any_of(known.record.trust, [&](const Trust& t) {
      return t.machine == machine && t.fingerprint == fingerprint;
    });
  }

  /// Collective. Whether a stored winner may be dispatched: where it is not trusted, it must give
  /// the right answers first.
  absl::StatusOr<bool> StillHolds(Winner& known) {
    ASSIGN_OR_RETURN(const bool trusted, IsTrusted(known));
    if (trusted) return true;
    return HoldsHere(known);
  }

  /// Collective. Whether a stored winner gives the right answers here, which the cache is told. A
  /// failure that may pass is tried again once, and leaves the record as it is.
  absl::StatusOr<bool> HoldsHere(Winner& known) {
    VariantResult& best = known.record.best;
    absl::StatusOr<std::optional<Failure>> again = VerifyAgain(known);
    if (again.ok() && again->has_value() && MayPass((*again)->verdict)) again = VerifyAgain(known);
    if (!again.ok()) {
      return WithContext(again.status(),
                         absl::StrCat("verifying ", Words(best), ", kept for ", program_.name));
    }
    const std::optional<Failure>& failure = *again;
    if (!failure.has_value()) {
      if (first()) state_->cache->AddTrust(key_, best, known.record.trust[0]);
      return true;
    }
    const bool for_good = FailsForGood(failure->verdict);
    unfit_ =
        absl::StrCat("the variant kept for ", program_.name, ", ", Words(best), ", fails here (",
                     failure->reason, ") and is not used", for_good ? "" : " this time");
    state_->Warn(absl::StrCat("tuning cache: ", unfit_));
    if (first() && for_good) {
      best.verdict = failure->verdict;
      best.reason = failure->reason;
      state_->cache->Fail(key_, best);
    }
    return false;
  }

  TunerOptions OptionsOfTuner(uint64_t seed) const {
    const SessionOptions& user = state_->options;
    TunerOptions options;
    options.budget_s = budget_s_;
    options.seed = seed;
    options.search = user.search;
    options.anew = user.retune;
    options.tries_all = rank_.topology().simulated;
    options.key = key_;
    options.key_text = key_text_;
    options.soft = state_->soft;
    if (options.tries_all || user.optimize == Optimize::kFast) options.most_load = 1;
    if (user.optimize == Optimize::kFast)
      options.race.settled = options.race.samples = options.race.most_samples = options.pairs = 2;
    if (!first()) return options;
    options.seconds = Seconds;
    options.start_s = start_s_;
    options.interrupted = user.interrupted;
    if (user.progress) options.progress = [this](absl::string_view text) { Report(text); };
    options.journal = state_->cache.get();
    return options;
  }

  /// Collective. The variants to try, the same on all ranks.
  absl::StatusOr<VariantSet> Enumerate(Preparation& deriving, std::optional<Variant> apart) {
    absl::StatusOr<VariantSet> set = EnumerateVariants(
        program_, space_, state_->options.admits, [&] { return deriving.GoOn(); },
        /*few=*/apart.has_value());
    RETURN_IF_ERROR(deriving.status());
    if (set.ok() && apart.has_value()) {
      apart->group = set->variants.back().group + 1;
      set->variants.push_back(*std::move(apart));
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> digests,
                     exchange_.AllGather(set.ok() ? DigestOf(*set) : "none"));
    for (size_t r = 1; r < digests.size(); ++r) {
      if (set.ok() && digests[r] != digests[0])
        return absl::InternalError(
            absl::StrCat("tune: ranks 0 and ", r, " derived different variants"));
    }
    return set;
  }

  CompileWatch WatchOfCompiler() const {
    CompileWatch watch;
    if (!first()) return watch;
    watch.progress = [this](int done, int of) {
      Report(absl::StrCat("compiled ", done, " of ", of, " kernel files"));
    };
    return watch;
  }

  static Variant VariantOf(Combination apart) {
    Variant variant{.schedule = ScheduleOf(apart), .config = {}};
    variant.apart = std::make_shared<const Combination>(std::move(apart));
    return variant;
  }

  /// The parts of a program as they are tuned, each on its own.
  struct Apart {
    std::optional<Variant> variant;  // none: there is one part, or one that cannot be tuned alone
    bool complete = true;            // every schedule of every part was tried
  };

  /// Collective. Tunes each kind of part as a program of its own, with an equal share of the
  /// budget's larger half, unless the cache has it. Those that are left when the budget ends are
  /// not tuned, and none are where only some schedules are admitted.
  absl::StatusOr<Apart> TuneParts() {
    if (state_->options.admits) return Apart{};
    const auto parts = std::make_shared<const Parts>(SplitIntoParts(program_));
    if (parts->parts.size() == 1) return Apart{};
    Combination combination{parts, {}};
    Apart apart;
    Preparation tuning = PreparationOf("its parts were tuned", kPartsShare);
    for (const Graph& kind : parts->kinds) {
      if (!tuning.GoOn()) {
        RETURN_IF_ERROR(tuning.status());
        return Apart{std::nullopt, /*complete=*/false};
      }
      const absl::StatusOr<LoadedProgram> loaded =
          Loader(state_, kind, kPartsShare * budget_s_ / static_cast<double>(parts->kinds.size()))
              .Load();
      if (IsOfPart(loaded.status())) return Apart{};
      RETURN_IF_ERROR(loaded.status());
      apart.complete = apart.complete && loaded->record.complete;
      combination.kinds.push_back({loaded->compiled->schedule, loaded->record.best.config});
    }
    apart.variant = VariantOf(std::move(combination));
    return apart;
  }

  /// Whether an error says that a part cannot be tuned alone: nothing of it runs or can be
  /// verified.
  static bool IsOfPart(const absl::Status& status) {
    return absl::IsFailedPrecondition(status) || absl::IsInternal(status) ||
           absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status);
  }

  /// What a tuning has found.
  struct Found {
    Winner winner;
    std::vector<VariantResult> variants;
    int incumbent = -1;  // the number of the variant that was known before
  };

  /// Collective. Cancelled where the user interrupted before anything was measured.
  absl::StatusOr<Found> Search(const std::optional<Winner>& known) {
    ASSIGN_OR_RETURN(const uint64_t seed, AgreeOnSeed());
    ASSIGN_OR_RETURN(Apart apart, TuneParts());
    const bool combines = apart.variant.has_value();
    const double done = combines ? kPartsShare : 0;
    Preparation deriving = PreparationOf("its schedules were derived", Share(done, kDeriveShare));
    ASSIGN_OR_RETURN(const VariantSet set, Enumerate(deriving, std::move(apart.variant)));
    TunerOptions options = OptionsOfTuner(seed);
    if (combines) options.favourite = static_cast<int>(set.variants.size()) - 1;
    if (known.has_value()) {
      options.incumbent = NumberOf(known->record.best, set.variants);
      options.earlier = known->record.search;
    }
    Report(absl::StrCat(set.variants.size(), " variants to check and time"));
    Preparation lowering = PreparationOf("its variants were lowered", Share(done, kLowerShare));
    absl::StatusOr<std::unique_ptr<RankRunner>> runner =
        RankRunner::Create(rank_, program_, set.variants,
                           {.seed = seed,
                            .binaries = state_->binaries.get(),
                            .watch = WatchOfCompiler(),
                            .first = set.baseline,
                            .go_on = [&]() -> absl::StatusOr<bool> {
                              const bool go_on = lowering.GoOn();
                              RETURN_IF_ERROR(lowering.status());
                              return go_on;
                            },
                            .interrupted = state_->options.interrupted});
    RETURN_IF_ERROR(lowering.status());
    if (absl::IsCancelled(runner.status())) return InterruptedWhile("its test data were made");
    RETURN_IF_ERROR(runner.status());
    options.partial = deriving.ended() || lowering.ended() || !apart.complete;
    ASSIGN_OR_RETURN(Tuned tuned,
                     Tune((*runner)->Entrants(), set.baseline, **runner, exchange_, options));
    RankRunner::Runnable best = (*runner)->Take(tuned.best);
    Found found{{std::move(tuned.record), set.variants[tuned.best], std::move(best.module)},
                std::move(tuned.variants),
                options.incumbent};
    found.winner.variant.lowered = std::move(best.lowered);
    return found;
  }

  absl::StatusOr<LoadedProgram> TuneAnew(std::optional<Winner> known) {
    if (first()) state_->cache->CheckWhole();
    absl::StatusOr<Found> found = Search(known);
    if (known.has_value() && absl::IsCancelled(found.status())) {
      ASSIGN_OR_RETURN(const bool trusted, IsTrusted(*known));
      if (trusted) return Assemble(*std::move(known), true, {});
    }
    RETURN_IF_ERROR(found.status());
    if (known.has_value() && IsSlower(found->winner, *known, found->incumbent, found->variants)) {
      ASSIGN_OR_RETURN(const bool holds, HoldsHere(*known));
      if (holds) return Assemble(*std::move(known), false, std::move(found->variants));
      if (first()) state_->cache->Store(found->winner.record, found->variants);
    }
    return Assemble(std::move(found->winner), false, std::move(found->variants));
  }

  /// The variant's number; -1: it is not among them.
  static int NumberOf(const VariantResult& variant, absl::Span<const Variant> variants) {
    const auto at = absl::c_find_if(variants, [&](const Variant& v) {
      return v.config == variant.config && TraceOf(v) == variant.trace;
    });
    return at == variants.end() ? -1 : static_cast<int>(at - variants.begin());
  }

  /// Whether the winner of a tuning that ended before the best of an earlier one, the incumbent,
  /// was timed is slower than that was then.
  static bool IsSlower(const Winner& winner, const Winner& known, int incumbent,
                       absl::Span<const VariantResult> variants) {
    const bool timed = incumbent >= 0 && (variants[incumbent].timing.samples > 0 ||
                                          FailsForGood(variants[incumbent].verdict));
    return !timed && !winner.record.complete &&
           known.record.best.timing.median_us < winner.record.best.timing.median_us;
  }

  const std::shared_ptr<SessionState>& state_;
  Rank& rank_;
  Exchange& exchange_;
  const double start_s_ = Seconds();
  const double budget_s_;
  const Graph program_;
  bool multiplies_ = false;  // matrices
  ConfigSpace space_;
  std::string key_, key_text_;
  std::optional<TuningRecord> known_;
  std::string unfit_;  // why the stored winner is not used; empty: it is, or there is none
};

}  // namespace

absl::StatusOr<LoadedProgram> FindOrTune(const std::shared_ptr<SessionState>& state,
                                         Graph program) {
  return Loader(state, std::move(program), state->options.budget_s).Load();
}

}  // namespace coconet
