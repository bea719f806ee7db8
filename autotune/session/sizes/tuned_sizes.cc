#include "autotune/session/sizes/tuned_sizes.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "autotune/search/parts.h"
#include "autotune/search/variants.h"
#include "autotune/session/key.h"
#include "autotune/session/load/loading.h"
#include "autotune/session/load/program_loader.h"
#include "autotune/session/session_state.h"
#include "autotune/session/sizes/family.h"
#include "autotune/session/sizes/range_tuner.h"
#include "autotune/session/sizes/size_buckets.h"
#include "coconet/base/status.h"
#include "runtime/plan_memory.h"

namespace coconet {

/// What all copies of a TunedSizes share.
struct TunedSizesRep {
  std::shared_ptr<SessionState> session;
  Graph symbolic;  // canonical
  SizeRanges ranges;
  std::string family_text;
  TunedRange tuned;
  ConfigSpace space;
  /// The modules of verified kernels, by bucket and FamilyCode.
  std::vector<std::map<std::string, std::shared_ptr<const Module>>> modules;
  /// By bucket, the program and its schedule at one size, of which those at other sizes are copies
  /// with other shapes; none if they differ in more.
  struct Template {
    Graph program;
    Schedule schedule;
  };
  std::vector<std::optional<Template>> templates;
  /// The last programs, the newest last, by their sizes in the order of symbols.
  std::deque<std::pair<std::vector<int64_t>, TunedProgram>> recent;
};

namespace {

constexpr size_t kRecent = 64;

std::vector<int64_t> NumbersOf(const Sizes& sizes) {
  std::vector<int64_t> numbers;
  numbers.reserve(sizes.size());
  for (const auto& [symbol, size] : sizes) numbers.push_back(size.sizes[0]);
  return numbers;
}

absl::StatusOr<Graph> Bound(const TunedSizesRep& rep, const Sizes& sizes) {
  ASSIGN_OR_RETURN(const Graph bound, BindSizes(rep.symbolic, sizes));
  ASSIGN_OR_RETURN(Schedule canonical, InitialSchedule(bound));
  return canonical.graph();
}

/// The template at these sizes; none if they need shapes that it does not have.
std::optional<TunedSizesRep::Template> TemplateAt(const TunedSizesRep& rep, int bucket,
                                                  const Sizes& sizes) {
  const std::optional<TunedSizesRep::Template>& of = rep.templates[bucket];
  if (!of.has_value()) return std::nullopt;
  std::optional<Graph> program = WithSizesOf(of->program, rep.symbolic, sizes);
  std::optional<Graph> graph = WithSizesOf(of->schedule.graph(), rep.symbolic, sizes);
  if (!program.has_value() || !graph.has_value()) return std::nullopt;
  absl::StatusOr<TypedGraph> typed = TypedGraph::Of(*std::move(graph));
  if (!typed.ok() || !HasSamePattern(*typed, of->schedule.program())) return std::nullopt;
  return TunedSizesRep::Template{*std::move(program), of->schedule.Resized(*std::move(typed))};
}

/// Makes the bucket's template of its first program; later ones show whether it holds.
void KeepTemplate(TunedSizesRep& rep, int bucket, const Sizes& sizes, bool is_first,
                  const CompiledProgram& compiled) {
  std::optional<TunedSizesRep::Template>& of = rep.templates[bucket];
  if (is_first) of = TunedSizesRep::Template{compiled.program, compiled.schedule};
  const std::optional<TunedSizesRep::Template> made = TemplateAt(rep, bucket, sizes);
  if (!made.has_value() || !(made->program == compiled.program) ||
      Print(made->schedule) != Print(compiled.schedule))
    of = std::nullopt;
}

/// Collective. The program by way of the caches: compiled, and verified unless that was done.
absl::StatusOr<LoadedProgram> LoadAt(TunedSizesRep& rep, int bucket, const Sizes& sizes) {
  ASSIGN_OR_RETURN(Graph bound, Bound(rep, sizes));
  SessionState& session = *rep.session;
  LoadTerms terms{.typical_rows = session.options.typical_rows};
  terms.family = FamilyMember{rep.symbolic, sizes};
  terms.bucket = rep.tuned.buckets[bucket];
  ASSIGN_OR_RETURN(LoadedProgram loaded, FindOrTune(rep.session, std::move(bound),
                                                    session.options.budget_s, std::move(terms)));
  const VariantResult& best = loaded.record.best;
  const SizeBucket& of = rep.tuned.buckets[bucket];
  if (best.trace == of.trace && best.config == of.config) {
    if (!IsCombination(of.trace))
      KeepTemplate(rep, bucket, sizes, rep.modules[bucket].empty(), *loaded.compiled);
    rep.modules[bucket].emplace(FamilyCode(of.trace, of.config, *loaded.compiled->lowered),
                                loaded.compiled->module);
  } else {
    rep.templates[bucket].reset();
  }
  return loaded;
}

/// Collective. Loads the kernels of each bucket at sizes of different kinds.
absl::Status LoadBuckets(TunedSizesRep& rep) {
  rep.modules.resize(rep.tuned.buckets.size());
  rep.templates.resize(rep.tuned.buckets.size());
  for (int b = 0; b < std::ssize(rep.tuned.buckets); ++b) {
    const SizeRanges box = rep.tuned.buckets[b].box;
    const SizeRange& main = box.at(rep.tuned.main_symbol);
    const int64_t middle = MiddleOf(main.lo, main.hi);
    const std::set<int64_t> probes = {main.lo, std::min(middle | 1, main.hi), middle,
                                      std::max(main.lo, main.hi - 1), main.hi};
    for (int64_t size : probes) {
      Sizes sizes;
      for (const auto& [symbol, range] : box)
        sizes.emplace(symbol, symbol == rep.tuned.main_symbol ? size : range.hi);
      RETURN_IF_ERROR(LoadAt(rep, b, sizes).status());
    }
  }
  return absl::OkStatus();
}

/// The bucket's variant at these sizes, by kernels that are loaded; null: there are none, or the
/// variant does not hold for these sizes.
absl::StatusOr<std::shared_ptr<CompiledProgram>> FromLoaded(const TunedSizesRep& rep, int bucket,
                                                            const Sizes& sizes) {
  const SizeBucket& of = rep.tuned.buckets[bucket];
  const std::shared_ptr<CompiledProgram> none;
  std::optional<TunedSizesRep::Template> made = TemplateAt(rep, bucket, sizes);
  Graph bound;
  if (made.has_value()) {
    bound = std::move(made->program);
  } else {
    ASSIGN_OR_RETURN(bound, Bound(rep, sizes));
  }
  Loading loading(rep.session, std::move(bound), /*budget_s=*/0);
  loading.space = rep.space;
  Variant variant;
  if (made.has_value()) {
    variant.schedule = std::move(made->schedule);
    variant.config = of.config;
  } else {
    absl::StatusOr<Variant> named = loading.VariantNamed(of.trace, of.config);
    if (!named.ok()) return none;
    variant = *std::move(named);
  }
  absl::StatusOr<Lowered> lowered = LowerVariant(variant, loading.target());
  if (!lowered.ok()) return none;
  const int64_t need = MemoryOf(lowered->plan).Total();
  if (need > rep.session->options.memory_limit.value_or(need)) return none;
  const auto module = rep.modules[bucket].find(FamilyCode(of.trace, of.config, *lowered));
  if (module == rep.modules[bucket].end()) return none;
  variant.lowered = std::make_shared<const Lowered>(*std::move(lowered));
  std::shared_ptr<CompiledProgram> compiled = CompiledOf(loading, std::move(variant));
  compiled->module = module->second;
  return compiled;
}

}  // namespace

absl::StatusOr<TunedSizes> TunedSizes::FindOrTune(const std::shared_ptr<SessionState>& session,
                                                  const Graph& program, const SizeRanges& ranges) {
  auto rep = std::make_shared<TunedSizesRep>();
  rep->session = session;
  rep->ranges = ranges;
  Sizes lowest;
  for (const auto& [symbol, range] : ranges) lowest.emplace(symbol, range.lo);
  FamilyMember member = MemberOf(program, lowest);
  rep->symbolic = member.symbolic;
  ASSIGN_OR_RETURN(Graph bound, Bound(*rep, lowest));
  ASSIGN_OR_RETURN(KnownFamily known, FindFamily(session, std::move(bound), std::move(member)));
  rep->family_text = known.text;
  rep->space = SpaceOf(session->topologies, session->rank.mesh(), session->options.sum_order);
  std::vector<SizeBucket> within = BucketsWithin(known.buckets, ranges);
  const std::optional<SizeRanges> missing = FirstUncovered(ranges, within);
  const bool retune = session->options.retune && MayTune(*session);
  if (!missing.has_value() && !retune) {
    rep->tuned = {MainSymbolOf(ranges), std::move(within), {}};
  } else if (!MayTune(*session)) {
    return absl::NotFoundError(absl::StrCat(
        "CompileRange ", NameForMessages(program), ": the tuning cache knows no variant for ",
        Text(*missing), "; tune the range once with Policy::kTune, or by sweep"));
  } else {
    if (session->cache != nullptr) session->cache->CheckWhole();
    ASSIGN_OR_RETURN(rep->tuned, TuneRange(session, rep->symbolic, ranges));
    if (!rep->tuned.decided)
      session->Warn(absl::StrCat("CompileRange ", NameForMessages(program), ": the budget, ",
                                 session->options.budget_s,
                                 " s, ended before variants were compared: sizes run the plain "
                                 "schedule, and the tuning cache keeps no range"));
    else if (session->cache != nullptr && session->cache->stores())
      session->cache->StoreBuckets(rep->family_text, rep->tuned.buckets);
  }
  if (session->options.policy == Policy::kOnline)
    session->Warn(absl::StrCat("online: CompileRange ", NameForMessages(program),
                               ": nothing is explored: steps run the variants of the tuned range"));
  RETURN_IF_ERROR(LoadBuckets(*rep));
  return TunedSizes(std::move(rep));
}

const SizeRanges& TunedSizes::ranges() const { return rep_->ranges; }
const std::vector<SizeBucket>& TunedSizes::buckets() const { return rep_->tuned.buckets; }
const std::vector<TunedSizes::Point>& TunedSizes::points() const { return rep_->tuned.points; }
const std::string& TunedSizes::main_symbol() const { return rep_->tuned.main_symbol; }

absl::StatusOr<TunedProgram> TunedSizes::At(const Sizes& sizes) const {
  TunedSizesRep& rep = *rep_;
  ENTER_CALL(rep.session->gate, "At");
  RETURN_IF_ERROR(rep.session->poison);
  const int bucket = Contains(rep.ranges, sizes) ? BucketOf(rep.tuned.buckets, sizes) : -1;
  if (bucket < 0)
    return absl::InvalidArgumentError(absl::StrCat("At ", NameForMessages(rep.symbolic),
                                                   ": want sizes in ", Text(rep.ranges), ", have ",
                                                   Words(sizes)));
  std::vector<int64_t> numbers = NumbersOf(sizes);
  for (auto last = rep.recent.rbegin(); last != rep.recent.rend(); ++last) {
    if (last->first == numbers) return last->second;
  }
  TunedProgram program;
  program.from_cache_ = true;
  ASSIGN_OR_RETURN(std::shared_ptr<CompiledProgram> compiled, FromLoaded(rep, bucket, sizes));
  TuningRecord record;
  if (compiled == nullptr) {
    ASSIGN_OR_RETURN(LoadedProgram loaded, LoadAt(rep, bucket, sizes));
    record = std::move(loaded.record);
    program.compiled_ = std::move(loaded.compiled);
  } else {
    const SizeBucket& of = rep.tuned.buckets[bucket];
    record.best = {.trace = of.trace,
                   .schedule = of.schedule,
                   .protocol = compiled->lowered->protocol,
                   .config = of.config,
                   .bytes = compiled->lowered->plan.bytes_per_rank * rep.session->rank.size()};
    record.baseline = record.best;
    record.variants = 1;
    compiled->missed = BucketText(sizes, of);
    compiled->sizes = Words(sizes);
    program.compiled_ = std::move(compiled);
  }
  program.record_ = std::make_shared<const TuningRecord>(std::move(record));
  if (rep.recent.size() == kRecent) rep.recent.pop_front();
  rep.recent.emplace_back(std::move(numbers), program);
  return program;
}

}  // namespace coconet
