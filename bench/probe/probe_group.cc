#include "bench/probe/probe_group.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "autotune/measure/arena.h"
#include "autotune/measure/statistics.h"
#include "autotune/measure/tensors.h"
#include "autotune/measure/test_data.h"
#include "autotune/measure/verifier.h"
#include "autotune/runner/binaries.h"
#include "autotune/runner/rank_runner.h"
#include "autotune/runner/timing_inputs.h"
#include "autotune/runner/variant_plans.h"
#include "autotune/search/choice.h"
#include "autotune/search/small_sizes.h"
#include "autotune/session/key.h"
#include "bench/gpu/gpu_copy.h"
#include "bench/harness/rounds.h"
#include "bench/probe/carried_cubins.h"
#include "bench/probe/small_checks.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"
#include "jit/compile/compiler.h"
#include "runtime/cuda/driver/cuda_module.h"

namespace coconet::bench {
namespace {

constexpr int kTraces = 9;
constexpr int64_t kTile = int64_t{1} << 22;  // elements of data, repeated in longer tensors

/// A line on its way.
struct Work {
  const ProbeLine* line = nullptr;
  Variant variant;
  std::string path;  // of its binary; "": no kernels
  int number = -1;   // among the variants that run
  absl::Status status;
};

class Group {
 public:
  Group(Rank& rank, const ProbeProgram& program, const ProbeOptions& options)
      : rank_(rank),
        program_(program),
        options_(options),
        data_(Expand(program.program), options.seed, rank.stage_size(), DataKind::kInUse),
        rows_(Expand(program.program), options.seed, rank.stage_size()) {}

  absl::Status Run(absl::Span<const ProbeLine> lines) {
    if (rank_.size() != program_.ranks) {
      return absl::InvalidArgumentError(absl::StrCat("sizes: want ranks=", rank_.size(),
                                                     ", as mpirun started processes, have ",
                                                     program_.ranks));
    }
    RETURN_IF_ERROR(Resolve(lines));
    RETURN_IF_ERROR(OpenBinaries());
    RETURN_IF_ERROR(CompileAll());
    RETURN_IF_ERROR(PrepareChecks());
    ASSIGN_OR_RETURN(copy_, MakeCopy(rank_, options_));
    for (Work& work : works_) {
      const bool stops = options_.interrupted && options_.interrupted();
      ASSIGN_OR_RETURN(const double stop, rank_.exchange().Max(stops ? 1 : 0));
      if (stop > 0) return absl::CancelledError("interrupted before it ran");
      if (first() && options_.begins) options_.begins(work.line->number);
      ASSIGN_OR_RETURN(const ProbeResult result, ResultOf(work));
      if (first() && options_.is_done) options_.is_done(result);
    }
    return absl::OkStatus();
  }

 private:
  bool first() const { return rank_.rank() == 0; }

  /// Collective. The variants that lines name, lowered; an error of one is its own.
  absl::Status Resolve(absl::Span<const ProbeLine> lines) {
    ASSIGN_OR_RETURN(const std::vector<std::string> all,
                     rank_.exchange().AllGather(Encode(rank_.topology())));
    std::vector<Topology> topologies;
    for (const std::string& theirs : all) {
      ASSIGN_OR_RETURN(topologies.emplace_back(), DecodeTopology(theirs));
    }
    Chooser chooser(program_.program, SpaceOf(topologies, rank_.mesh(), program_.sum_order));
    for (const ProbeLine& line : lines) {
      Work& work = works_.emplace_back();
      work.line = &line;
      absl::StatusOr<Variant> variant = chooser.One(line.choice());
      absl::StatusOr<Lowered> lowered = variant.ok() ? LowerVariant(*variant, TargetOf(rank_))
                                                     : absl::StatusOr<Lowered>(variant.status());
      work.status = lowered.status();  // the same on all ranks, of the same topologies
      if (!work.status.ok()) continue;
      work.variant = *std::move(variant);
      work.variant.lowered = std::make_shared<const Lowered>(*std::move(lowered));
    }
    return absl::OkStatus();
  }

  /// Whether the world runs nothing more after the error.
  static bool Ends(const absl::Status& status) {
    return absl::IsDataLoss(status) || absl::IsAborted(status) || absl::IsDeadlineExceeded(status);
  }

  absl::Status OpenBinaries() {
    const Topology& here = rank_.topology();
    stop_ = std::make_shared<std::atomic<bool>>(false);
    const CompilerOptions compiler{
        .cache_dir = options_.cache_dir, .stop = stop_, .driver = here.driver};
    if (!options_.cubins.empty() && here.arch.empty()) {
      return absl::InvalidArgumentError(
          "--cubins: only GPUs run cubins; leave it out, or say --backend=cuda");
    }
    const auto make = [this, compiler, &here]() -> absl::StatusOr<std::shared_ptr<Compiler>> {
      if (options_.cubins.empty()) return MakeCompilerFor(here.arch, here.simulated, compiler);
      ASSIGN_OR_RETURN(std::shared_ptr<BinaryCache> cache, BinaryCache::Open(compiler.cache_dir));
      return MakeCarriedCubins(options_.cubins, here.arch, std::move(cache));
    };
    ASSIGN_OR_RETURN(binaries_,
                     Binaries::Open(rank_, {.target = BinaryTarget(here.arch, here.driver),
                                            .cache_dir = options_.cache_dir,
                                            .compiler = make,
                                            .stop = stop_}));
    return absl::OkStatus();
  }

  absl::Status CompileAll() {
    std::vector<KernelSource> sources;
    for (const Work& work : works_) {
      const bool compiles = work.status.ok() && !work.variant.lowered->kernels.empty();
      if (compiles && !absl::c_linear_search(sources, work.variant.lowered->kernels))
        sources.push_back(work.variant.lowered->kernels);
    }
    CompileWatch watch;
    if (first()) watch.stop = options_.interrupted;
    ASSIGN_OR_RETURN(const std::vector<absl::StatusOr<std::string>> paths,
                     binaries_->Compile(sources, watch));
    for (Work& work : works_) {
      if (!work.status.ok() || work.variant.lowered->kernels.empty()) continue;
      const auto at = absl::c_find(sources, work.variant.lowered->kernels) - sources.begin();
      work.status = paths[at].status();
      if (work.status.ok()) work.path = *paths[at];
    }
    return absl::OkStatus();
  }

  absl::Status PrepareChecks() {
    std::vector<Variant> variants;
    Arena::Needs needs;
    for (Work& work : works_) {
      if (!work.status.ok()) continue;
      work.number = static_cast<int>(variants.size());
      variants.push_back(work.variant);
      Arena::Include(work.variant.lowered->plan, Temporaries::kShared, needs);
    }
    if (variants.empty()) return absl::OkStatus();
    if (options_.verify) {
      ASSIGN_OR_RETURN(checks_, SmallChecks::Make(rank_, program_.program, variants, *binaries_,
                                                  options_.seed, options_.interrupted));
    }
    // Where it does not suffice for the lines together, each has an arena of its own.
    absl::StatusOr<Arena> arena = Arena::Create(rank_, needs);
    if (!arena.ok() && !absl::IsResourceExhausted(arena.status())) return arena.status();
    if (arena.ok()) arena_.emplace(*std::move(arena));
    return absl::OkStatus();
  }

  /// Collective.
  absl::StatusOr<ProbeResult> ResultOf(Work& work) {
    ProbeResult result;
    result.line = work.line->number;
    result.text = work.line->text;
    result.ranks = rank_.size();
    if (work.status.ok()) {
      work.status = Measure(work, result);
      if (Ends(work.status)) return work.status;
    }
    if (!work.status.ok()) result.error = std::string(work.status.message());
    return result;
  }

  absl::Status Measure(const Work& work, ProbeResult& result) {
    const Lowered& lowered = *work.variant.lowered;
    const VariantResult described = Describe(work.variant);
    result.schedule = described.schedule;
    result.trace = described.trace;
    result.config = work.variant.apart != nullptr ? "" : Text(described.config);
    result.protocol = lowered.protocol;
    result.device = rank_.topology().device;
    result.note = rank_.topology().note;
    result.bytes = lowered.plan.bytes_per_rank * rank_.size();
    if (checks_ != nullptr) {
      ASSIGN_OR_RETURN(const SmallChecks::Checked checked, checks_->Check(work.number));
      if (checked.failure.has_value()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "not timed: ", Name(checked.failure->verdict), ": ", checked.failure->reason));
      }
      result.verified = checked.at;
    }
    ASSIGN_OR_RETURN(Binaries::Loaded loaded, binaries_->Load(work.path, lowered.kernels));
    RETURN_IF_ERROR(loaded.status);
    Instance instance;
    std::optional<Arena> own;  // outlives `instance`'s plan
    RETURN_IF_ERROR(Bind(work, *loaded.module, own, instance));
    RETURN_IF_ERROR(MeasureStep(
        rank_, [&](int64_t steps) { return instance.bound->RunSteps(steps); }, copy_.get(),
        options_, result));
    RETURN_IF_ERROR(Look(lowered.plan, *loaded.module, *instance.bound, result));
    return absl::OkStatus();
  }

  absl::Status Bind(const Work& work, const Module& module, std::optional<Arena>& own,
                    Instance& instance) {
    const Plan& plan = work.variant.lowered->plan;
    if (!arena_.has_value()) {
      Arena::Needs needs;
      Arena::Include(plan, Temporaries::kShared, needs);
      ASSIGN_OR_RETURN(Arena arena, Arena::Create(rank_, needs));
      own.emplace(std::move(arena));
      filled_.clear();
    }
    instance.plan = &plan;
    instance.tensors = PlaceTensors(work.variant.schedule.program().Expanded(), plan);
    instance.memory = (own.has_value() ? *own : *arena_).Place(rank_, plan, Temporaries::kShared);
    instance.buffers = Pointers(instance.memory);
    RETURN_IF_ERROR(rank_.exchange().Agree(Fill(instance)));
    constexpr double kWaitSeconds = 10, kSlowestBytesPerSecond = 1e8;
    const double wait_s =
        std::min(GetEnv().timeout_s,
                 kWaitSeconds + static_cast<double>(plan.bytes_per_rank) / kSlowestBytesPerSecond);
    absl::StatusOr<std::unique_ptr<BoundPlan>> bound =
        rank_.Bind(plan, module, instance.buffers, wait_s);
    RETURN_IF_ERROR(rank_.exchange().Agree(bound.status()));
    instance.bound = *std::move(bound);
    return rank_.exchange().Agree(rows_.Write(rank_, instance));
  }

  /// Writes ordinary numbers to inputs and states, those of a tile over and over in long ones,
  /// unless a line before has.
  absl::Status Fill(const Instance& instance) {
    for (const PlacedTensor& tensor : instance.tensors) {
      if (tensor.role != BufferRole::kInput && tensor.role != BufferRole::kState) continue;
      Memory& memory = *instance.buffers[tensor.buffer];
      const int64_t bytes = BytesOn(rank_, instance.plan->buffers[tensor.buffer]);
      const auto size = static_cast<int64_t>(SizeOf(tensor.type.dtype));
      const int64_t elements = std::min(NumElements(tensor.type.shape), kTile);
      int64_t& filled = filled_[tensor.name];
      if (bytes <= filled || elements == 0) continue;
      std::vector<char> tile(static_cast<size_t>(elements * size));
      data_.Fill(tensor.name, rank_.rank(), {.runs = 1, .run = elements}, tile.data());
      const auto tile_bytes = static_cast<int64_t>(tile.size());
      for (int64_t at = 0; at < bytes; at += tile_bytes)
        RETURN_IF_ERROR(memory.Write(at, std::min(tile_bytes, bytes - at), tile.data()));
      filled = bytes;
    }
    return absl::OkStatus();
  }

  /// What kernels take, and how long launches take by the GPU's clock.
  absl::Status Look(const Plan& plan, const Module& module, BoundPlan& bound, ProbeResult& result) {
    for (const Step& step : plan.steps) {
      const auto* kernel = std::get_if<KernelStep>(&step);
      if (kernel == nullptr) continue;
      ProbedKernel& probed = result.kernels.emplace_back();
      probed.label = kernel->label;
      probed.blocks = kernel->blocks;
      probed.threads = kernel->threads;
      const absl::StatusOr<KernelFootprint> footprint =
          FootprintOf(module, kernel->symbol, kernel->threads);
      if (absl::IsUnimplemented(footprint.status())) continue;
      RETURN_IF_ERROR(footprint.status());
      probed.has_footprint = true;
      probed.registers = footprint->registers;
      probed.resident_blocks = footprint->resident_blocks;
      probed.shared_bytes = footprint->shared_bytes;
      probed.stack_bytes = footprint->stack_bytes;
    }
    std::vector<std::vector<double>> times;
    std::vector<StepSpan> spans;
    for (int i = 0; i < kTraces; ++i) {
      RETURN_IF_ERROR(rank_.exchange().Barrier());
      absl::StatusOr<std::vector<StepSpan>> traced = bound.Trace();
      const absl::Status all = rank_.exchange().Agree(traced.status());
      if (absl::IsUnimplemented(all)) return absl::OkStatus();
      RETURN_IF_ERROR(all);
      spans = *std::move(traced);
      times.resize(spans.size());
      for (size_t s = 0; s < spans.size(); ++s)
        times[s].push_back(spans[s].end_us - spans[s].begin_us);
      if (rank_.topology().simulated) break;
    }
    for (size_t s = 0; s < spans.size(); ++s)
      result.launches_us.emplace_back(spans[s].label, Median(times[s]));
    return absl::OkStatus();
  }

  Rank& rank_;
  const ProbeProgram& program_;
  const ProbeOptions& options_;
  const TestData data_;
  TimingInputs rows_;
  std::vector<Work> works_;
  std::shared_ptr<std::atomic<bool>> stop_;
  std::unique_ptr<Binaries> binaries_;
  std::unique_ptr<SmallChecks> checks_;    // null: nothing is verified
  std::optional<Arena> arena_;             // of all lines; none: each has its own
  std::map<std::string, int64_t> filled_;  // bytes by tensor
  std::unique_ptr<CopyContender> copy_;    // null: none is measured
};

}  // namespace

absl::StatusOr<std::unique_ptr<CopyContender>> MakeCopy(Rank& rank, const ProbeOptions& options) {
  if (options.copied_bytes == 0 || rank.topology().simulated) return nullptr;
  ASSIGN_OR_RETURN(const std::unique_ptr<Memory> somewhere, rank.Allocate(1, false));
  absl::StatusOr<Copies> copies =
      somewhere->space() == nullptr ? CopiesOnHost() : CopiesOnGpu(somewhere->space()->gpu());
  RETURN_IF_ERROR(rank.exchange().Agree(copies.status()));
  absl::StatusOr<std::unique_ptr<CopyContender>> copy =
      CopyContender::Make(rank, options.copied_bytes, *std::move(copies));
  RETURN_IF_ERROR(rank.exchange().Agree(copy.status()));
  return copy;
}

absl::Status MeasureStep(Rank& rank, std::function<absl::Status(int64_t steps)> run,
                         CopyContender* copy, const ProbeOptions& options, ProbeResult& result) {
  std::vector<Contender> contenders = {{"line", std::move(run)}};
  if (copy != nullptr)
    contenders.push_back({"copy", [&](int64_t steps) { return copy->Run(steps); }});
  RoundTerms terms{.seconds = options.seconds};
  if (rank.topology().simulated) terms = {.seconds = 0, .min_rounds = 1, .steps = 1};
  ASSIGN_OR_RETURN(const std::vector<Measured> measured, MeasureInRounds(rank, contenders, terms));
  const Timing& timing = measured[0].timing;
  result.us = timing.median_us;
  result.low_us = timing.low_us;
  result.high_us = timing.high_us;
  result.samples = timing.samples;
  if (copy != nullptr && measured[1].timing.median_us > 0) {
    result.copy_gb_s =
        2e-3 * static_cast<double>(options.copied_bytes) / measured[1].timing.median_us;
  }
  return absl::OkStatus();
}

absl::Status ProbeGroup(Rank& rank, const ProbeProgram& program, absl::Span<const ProbeLine> lines,
                        const ProbeOptions& options) {
  return Group(rank, program, options).Run(lines);
}

absl::StatusOr<std::vector<std::string>> SourcesOf(const ProbeLine& line,
                                                   const ProbeProgram& program,
                                                   const AssumedWorld& world) {
  ASSIGN_OR_RETURN(const Variant variant, Chooser(program.program, world.space).One(line.choice()));
  const bool shrinks = !(Shrink(program.program) == program.program);
  ASSIGN_OR_RETURN(
      const std::unique_ptr<const VariantPlans> plans,
      PlansOf(variant, world.target,
              shrinks ? CheckedSizes(world.target.ranks) : std::vector<CheckedSize>()));
  std::set<std::string> sources = {plans->full->kernels.text()};
  for (const VariantPlans::Small& small : plans->small)
    sources.insert(small.lowered.kernels.text());
  sources.erase("");
  return std::vector<std::string>(sources.begin(), sources.end());
}

}  // namespace coconet::bench
