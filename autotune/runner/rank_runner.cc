#include "autotune/runner/rank_runner.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "autotune/search/forecast.h"
#include "autotune/search/sizes/small_sizes.h"
#include "autotune/store/wire.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "runtime/plan_memory.h"

namespace coconet {
namespace {

Failure NoMemory(int64_t need, absl::string_view why) {
  return {Verdict::kTooLarge, absl::StrCat("needs ", BytesText(need), " per rank: ", why)};
}

/// Type of the payload of errors that say so: what the smallest variant needs.
constexpr char kOverLimit[] = "coconet/over-memory-limit";

/// Limit of a variant's need of memory, as a multiple of the smallest one: variants that need much
/// more memory also move more bytes. Programs below kSmallNeed have no limit.
constexpr int64_t kMostOfLeast = 2, kSmallNeed = int64_t{1} << 30;

/// Variants whose memory has more bytes on a rank are not moved: it is far larger than caches, and
/// moving it takes long.
constexpr int64_t kMostMoved = int64_t{1} << 30;

}  // namespace

Target TargetOf(const Rank& rank, const Numerics& numerics) {
  Target target(rank.stage_size(), rank.mesh().nodes, rank.mesh().stages, rank.mesh().stages_apart);
  target.numerics = numerics;
  return target;
}

absl::StatusOr<std::unique_ptr<RankRunner>> RankRunner::Create(Rank& rank, const Graph& program,
                                                               const std::vector<Variant>& variants,
                                                               Options options) {
  std::unique_ptr<RankRunner> runner(new RankRunner(rank, program, variants, std::move(options)));
  runner->shrinks_ = !(Shrink(program) == program);
  const bool limited = runner->options_.memory_limit.has_value();
  using Needs = std::map<int64_t, Arena::Needs>;
  ASSIGN_OR_RETURN(Needs needs, runner->LowerFirst(limited));
  if (needs.empty() && runner->leaves_out_) return runner->NoneIsWithin();
  absl::Status made = runner->MakeArena(std::move(needs));
  if (absl::IsResourceExhausted(made) && !limited) {  // others may need less
    ASSIGN_OR_RETURN(needs, runner->LowerFirst(/*all=*/true));
    made = runner->MakeArena(std::move(needs));
  }
  RETURN_IF_ERROR(made);
  const Phases::Part part(runner->options_.phases, Phase::kMakeData);
  RETURN_IF_ERROR(runner->MakeData());
  return runner;
}

RankRunner::MemoryClass RankRunner::MemoryClassOf(const Variant& variant) {
  const Config& config = variant.config;
  return {variant.group, config.one_shot,      config.pieces,
          config.tiles,  config.TileColumns(), config.columns};
}

RankRunner::~RankRunner() {
  if (compiles_ahead()) options_.binaries->CompileAhead({});
}

absl::Status RankRunner::LowerOnce(int variant) {
  if (work_[variant].plans != nullptr) return absl::OkStatus();
  const Phases::Part part(options_.phases, Phase::kLower);
  ASSIGN_OR_RETURN(work_[variant].plans,
                   PlansOf(variants_[variant], TargetOf(rank_, options_.numerics),
                           shrinks_ ? small_ : std::vector<CheckedSize>(),
                           rank_.topology().multiprocessors > 0));
  return absl::OkStatus();
}

absl::StatusOr<std::map<int64_t, Arena::Needs>> RankRunner::LowerFirst(bool all) {
  std::map<int64_t, Arena::Needs> needs;
  alike_.clear();
  const int count = static_cast<int>(variants_.size());
  std::vector<int> order = options_.first;
  for (int v = 0; all && v < count; ++v) {
    if (!absl::c_linear_search(options_.first, v)) order.push_back(v);
  }
  work_.resize(count);
  bool go_on = true;
  for (int v : order) {
    const auto [first, is_new] = alike_.try_emplace(MemoryClassOf(variants_[v]), v);
    Work& work = work_[v];
    const Work& other = work_[first->second];
    const bool is_known =
        !other.failure.has_value() || other.failure->verdict == Verdict::kTooLarge;
    if (!is_new && is_known) {
      work.facts = other.facts;
      work.failure = other.failure;
      continue;
    }
    if (v != options_.first[0] && go_on && options_.go_on) {
      ASSIGN_OR_RETURN(go_on, options_.go_on());
    }
    if (!go_on) {
      if (all) work.failure = Failure{Verdict::kNotMeasured, "no time was left to lower it"};
      continue;
    }
    if (const std::optional<Arena::Needs> own = Learn(v); own.has_value())
      Arena::Include(*own, needs[work.facts.need]);
  }
  return needs;
}

std::optional<Arena::Needs> RankRunner::Learn(int variant) {
  Work& work = work_[variant];
  work.failure.reset();
  if (const absl::Status status = LowerOnce(variant); !status.ok()) {
    work.failure = Failure{Verdict::kLowerError, std::string(status.message())};
    return std::nullopt;
  }
  const Lowered& full = *work.plans->full;
  work.facts = {full.protocol, full.plan.bytes_per_rank, MemoryOf(full.plan).Total(),
                shrinks_ ? work.plans->small[0].at : 0};
  if (const int64_t limit = options_.memory_limit.value_or(work.facts.need);
      work.facts.need > limit) {
    work.failure = NoMemory(work.facts.need, absl::StrCat("the limit is ", BytesText(limit)));
    leaves_out_ = true;
    return std::nullopt;
  }
  least_need_ = least_need_ == 0 ? work.facts.need : std::min(least_need_, work.facts.need);
  Arena::Needs need;
  Arena::Include(full.plan, Temporaries::kShared, need);
  if (!shrinks_) Arena::Include(full.plan, Temporaries::kApart, need);
  for (const VariantPlans::Small& small : work.plans->small) {
    Arena::Include(small.lowered.plan, Temporaries::kShared, need);
    Arena::Include(small.lowered.plan, Temporaries::kApart, need);
  }
  return need;
}

std::optional<int64_t> RankRunner::OverLimit(const absl::Status& status) {
  const absl::optional<absl::Cord> bytes = status.GetPayload(kOverLimit);
  int64_t least = 0;
  if (!bytes.has_value() || !absl::SimpleAtoi(std::string(*bytes), &least)) return std::nullopt;
  return least;
}

absl::Status RankRunner::NoneIsWithin() const {
  int least = -1;
  for (int v = 0; v < std::ssize(work_); ++v) {
    const bool is_known = work_[v].facts.need > 0;
    if (is_known && (least < 0 || work_[v].facts.need < work_[least].facts.need)) least = v;
  }
  const Variant& variant = variants_[least];
  ASSIGN_OR_RETURN(const Lowered lowered,
                   LowerVariant(variant, TargetOf(rank_, options_.numerics)));
  const int peak = PlaceTemporaries(lowered.plan, 0).peak_step;
  std::string at;
  for (const PlacedLaunch& launch : lowered.launches) {
    if (launch.begin <= peak && peak < launch.end)
      at = Described(variant.schedule.graph(), launch.nodes.back());
  }
  if (at.empty() && peak >= 0)
    at = std::visit([](const auto& step) { return step.label; }, lowered.plan.steps[peak]);
  const PlanMemory memory = MemoryOf(lowered.plan);
  absl::Status status = absl::ResourceExhaustedError(absl::StrCat(
      "tune ", NameForMessages(variant.schedule.graph()), ": no schedule fits the memory limit of ",
      *options_.memory_limit, " bytes a rank; the smallest needs ", memory.Total(), ": ",
      Text(memory), at.empty() ? "" : absl::StrCat(", most of which live at ", at),
      "; want a limit of ", memory.Total(), ", smaller sizes or more ranks"));
  status.SetPayload(kOverLimit, absl::Cord(absl::StrCat(memory.Total())));
  return status;
}

bool RankRunner::NeedsTooMuch(int64_t need) const {
  return need > std::max(kMostOfLeast * least_need_, kSmallNeed);
}

/// Makes one arena for all variants; drops those that need too much, and those that need most while
/// memory does not suffice.
absl::Status RankRunner::MakeArena(std::map<int64_t, Arena::Needs> needs) {
  const Phases::Part part(options_.phases, Phase::kAllocate);
  std::string why = absl::StrCat("others need ", BytesText(least_need_));
  int64_t kept = needs.empty() ? 0 : needs.rbegin()->first;
  while (needs.size() > 1 && NeedsTooMuch(needs.rbegin()->first)) {
    needs.erase(std::prev(needs.end()));
    kept = needs.rbegin()->first;
  }
  while (true) {
    for (Work& work : work_) {
      if (!work.failure.has_value() && work.facts.need > kept)
        work.failure = NoMemory(work.facts.need, why);
    }
    Arena::Needs together;
    for (const auto& [need, theirs] : needs) Arena::Include(theirs, together);
    absl::StatusOr<Arena> arena = Arena::Create(rank_, together);
    if (arena.ok()) {
      arena_.emplace(*std::move(arena));
      has_numbers_ = false;
      return absl::OkStatus();
    }
    const int64_t least = needs.empty() ? 0 : needs.begin()->first;
    if (!absl::IsResourceExhausted(arena.status()) || kept <= least) return arena.status();
    why = std::string(arena.status().message());
    kept = least + (kept - least) / 2;
    needs.erase(needs.upper_bound(kept), needs.end());
  }
}

absl::Status RankRunner::MakeRoom(absl::Span<const int> variants) {
  std::vector<std::pair<int, Arena::Needs>> left;  // those that fit, as far as is known
  for (int v : variants) {
    Work& work = work_[v];
    const int other = alike_.try_emplace(MemoryClassOf(variants_[v]), v).first->second;
    if (const std::optional<Failure>& failure = work_[other].failure;
        failure.has_value() && failure->verdict == Verdict::kTooLarge) {
      work.failure = failure;
      work.facts = work_[other].facts;
      continue;
    }
    std::optional<Arena::Needs> needs = Learn(v);
    if (!needs.has_value()) continue;
    if (NeedsTooMuch(work.facts.need))
      work.failure =
          NoMemory(work.facts.need, absl::StrCat("others need ", BytesText(least_need_)));
    else
      left.emplace_back(v, *std::move(needs));
  }
  const Phases::Part part(options_.phases, Phase::kAllocate);
  while (!left.empty()) {
    Arena::Needs together = arena_->needs();
    for (const auto& [v, needs] : left) Arena::Include(needs, together);
    const absl::StatusOr<bool> grown = arena_->Grow(rank_, together);
    if (grown.ok()) {
      has_numbers_ = has_numbers_ && !*grown;
      return absl::OkStatus();
    }
    if (!absl::IsResourceExhausted(grown.status())) return grown.status();
    const auto most = absl::c_max_element(left, [&](const auto& a, const auto& b) {
      return work_[a.first].facts.need < work_[b.first].facts.need;
    });
    work_[most->first].failure = NoMemory(work_[most->first].facts.need, grown.status().message());
    left.erase(most);
  }
  return absl::OkStatus();
}

absl::Status RankRunner::CompileAhead(absl::Span<const int> variants) {
  std::vector<KernelSource> sources;
  for (int v : variants) {
    if (!LowerOnce(v).ok()) continue;  // Compile says why
    const VariantPlans& plans = *work_[v].plans;
    std::vector<const KernelSource*> own = {&plans.full->kernels};
    if (shrinks_) own.push_back(&plans.small[0].lowered.kernels);
    for (const KernelSource* source : own) {
      if (!source->empty() && !absl::c_linear_search(sources, *source)) sources.push_back(*source);
    }
  }
  options_.binaries->CompileAhead(std::move(sources));
  return absl::OkStatus();
}

VariantRunner::Facts RankRunner::FactsOf(int variant) const {
  const Shown& shown = work_[variant].facts;
  return {shown.protocol, shown.traffic * rank_.size()};
}

std::vector<Entrant> RankRunner::Entrants() const {
  std::vector<Entrant> entrants;
  std::vector<std::vector<int>> features = FeaturesOf(variants_);
  VariantResult described;  // the schedule of the variant before
  for (size_t v = 0; v < variants_.size(); ++v) {
    if (v == 0 || !SameSchedule(variants_[v - 1], variants_[v])) described = Describe(variants_[v]);
    Entrant& e = entrants.emplace_back();
    e.result = described;
    e.result.config = variants_[v].config;
    e.features = std::move(features[v]);
    e.prior_us = variants_[v].prior_us;
    e.result.protocol = work_[v].facts.protocol;
    e.result.bytes = work_[v].facts.traffic * rank_.size();
    if (!work_[v].failure.has_value()) continue;
    e.result.verdict = work_[v].failure->verdict;
    e.result.reason = work_[v].failure->reason;
  }
  return entrants;
}

absl::StatusOr<std::vector<std::optional<Failure>>> RankRunner::Compile(
    absl::Span<const int> variants, const std::function<bool()>& stop) {
  std::vector<KernelSource> sources;
  std::map<std::string, int> index = {{"", -1}};  // by text; -1: no kernels
  const auto add = [&](const KernelSource& source) {
    const auto [at, is_new] = index.emplace(source.text(), static_cast<int>(sources.size()));
    if (is_new) sources.push_back(source);
    return at->second;
  };
  std::vector<std::pair<int, int>> needed;  // per variant: indices of its two sources
  std::vector<std::optional<Failure>> failures;
  RETURN_IF_ERROR(MakeRoom(variants));
  for (int v : variants) {
    const bool fails = failures.emplace_back(work_[v].failure).has_value();
    const int full = fails ? -1 : add(work_[v].plans->full->kernels);
    const bool is_small = !fails && shrinks_;
    needed.emplace_back(full, is_small ? add(work_[v].plans->small[0].lowered.kernels) : -1);
  }
  const Phases::Part part(options_.phases, Phase::kCompile);
  CompileWatch watch = options_.watch;
  watch.stop = stop;
  ASSIGN_OR_RETURN(const std::vector<absl::StatusOr<std::string>> binaries,
                   options_.binaries->Compile(sources, watch));
  const auto path_of = [&](int source) -> absl::StatusOr<std::string> {
    return source < 0 ? std::string() : binaries[source];
  };
  for (size_t i = 0; i < variants.size(); ++i) {
    if (failures[i].has_value()) continue;
    const int v = variants[i];
    const absl::StatusOr<std::string> full = path_of(needed[i].first),
                                      small = path_of(needed[i].second);
    if (full.ok() && small.ok()) {
      work_[v].path = *full;
      work_[v].small_path = *small;
      continue;
    }
    const absl::Status& status = full.ok() ? small.status() : full.status();
    // Without a compiler, or where compiling is forbidden, nothing can be tuned.
    if (absl::IsUnavailable(status) || absl::IsFailedPrecondition(status)) return status;
    const Verdict verdict = absl::IsInvalidArgument(status)    ? Verdict::kCompileError
                            : absl::IsDeadlineExceeded(status) ? Verdict::kTimedOut
                                                               : Verdict::kNotMeasured;
    failures[i] = Failure{verdict, std::string(status.message())};
  }
  return failures;
}

double RankRunner::MicrosNow() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

absl::StatusOr<double> RankRunner::TimeSteps(int variant, int steps) {
  Instance& instance = work_[variant].instance;
  const int parts = std::clamp(timing_inputs_->sets(), 1, steps);
  std::chrono::duration<double, std::micro> elapsed{};
  absl::Status status;
  for (int part = 0; part < parts; ++part) {
    if (timing_inputs_->sets() > 1) {
      if (status.ok()) status = timing_inputs_->Write(rank_, instance);
      RETURN_IF_ERROR(rank_.exchange().Barrier());
    }
    const auto start = std::chrono::steady_clock::now();
    if (status.ok())
      status = instance.bound->RunSteps((part + 1) * steps / parts - part * steps / parts);
    elapsed += std::chrono::steady_clock::now() - start;
  }
  RETURN_IF_ERROR(status);
  return elapsed.count();
}

absl::StatusOr<VariantRunner::Sample> RankRunner::Time(int variant, int warm_up, int steps) {
  const Phases::Part part(options_.phases, Phase::kTime);
  BoundPlan& bound = *work_[variant].instance.bound;
  absl::Status status = timing_inputs_->Write(rank_, work_[variant].instance);
  RETURN_IF_ERROR(rank_.exchange().Barrier());
  if (status.ok()) status = bound.RunSteps(warm_up);
  const double begin_us = MicrosNow(), lost_s = SecondsWithoutCore();
  const absl::StatusOr<double> timed = TimeSteps(variant, steps);
  if (status.ok()) status = timed.status();
  const double elapsed_us = timed.value_or(0);
  Packer mine;
  PackStatus(mine, status);
  const double gap_us = begin_us - sampled_us_, lost_before_s = lost_s - waited_s_;
  sampled_us_ = MicrosNow();
  waited_s_ = SecondsWithoutCore();
  mine.Real(elapsed_us / steps).Real(1e6 * (waited_s_ - lost_s) / std::max(elapsed_us, 1.0));
  mine.Real(gap_us).Real(1e6 * lost_before_s);
  const absl::StatusOr<std::vector<std::string>> gathered =
      rank_.exchange().AllGather(mine.bytes());
  // A rank that has lost its GPU may have left, and its own error says more than the exchange's.
  RETURN_IF_ERROR(gathered.ok() || !absl::IsDataLoss(status) ? gathered.status() : status);
  const std::vector<std::string>& all = *gathered;
  Sample sample;
  for (size_t r = 0; r < all.size(); ++r) {
    Unpacker in(all[r]);
    const absl::Status theirs = UnpackStatus(in);
    sample.us = std::max(sample.us, in.Real());
    const double lost = in.Real();
    sample.lost = std::max(sample.lost, lost);
    sample.lost_all += lost;
    sample.gap_us = std::max(sample.gap_us, in.Real());
    sample.lost_before_us = std::max(sample.lost_before_us, in.Real());
    RETURN_IF_ERROR(in.Done());
    if (absl::IsDataLoss(theirs)) return WithContext(theirs, absl::StrCat("rank ", r));
    if (theirs.ok() || (sample.failure.has_value() && absl::IsAborted(theirs))) continue;
    sample.failure = Failure{VerdictOn(theirs), absl::StrCat("rank ", r, ": ", theirs.message())};
  }
  // Threads that outnumber the cores take them from each other.
  const Topology& here = rank_.topology();
  if (here.ranks_per_node * variants_[variant].config.blocks > here.cores)
    sample.lost = sample.lost_all = sample.lost_before_us = 0;
  return sample;
}

absl::StatusOr<bool> RankRunner::MoveMemory() {
  if (rank_.topology().multiprocessors > 0 || Arena::BytesOf(arena_->needs()) > kMostMoved)
    return false;
  const absl::Status room = arena_->Move(rank_, options_.seed + ++moves_);
  if (absl::IsResourceExhausted(room)) return false;
  RETURN_IF_ERROR(room);
  for (int v = 0; v < std::ssize(work_); ++v) {
    Work& work = work_[v];
    if (work.instance.bound == nullptr) continue;
    const Plan& plan = work.plans->full->plan;
    Instance moved;
    ASSIGN_OR_RETURN(const std::optional<Failure> failure,
                     Bind(plan, variants_[v].schedule.program(), *work.module,
                          arena_->Place(rank_, plan, Temporaries::kShared), moved));
    if (failure.has_value()) return false;  // those that are left stay where they are
    work.instance = std::move(moved);
  }
  return true;
}

absl::StatusOr<double> RankRunner::MeetingUs() {
  // Threads that outnumber the cores wait for these, not for each other.
  const Topology& here = rank_.topology();
  if (!starts_warm() || rank_.size() == 1 || here.ranks_per_node > here.cores) return 0;
  constexpr int kMeetings = 200;
  const float one = 1;
  float sum = 0;
  absl::Status status;
  RETURN_IF_ERROR(rank_.exchange().Barrier());
  const double begin_us = MicrosNow();
  for (int i = 0; i < kMeetings && status.ok(); ++i)
    status = rank_.library().AllReduce(&one, &sum, 1, DType::kF32, ReduceKind::kSum);
  const double us = (MicrosNow() - begin_us) / kMeetings;
  RETURN_IF_ERROR(rank_.exchange().Agree(status));
  return us;
}

absl::StatusOr<double> RankRunner::LoadByOthers() { return load_.ByOthers(rank_.exchange()); }

RankRunner::Runnable RankRunner::Take(int variant) {
  Work& work = work_[variant];
  work.instance = {};
  Runnable taken = {work.plans->full, std::move(work.module)};
  work.plans = nullptr;
  return taken;
}

void RankRunner::Unload(int variant) {
  work_[variant].instance = {};
  work_[variant].module = nullptr;
  work_[variant].plans = nullptr;
}

}  // namespace coconet
