#include "autotune/session/load/program_loader.h"

#include <gnu/libc-version.h>

#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "autotune/runner/binaries.h"
#include "autotune/runner/rank_runner.h"
#include "autotune/search/time_budget.h"
#include "autotune/search/variants.h"
#include "autotune/session/explanation.h"
#include "autotune/session/key.h"
#include "autotune/session/load/bucket_winner.h"
#include "autotune/session/load/loading.h"
#include "autotune/session/load/plain_schedule.h"
#include "autotune/session/load/program_search.h"
#include "autotune/session/load/winner_check.h"
#include "autotune/session/online/candidates.h"
#include "autotune/session/sizes/family.h"
#include "autotune/session/sizes/size_buckets.h"
#include "autotune/store/layers/layers.h"
#include "autotune/store/wire.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"
#include "runtime/plan_memory.h"

namespace coconet {
namespace {

CacheLayers CacheLayersOf(const SessionOptions& options) {
  const bool some = options.admits || !options.choice.empty();
  return LayersOf(GetEnv(), some ? ":none:" : options.cache_file);
}

/// State of one FindOrTune.
class Loader {
 public:
  Loader(const std::shared_ptr<SessionState>& state, Graph program, double budget_s,
         LoadTerms terms)
      : loading_(state, std::move(program), budget_s),
        is_part_(terms.is_part),
        family_(std::move(terms.family)),
        bucket_(std::move(terms.bucket)) {
    loading_.typical_rows = std::move(terms.typical_rows);
    loading_.start = std::move(terms.start);
  }

  absl::StatusOr<LoadedProgram> Load() {
    RETURN_IF_ERROR(SetUp());
    RETURN_IF_ERROR(CheckExplores());
    RETURN_IF_ERROR(AskForProducts());
    loading_.space = SpaceOf(loading_.state->topologies, loading_.rank().mesh(),
                             loading_.state->options.sum_order);
    RETURN_IF_ERROR(AskCache());
    ASSIGN_OR_RETURN(std::optional<Winner> known, TakeKnown());
    const bool may_tune = MayTune(*loading_.state);
    const bool explores = loading_.state->options.policy == Policy::kOnline && !bucket_.has_value();
    const bool retune = may_tune && loading_.state->options.retune;
    // `coconet cache retune` has asked for it.
    const bool asked = may_tune && known.has_value() && !known->record.complete &&
                       known->record.search.runs == 0 && known->record.search.tried == 0;
    const bool is_settled = retune || asked || (known.has_value() && known->record.complete);
    if (bucket_.has_value() || !is_settled) {
      ASSIGN_OR_RETURN(std::optional<Winner> bound, TakeBucket());
      if (bound.has_value() && explores) return Explore(*std::move(bound), true);
      if (bound.has_value()) return Assemble(*std::move(bound), true, {});
    }
    std::string unfit;  // why the stored winner is not used
    bool goes_on = asked || (may_tune && loading_.state->options.policy == Policy::kImprove &&
                             known.has_value() && !known->record.complete);
    if (may_tune && known.has_value() && loading_.start.has_value()) {
      ASSIGN_OR_RETURN(const bool has_times, HasTimesOf(*loading_.start, known->record));
      goes_on = loading_.start->anew || !has_times;
    }
    if (known.has_value() && !retune && !goes_on) {
      ASSIGN_OR_RETURN(const bool trusted, IsTrusted(loading_, *known));
      if (!trusted) {
        ASSIGN_OR_RETURN(unfit, WhyUnfit(loading_, *known));
      }
      if (unfit.empty()) {
        CheckSoft(known->record, may_tune);
        if (explores) return Explore(*std::move(known), true);
        TellOfIncomplete(known->record);
        return Assemble(*std::move(known), true, {});
      }
      known.reset();
    }
    if (may_tune) {
      Tell(absl::StrCat("tuning ", ProgramOnRanks(), ", for at most ", loading_.budget_s, " s",
                        known.has_value() ? ", from where an earlier run has ended" : ""));
      return TuneAnew(std::move(known));
    }
    const std::string missed = !unfit.empty() ? unfit : absl::StrCat(kNoRecord, nearest_);
    switch (loading_.state->options.policy) {
      case Policy::kBaselineOnMiss:
        return RunPlainSchedule(missed);
      case Policy::kCacheOnly:
        return absl::NotFoundError(
            absl::StrCat("Compile ", NameForMessages(loading_.program), ": ", missed));
      case Policy::kOnline: {
        ASSIGN_OR_RETURN(Winner plain, PlainSchedule(loading_));
        missed_ = missed;
        return Explore(std::move(plain), false);
      }
      case Policy::kTune:
      case Policy::kImprove:
        break;
    }
    return absl::FailedPreconditionError(
        absl::StrCat("Compile ", NameForMessages(loading_.program), ": ", missed,
                     ", and COCONET_ASSERT_CACHED forbids tuning"));
  }

  /// Collective.
  absl::StatusOr<KnownFamily> Family() {
    RETURN_IF_ERROR(SetUp());
    RETURN_IF_ERROR(AskForProducts());
    KnownFamily known{.text = FamilyText(), .buckets = {}};
    Packer message;
    if (loading_.first()) {
      const std::vector<SizeBucket> buckets = loading_.state->cache->FindBuckets(known.text);
      message.Int(static_cast<int64_t>(buckets.size()));
      for (const SizeBucket& bucket : buckets) message.Text(Encode(bucket));
    }
    ASSIGN_OR_RETURN(const std::string from_first, loading_.exchange().Broadcast(message.bytes()));
    Unpacker in(from_first);
    for (int64_t left = in.Int(); left > 0; --left) {
      ASSIGN_OR_RETURN(known.buckets.emplace_back(), DecodeBucket(in.Text()));
    }
    RETURN_IF_ERROR(in.Done());
    return known;
  }

  /// Collective. What the cache has for the program, in words.
  absl::StatusOr<std::string> Explain() {
    RETURN_IF_ERROR(SetUp());
    RETURN_IF_ERROR(AskForProducts());
    RETURN_IF_ERROR(AskCache());
    std::string text;
    if (loading_.first()) {
      const absl::string_view library = loading_.rank().library().name();
      text =
          known_.empty()
              ? absl::StrCat(kNoRecord, ": ",
                             NearestText(loading_.key_text, loading_.state->cache->KeyTexts()),
                             "\n")
              : ExplainRecord(known_[0], loading_.state->cache->Variants(known_[0].key), library);
    }
    return loading_.exchange().Broadcast(text);
  }

 private:
  static constexpr absl::string_view kNoRecord =
      "no record in the tuning cache for this program, these sizes and this machine";

  /// Collective.
  absl::StatusOr<LoadedProgram> RunPlainSchedule(const std::string& missed) {
    ASSIGN_OR_RETURN(Winner plain, PlainSchedule(loading_));
    loading_.state->Warn(absl::StrCat(
        ProgramOnRanks(), ": ", missed, "; it runs the plain schedule, ",
        plain.record.best.schedule,
        ". To tune it, compile it once with Policy::kTune, or run sweep with the same program, "
        "sizes and ranks, on this machine"));
    missed_ = missed;
    return Assemble(std::move(plain), false, {});
  }
  /// The text of the program's family; "" if it has none.
  std::string FamilyText() const {
    if (!family_.has_value()) return "";
    KeyInputs inputs = KeyInputsOf(family_->symbolic);
    inputs.memory_limit = loading_.state->options.memory_limit;
    return KeyText(inputs);
  }
  KeyInputs KeyInputsOf(const Graph& program) const {
    return {.program = &program,
            .sum_order = loading_.state->options.sum_order,
            .numerics = loading_.state->options.numerics(),
            .mesh = loading_.rank().mesh(),
            .topologies = loading_.state->topologies,
            .compilers = loading_.state->binaries->compilers(),
            .products = multiplies_ ? loading_.state->products : std::vector<std::string>()};
  }

  /// Collective. The variant of the bucket that has the program's sizes, if the cache knows one;
  /// else the nearest bucket's variant becomes a favourite.
  absl::StatusOr<std::optional<Winner>> TakeBucket() {
    if (!family_.has_value()) return std::nullopt;
    const std::string family = FamilyText();
    Packer message;
    if (loading_.first() && bucket_.has_value()) {
      message.Int(1).Text(Encode(*bucket_));
    } else if (loading_.first()) {
      const std::vector<SizeBucket> buckets = loading_.state->cache->FindBuckets(family);
      const int at = BucketOf(buckets, family_->sizes);
      const int near = at >= 0 ? at : NearestBucket(buckets, family_->sizes);
      message.Int(at >= 0 ? 1 : 0).Text(near >= 0 ? Encode(buckets[near]) : "");
    }
    ASSIGN_OR_RETURN(const std::string from_first, loading_.exchange().Broadcast(message.bytes()));
    Unpacker in(from_first);
    const bool has = in.Int() != 0;
    const std::string text = in.Text();
    RETURN_IF_ERROR(in.Done());
    if (text.empty()) return std::nullopt;
    ASSIGN_OR_RETURN(SizeBucket bucket, DecodeBucket(text));
    if (!has) {
      loading_.favourites.push_back({.trace = bucket.trace, .config = bucket.config});
      return std::nullopt;
    }
    ASSIGN_OR_RETURN(std::optional<Winner> winner, BucketWinner(loading_, family, bucket));
    if (!winner.has_value()) return std::nullopt;
    missed_ = BucketText(family_->sizes, bucket);
    if (loading_.first() && loading_.state->options.progress && !bucket_.has_value())
      loading_.state->options.progress(missed_);
    return winner;
  }

  /// Collective. Whether all variants of the start have a time under the record's key.
  absl::StatusOr<bool> HasTimesOf(const Start& start, const TuningRecord& record) const {
    int has = 1;
    if (loading_.first()) {
      const std::vector<VariantResult> known = loading_.state->cache->Variants(record.key);
      has = absl::c_all_of(start.variants, [&](const VariantResult& wanted) {
        return absl::c_any_of(known, [&](const VariantResult& v) {
          return SameVariant(v, wanted) && v.timing.samples > 0;
        });
      });
    }
    ASSIGN_OR_RETURN(has, FromRank0(loading_.exchange(), has));
    return has != 0;
  }

  /// Whether the policy can be heeded here.
  absl::Status CheckExplores() const {
    const bool on_gpus = absl::c_any_of(loading_.state->topologies, [](const Topology& topology) {
      return topology.multiprocessors > 0;
    });
    if (loading_.state->options.policy != Policy::kOnline || !on_gpus) return absl::OkStatus();
    return absl::UnimplementedError(absl::StrCat(
        "Compile ", NameForMessages(loading_.program),
        ": SessionOptions::policy kOnline explores steps on hosts: those of GPUs are enqueued, and "
        "end when no rank looks; want kTune, kCacheOnly or kBaselineOnMiss"));
  }

  /// Collective. The winner, with what steps explore beside it.
  absl::StatusOr<LoadedProgram> Explore(Winner winner, bool from_cache) {
    const VariantResult before = winner.record.best;
    Tell(absl::StrCat("preparing variants of ", ProgramOnRanks(),
                      " that its steps explore, for about ", loading_.budget_s, " s at most"));
    ASSIGN_OR_RETURN(exploration_, PrepareExploration(loading_, winner));
    const bool same = SameVariant(winner.record.best, before);
    return Assemble(std::move(winner), from_cache && same, {});
  }

  void Tell(const std::string& text) {
    if (!is_part_) loading_.state->Tell(text);
  }

  /// "adam f32[1000] on 2 ranks"
  std::string ProgramOnRanks() const {
    const int ranks = loading_.rank().size();
    return absl::StrCat(ProgramText(loading_.key_text), " on ", ranks,
                        ranks == 1 ? " rank" : " ranks");
  }

  void TellOfIncomplete(const TuningRecord& record) {
    if (record.complete || record.pinned) return;
    Tell(absl::StrCat(ProgramOnRanks(), " runs ", record.best.schedule,
                      ", the best of an incomplete tuning (", record.search.tried, " of ",
                      record.variants,
                      " variants were tried); coconet sweep, or Policy::kImprove, "
                      "tunes it further"));
  }

  /// A record of other minor versions is used now, and improved by the next job that may tune.
  void CheckSoft(const TuningRecord& record, bool may_tune) {
    if (!loading_.first() || record.soft == loading_.state->soft) return;
    const bool marks = may_tune && loading_.state->cache->stores();
    loading_.state->Warn(absl::StrCat("tuning cache: the record of ",
                                      NameForMessages(loading_.program), " was tuned with ",
                                      record.soft, ", and here is ", loading_.state->soft,
                                      ": it is used", marks ? ", and sweep tunes it further" : ""));
    if (marks) loading_.state->cache->MarkStale(loading_.key, loading_.state->soft);
  }

  /// Collective.
  absl::StatusOr<std::unique_ptr<Binaries>> OpenBinaries() const {
    return Binaries::Open(loading_.rank(),
                          {.cache_dir = GetEnv().cache_dir,
                           .optimize = loading_.state->options.optimize,
                           .stop = std::make_shared<std::atomic<bool>>(false),
                           .warn = [state = loading_.state.get()](absl::string_view text) {
                             state->Warn(std::string(text));
                           }});
  }

  /// Collective, once per session. Opens the caches and gathers topologies.
  absl::Status SetUp() {
    if (!loading_.state->topologies.empty()) return absl::OkStatus();
    if (loading_.first()) {
      loading_.state->cache = TuningCache::Open(
          CacheLayersOf(loading_.state->options),
          [state = loading_.state.get()](absl::string_view text) {
            state->Warn(std::string(text));
          },
          MayKeep(loading_.state->options.policy) ? TuningCache::Use::kKeep
                                                  : TuningCache::Use::kRead);
    }
    Packer mine;
    mine.Text(Encode(loading_.rank().topology())).Text(gnu_get_libc_version());
    ASSIGN_OR_RETURN(const std::vector<std::string> all,
                     loading_.exchange().AllGather(mine.bytes()));
    std::vector<Topology> topologies;
    std::vector<std::string> libcs;
    for (const std::string& theirs : all) {
      Unpacker in(theirs);
      ASSIGN_OR_RETURN(Topology topology, DecodeTopology(in.Text()));
      topologies.push_back(std::move(topology));
      libcs.push_back(in.Text());
      RETURN_IF_ERROR(in.Done());
    }
    loading_.state->soft = SoftText(topologies, libcs);
    ASSIGN_OR_RETURN(loading_.state->binaries, OpenBinaries());
    loading_.state->topologies = std::move(topologies);
    return absl::OkStatus();
  }

  /// Collective, once per session. Gathers which libraries multiply the program's matrices.
  absl::Status AskForProducts() {
    multiplies_ = absl::c_any_of(loading_.program.nodes, [](const Node& node) {
      return std::holds_alternative<MatMul>(node.op);
    });
    if (!multiplies_ || !loading_.state->products.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(loading_.state->products,
                     loading_.exchange().AllGather(loading_.rank().Products()));
    return absl::OkStatus();
  }

  absl::Status AskCache() {
    Packer message;
    if (loading_.first()) {
      KeyInputs inputs = KeyInputsOf(loading_.program);
      const std::string plain = KeyText(inputs);
      inputs.memory_limit = loading_.state->options.memory_limit;
      const std::string limited = KeyText(inputs);
      message.Text(limited).Text(plain);
      const auto pass_record = [&](const std::string& text) {
        const std::optional<TuningRecord> known = loading_.state->cache->Find(text);
        message.Text(known.has_value() ? Encode(*known) : "");
        return known.has_value();
      };
      const bool found = pass_record(limited), also = limited != plain && pass_record(plain);
      message.Text(
          found || also || MayKeep(loading_.state->options.policy)
              ? ""
              : absl::StrCat(": ", NearestText(limited, loading_.state->cache->KeyTexts())));
    }
    ASSIGN_OR_RETURN(const std::string from_first, loading_.exchange().Broadcast(message.bytes()));
    Unpacker in(from_first);
    loading_.limited_text = in.Text();
    loading_.plain_text = in.Text();
    const int records = loading_.limited_text == loading_.plain_text ? 1 : 2;
    for (int i = 0; i < records; ++i) {
      const std::string record = in.Text();
      if (record.empty()) continue;
      ASSIGN_OR_RETURN(known_.emplace_back(), DecodeRecord(record));
    }
    nearest_ = in.Text();
    RETURN_IF_ERROR(in.Done());
    loading_.UseKey(loading_.limited_text);
    return absl::OkStatus();
  }

  /// Lowers the record's best variant; an error when the record does not hold for this program.
  absl::StatusOr<Winner> LowerRecord(TuningRecord record) const {
    RETURN_IF_ERROR(Validate(record));
    if (record.key_text != loading_.key_text) return absl::DataLossError("its key is another one");
    Winner winner;
    ASSIGN_OR_RETURN(winner.variant, loading_.VariantNamed(record.best.trace, record.best.config));
    Variant& variant = winner.variant;
    ASSIGN_OR_RETURN(Lowered lowered, LowerVariant(variant, loading_.target()));
    variant.lowered = std::make_shared<const Lowered>(std::move(lowered));
    winner.record = std::move(record);
    return winner;
  }

  bool Fits(const Winner& winner) const {
    const std::optional<int64_t> limit = loading_.state->options.memory_limit;
    return !limit.has_value() || MemoryOf(winner.variant.lowered->plan).Total() <= *limit;
  }

  /// Collective. The first stored record, lowered, that holds for this program on all ranks, with a
  /// warning for one that does not, and is within the memory limit.
  absl::StatusOr<std::optional<Winner>> TakeKnown() {
    for (TuningRecord& record : known_) {
      loading_.UseKey(record.key_text == loading_.plain_text ? loading_.plain_text
                                                             : loading_.limited_text);
      absl::StatusOr<Winner> winner = LowerRecord(std::move(record));
      const absl::Status valid = loading_.exchange().Agree(winner.status());
      if (valid.ok() && Fits(*winner)) return std::optional<Winner>(*std::move(winner));
      if (valid.ok()) continue;
      loading_.state->Warn(absl::StrCat("tuning cache: the record of ",
                                        NameForMessages(loading_.program), " does not hold (",
                                        valid.message(), ") and is ignored"));
    }
    loading_.UseKey(loading_.limited_text);
    return std::nullopt;
  }

  /// Collective. Finds or compiles the binary, and loads it.
  absl::StatusOr<std::unique_ptr<Module>> ModuleOf(const KernelSource& source) {
    std::string path;
    if (!source.empty()) {
      ASSIGN_OR_RETURN(const std::vector<absl::StatusOr<std::string>> paths,
                       loading_.state->binaries->Compile({&source, 1}, {}));
      ASSIGN_OR_RETURN(path, paths[0]);
    }
    ASSIGN_OR_RETURN(Binaries::Loaded loaded, loading_.state->binaries->Load(path, source));
    RETURN_IF_ERROR(loaded.status);
    return std::move(loaded.module);
  }

  absl::StatusOr<LoadedProgram> Assemble(Winner winner, bool from_cache,
                                         std::vector<VariantResult> variants) {
    std::shared_ptr<CompiledProgram> compiled = CompiledOf(loading_, std::move(winner.variant));
    compiled->variants = std::move(variants);
    compiled->missed = missed_;
    compiled->exploration = std::move(exploration_);
    compiled->module = std::move(winner.module);
    if (compiled->module == nullptr) {
      ASSIGN_OR_RETURN(compiled->module, ModuleOf(compiled->lowered->kernels));
    }
    ASSIGN_OR_RETURN(const std::optional<Exchange::Difference> differs,
                     loading_.exchange().FindDifference(CodeFingerprint(*compiled->lowered)));
    if (differs.has_value())
      return absl::InternalError(absl::StrCat("Compile: ranks 0 and ", differs->rank,
                                              " made different plans of one schedule"));
    return LoadedProgram{std::move(winner.record), from_cache, std::move(compiled)};
  }

  absl::StatusOr<LoadedProgram> TuneAnew(std::optional<Winner> known) {
    if (loading_.first()) loading_.state->cache->CheckWhole();
    absl::StatusOr<Found> found = Search(loading_, known);
    if (known.has_value() && absl::IsCancelled(found.status())) {
      ASSIGN_OR_RETURN(const bool trusted, IsTrusted(loading_, *known));
      if (trusted) return Assemble(*std::move(known), true, {});
    }
    RETURN_IF_ERROR(found.status());
    if (known.has_value() && IsSlower(found->winner, *known, found->incumbent, found->variants)) {
      ASSIGN_OR_RETURN(const std::string unfit, WhyUnfit(loading_, *known));
      if (unfit.empty()) return Assemble(*std::move(known), false, std::move(found->variants));
      if (loading_.first()) loading_.state->cache->Store(found->winner.record, found->variants);
    }
    return Assemble(std::move(found->winner), false, std::move(found->variants));
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

  Loading loading_;
  const bool is_part_;
  const std::optional<FamilyMember> family_;
  const std::optional<SizeBucket> bucket_;  // that has the program's sizes, if the caller knows it
  bool multiplies_ = false;                 // matrices
  std::shared_ptr<const Exploration> exploration_;  // null: there is none
  std::string missed_;                              // why it runs what was not tuned for it
  std::string nearest_;              // where nothing is known and nothing may be tuned: why
  std::vector<TuningRecord> known_;  // that of the limit first
};

}  // namespace

absl::StatusOr<LoadedProgram> FindOrTune(const std::shared_ptr<SessionState>& state, Graph program,
                                         double budget_s, LoadTerms terms) {
  return Loader(state, std::move(program), budget_s, std::move(terms)).Load();
}

absl::StatusOr<KnownFamily> FindFamily(const std::shared_ptr<SessionState>& state, Graph program,
                                       FamilyMember family) {
  return Loader(state, std::move(program), /*budget_s=*/0, {.family = std::move(family)}).Family();
}

absl::StatusOr<std::string> ExplainStored(const std::shared_ptr<SessionState>& state,
                                          Graph program) {
  return Loader(state, std::move(program), /*budget_s=*/0, {}).Explain();
}

}  // namespace coconet
