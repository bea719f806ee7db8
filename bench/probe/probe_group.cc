#include "bench/probe/probe_group.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

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
#include "autotune/search/parts.h"
#include "autotune/search/sizes/small_sizes.h"
#include "bench/gpu/ceilings.h"
#include "bench/probe/carried_cubins.h"
#include "bench/probe/probe_row.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"
#include "jit/compile/compiler.h"

namespace coconet::bench {
namespace {

constexpr int64_t kTile = int64_t{1} << 22;  // elements of data, repeated in longer tensors

/// A line, and what it has become so far.
struct Work {
  const ProbeLine* line = nullptr;
  Variant variant;
  /// The path of its binary, "" without kernels; or why the line does not run.
  absl::StatusOr<std::string> path = "";
  int number = -1;  // among the variants that run

  const KernelSource& kernels() const { return variant.lowered->kernels; }
  bool compiles() const { return path.ok() && !kernels().empty(); }
};

/// The variants at one size.
struct SizeChecks {
  Graph program;
  std::vector<Variant> variants;
  std::vector<int> numbers;  // by variant given: its number here; -1: not at this size
  std::vector<std::optional<Failure>> compiled;
  std::unique_ptr<RankRunner> runner;
};
using AllChecks = std::vector<std::unique_ptr<SizeChecks>>;

/// The variant at a size, or at its own if `size` is null.
absl::StatusOr<Variant> At(const Variant& variant, const CheckedSize* size) {
  if (size == nullptr) return variant;
  const Graph& own = variant.schedule.graph();
  if (variant.apart != nullptr) {
    ASSIGN_OR_RETURN(Combination small, Resized(*variant.apart, SmallExtents(own, size->size)));
    return VariantOf(std::move(small));
  }
  ASSIGN_OR_RETURN(TypedGraph typed, TypedGraph::Of(Shrink(own, size->size)));
  return Variant{.schedule = variant.schedule.Resized(std::move(typed)), .config = variant.config};
}

/// The checks of the variants that a size allows. `sources` has, by variant, the kernels of its
/// first size: a size with other kernels does not check the variant.
std::unique_ptr<SizeChecks> VariantsAt(const CheckedSize* size,
                                       const std::vector<Variant>& variants, const Target& target,
                                       std::vector<std::optional<std::string>>& sources) {
  auto here = std::make_unique<SizeChecks>();
  for (size_t v = 0; v < variants.size(); ++v) {
    here->numbers.push_back(-1);
    const absl::StatusOr<Variant> small = At(variants[v], size);
    if (!small.ok()) continue;
    const absl::StatusOr<Lowered> lowered = LowerVariant(*small, target);
    if (!lowered.ok() || sources[v].value_or(lowered->kernels.text()) != lowered->kernels.text())
      continue;
    sources[v] = lowered->kernels.text();
    here->numbers.back() = static_cast<int>(here->variants.size());
    here->variants.push_back(*small);
    here->variants.back().group = static_cast<int>(v);
  }
  return here;
}

absl::StatusOr<std::optional<Failure>> CheckAt(const AllChecks& sizes, int variant,
                                               std::string& at) {
  int checked = 0;
  for (const std::unique_ptr<SizeChecks>& size : sizes) {
    const int number = size->numbers[variant];
    if (number < 0) continue;
    std::optional<Failure> failure = size->compiled[number];
    if (!failure.has_value()) {
      ASSIGN_OR_RETURN(failure, size->runner->Load(number));
    }
    if (failure.has_value()) return failure;
    size->runner->Unload(number);
    ++checked;
  }
  at = absl::StrCat("at ", checked, checked == 1 ? " small size" : " small sizes");
  if (checked > 0) return std::nullopt;
  return Failure{Verdict::kLowerError, "it cannot be lowered at any small size"};
}

/// Why a variant is not right; none: it is, `at` "5 small sizes", say. Collective. An error means
/// that the ranks lost contact or a GPU runs nothing more.
using SmallCheck =
    std::function<absl::StatusOr<std::optional<Failure>>(int variant, std::string& at)>;

/// Collective. Verifies variants at the sizes at which a search does (CheckedSizes), against the
/// interpreter; compiles them for these sizes first. `program` and `variants` are bound; a program
/// that is small already is checked at its own size. The result lives no longer than `binaries`.
absl::StatusOr<SmallCheck> CheckAtSmallSizes(Rank& rank, const Graph& program,
                                             const std::vector<Variant>& variants,
                                             Binaries& binaries, uint64_t seed,
                                             const std::function<bool()>& interrupted) {
  const std::vector<CheckedSize> all = CheckedSizes(rank.stage_size());
  std::vector<const CheckedSize*> wanted = {nullptr};  // its own
  if (!(Shrink(program) == program)) {
    wanted.clear();
    for (const CheckedSize& size : all) wanted.push_back(&size);
  }
  std::vector<std::optional<std::string>> sources(variants.size());
  const auto sizes = std::make_shared<AllChecks>();
  for (const CheckedSize* size : wanted) {
    std::unique_ptr<SizeChecks> here = VariantsAt(size, variants, TargetOf(rank), sources);
    if (here->variants.empty()) continue;
    here->program = size == nullptr ? program : Shrink(program, size->size);
    absl::StatusOr<std::unique_ptr<RankRunner>> runner =
        RankRunner::Create(rank, here->program, here->variants,
                           {.seed = seed, .binaries = &binaries, .interrupted = interrupted});
    // With a few elements the interpreter may leave too much undetermined.
    if (size != nullptr && size->tiny && absl::IsFailedPrecondition(runner.status())) continue;
    RETURN_IF_ERROR(runner.status());
    here->runner = *std::move(runner);
    std::vector<int> numbers(here->variants.size());
    std::iota(numbers.begin(), numbers.end(), 0);
    ASSIGN_OR_RETURN(here->compiled, here->runner->Compile(numbers, interrupted));
    sizes->push_back(std::move(here));
  }
  return [sizes](int variant, std::string& at) { return CheckAt(*sizes, variant, at); };
}

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
    ASSIGN_OR_RETURN(copy_, CopyBeside(rank_, options_));
    for (const Work& work : works_) {
      ASSIGN_OR_RETURN(const double stop, rank_.exchange().Max(options_.interrupted() ? 1 : 0));
      if (stop > 0) return absl::CancelledError("interrupted before it ran");
      if (first()) options_.listener.begins();
      Row row = RowOf(*work.line, rank_.size());
      const absl::Status status = work.path.ok() ? Measure(work, row) : work.path.status();
      // The world runs nothing more after these.
      if (absl::IsDataLoss(status) || absl::IsAborted(status) || absl::IsDeadlineExceeded(status))
        return status;
      if (!status.ok()) row = Failed(*work.line, status, rank_.size());
      if (first()) options_.listener.is_done(row);
    }
    return absl::OkStatus();
  }

 private:
  bool first() const { return rank_.rank() == 0; }

  /// Collective. The variants that lines name, lowered; an error of one is its own, the same on all
  /// ranks, which have the same topologies.
  absl::Status Resolve(absl::Span<const ProbeLine> lines) {
    ASSIGN_OR_RETURN(const ConfigSpace space, SpaceOfWorld(rank_, program_.sum_order));
    Chooser chooser(program_.program, space);
    const auto lowered = [&](const Choice& choice) -> absl::StatusOr<Variant> {
      ASSIGN_OR_RETURN(Variant variant, chooser.One(choice));
      ASSIGN_OR_RETURN(Lowered made, LowerVariant(variant, TargetOf(rank_)));
      variant.lowered = std::make_shared<const Lowered>(std::move(made));
      return variant;
    };
    for (const ProbeLine& line : lines) {
      Work& work = works_.emplace_back();
      work.line = &line;
      absl::StatusOr<Variant> variant = lowered(line.choice());
      if (variant.ok())
        work.variant = *std::move(variant);
      else
        work.path = variant.status();
    }
    return absl::OkStatus();
  }

  absl::Status OpenBinaries() {
    const Topology& here = rank_.topology();
    Binaries::Options options{.cache_dir = options_.cache_dir,
                              .stop = std::make_shared<std::atomic<bool>>(false)};
    if (!options_.cubins.empty()) {
      if (here.arch.empty())
        return absl::InvalidArgumentError(
            "--cubins: only GPUs run cubins; leave it out, or say --backend=cuda");
      options.target = BinaryTarget(here.arch, here.driver);
      options.compiler = [this, &here]() -> absl::StatusOr<std::shared_ptr<Compiler>> {
        ASSIGN_OR_RETURN(std::shared_ptr<BinaryCache> cache, BinaryCache::Open(options_.cache_dir));
        return MakeCarriedCubins(options_.cubins, here.arch, std::move(cache));
      };
    }
    ASSIGN_OR_RETURN(binaries_, Binaries::Open(rank_, std::move(options)));
    return absl::OkStatus();
  }

  absl::Status CompileAll() {
    std::vector<KernelSource> sources;
    for (const Work& work : works_) {
      if (work.compiles() && !absl::c_linear_search(sources, work.kernels()))
        sources.push_back(work.kernels());
    }
    ASSIGN_OR_RETURN(const std::vector<absl::StatusOr<std::string>> paths,
                     binaries_->Compile(sources, {options_.interrupted, nullptr}));
    for (Work& work : works_) {
      if (work.compiles())
        work.path = paths[absl::c_find(sources, work.kernels()) - sources.begin()];
    }
    return absl::OkStatus();
  }

  absl::Status PrepareChecks() {
    std::vector<Variant> variants;
    Arena::Needs needs;
    for (Work& work : works_) {
      if (!work.path.ok()) continue;
      work.number = static_cast<int>(variants.size());
      variants.push_back(work.variant);
      Arena::Include(work.variant.lowered->plan, Temporaries::kShared, needs);
    }
    if (variants.empty()) return absl::OkStatus();
    if (options_.verify) {
      ASSIGN_OR_RETURN(check_, CheckAtSmallSizes(rank_, program_.program, variants, *binaries_,
                                                 options_.seed, options_.interrupted));
    }
    // Where it does not suffice for the lines together, each has an arena of its own.
    absl::StatusOr<Arena> arena = Arena::Create(rank_, needs);
    if (!arena.ok() && !absl::IsResourceExhausted(arena.status())) return arena.status();
    if (arena.ok()) arena_.emplace(*std::move(arena));
    return absl::OkStatus();
  }

  absl::Status Measure(const Work& work, Row& row) {
    const Lowered& lowered = *work.variant.lowered;
    const VariantResult described = Describe(work.variant);
    row.Set("schedule", described.schedule)
        .Set("trace", described.trace)
        .Set("config", work.variant.apart != nullptr ? "" : Text(described.config))
        .Set("protocol", lowered.protocol);
    if (check_ != nullptr) {
      std::string at;
      ASSIGN_OR_RETURN(const std::optional<Failure> failure, check_(work.number, at));
      if (failure.has_value())
        return absl::InvalidArgumentError(
            absl::StrCat("not timed: ", Name(failure->verdict), ": ", failure->reason));
      row.Set("verified", at);
    }
    ASSIGN_OR_RETURN(Binaries::Loaded loaded, binaries_->Load(*work.path, lowered.kernels));
    RETURN_IF_ERROR(loaded.status);
    Instance instance;
    std::optional<Arena> own;  // outlives `instance`'s plan
    RETURN_IF_ERROR(Bind(work, *loaded.module, own, instance));
    const auto run = [&](int64_t steps) { return instance.bound->RunSteps(steps); };
    RETURN_IF_ERROR(MeasureStep(rank_, {"line", run}, copy_, options_,
                                lowered.plan.bytes_per_rank * rank_.size(), row));
    RETURN_IF_ERROR(SetKernels(row, lowered.plan, *loaded.module));
    return SetLaunches(row, rank_, *instance.bound);
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
      const int64_t elements = std::min(NumElements(tensor.type.shape), kTile);
      int64_t& filled = filled_[tensor.name];
      if (bytes <= filled || elements == 0) continue;
      std::vector<char> tile(static_cast<size_t>(elements) * SizeOf(tensor.type.dtype));
      data_.Fill(tensor.name, rank_.rank(), {.runs = 1, .run = elements}, tile.data());
      const int64_t period = std::min(static_cast<int64_t>(tile.size()), bytes);
      RETURN_IF_ERROR(memory.Write(0, period, tile.data()));
      RETURN_IF_ERROR(memory.Repeat(period, bytes));
      filled = bytes;
    }
    return absl::OkStatus();
  }

  Rank& rank_;
  const ProbeProgram& program_;
  const ProbeOptions& options_;
  const TestData data_;
  TimingInputs rows_;
  std::vector<Work> works_;
  std::unique_ptr<Binaries> binaries_;
  SmallCheck check_;                       // empty: nothing is verified
  std::optional<Arena> arena_;             // of all lines; none: each has its own
  std::map<std::string, int64_t> filled_;  // bytes by tensor
  std::optional<Contender> copy_;          // none is measured
};

}  // namespace

absl::StatusOr<std::optional<Contender>> CopyBeside(Rank& rank, const ProbeOptions& options) {
  if (options.copied_bytes == 0 || rank.topology().simulated) return std::nullopt;
  return MakeCopy(rank, options.copied_bytes);
}

absl::Status MeasureStep(Rank& rank, Contender step, const std::optional<Contender>& copy,
                         const ProbeOptions& options, int64_t bytes, Row& row) {
  std::vector<Contender> contenders = {std::move(step)};
  if (copy.has_value()) contenders.push_back(*copy);
  RoundTerms terms{.seconds = options.seconds};
  if (rank.topology().simulated) terms = {.seconds = 0, .min_rounds = 1, .steps = 1};
  ASSIGN_OR_RETURN(const std::vector<Finding> measured, MeasureInRounds(rank, contenders, terms));
  const Timing& timing = measured[0].timing;
  row.Set("device", rank.topology().device)
      .Set("note", rank.topology().note)
      .Set("us", timing.median_us)
      .Set("low_us", timing.low_us)
      .Set("high_us", timing.high_us)
      .Set("spread_percent", 100 * Noise(timing))
      .Set("rounds", int64_t{timing.samples});
  const double gb_s = 1e-3 * static_cast<double>(bytes) / timing.median_us;
  if (bytes > 0) row.Set("bytes", bytes).Set("gb_s", gb_s);
  if (!copy.has_value() || measured[1].timing.median_us == 0) return absl::OkStatus();
  const double copied = static_cast<double>(options.copied_bytes);
  const double copy_gb_s = 2e-3 * copied / measured[1].timing.median_us;
  row.Set("copy_gb_s", copy_gb_s).Set("of_copy", gb_s / copy_gb_s);
  return absl::OkStatus();
}

absl::Status ProbeGroup(Rank& rank, const ProbeProgram& program, absl::Span<const ProbeLine> lines,
                        const ProbeOptions& options) {
  return Group(rank, program, options).Run(lines);
}

}  // namespace coconet::bench
