#include "autotune/runner/rank_runner.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "autotune/search/sizes/small_sizes.h"
#include "autotune/store/process_identity.h"
#include "coconet/base/env.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"

// What RankRunner verifies of variants, and on what data.

namespace coconet {
namespace {

/// Time limit of a wait in a variant: it ends a hang early, and grows with the bytes moved so that
/// a slow variant is not taken for a hang.
constexpr double kWaitSeconds = 10;
constexpr double kSlowestBytesPerSecond = 1e8;

/// Operations on one element each that the interpreter does in seconds, and so many of which it
/// surely keeps the results, so that it does them once (Evaluator::KeepWholeValues).
constexpr int64_t kFoldedOperations = int64_t{1} << 31, kKeptOperations = int64_t{1} << 26;

/// Whether the interpreter takes too long for what the program folds, or takes by index: even for a
/// single element of a result it computes all elements of that, each by all operations before it
/// unless it keeps some.
bool FoldsTooMuch(const TypedGraph& program, const Mesh& mesh) {
  const int ranks = mesh.stage_size();
  std::vector<int64_t> depth(program.size());  // operations one after the other before an element
  int64_t operations = 0, folded = 0;
  for (NodeId id = 0; id < program.size(); ++id) {
    const auto elements = [&](NodeId node) {
      const bool is_local = program.type(node).layout.kind == Layout::Kind::kLocal;
      return NumElements(program.type(node).shape) * (is_local ? ranks : 1);
    };
    const Op& op = program.op(id);
    const bool folds = std::holds_alternative<Fold>(op) || std::holds_alternative<Gather>(op) ||
                       std::holds_alternative<ScatterAdd>(op);
    for (const NodeId input : program.inputs(id)) {
      if (folds && folded <= kFoldedOperations) folded += elements(input) * depth[input];
      if (!folds) depth[id] = std::max(depth[id], depth[input]);
    }
    if (!IsComputation(op)) continue;
    ++depth[id];
    operations += elements(id);
  }
  const int64_t kept = kKeptOperations / (ranks * mesh.stages);
  return operations > kept && folded > kFoldedOperations;
}

/// What an error that all ranks agree on says of a variant; the error itself where a GPU runs
/// nothing more, which no variant is blamed for.
absl::StatusOr<std::optional<Failure>> FailureOf(const absl::Status& status, Verdict verdict) {
  if (absl::IsDataLoss(status)) return status;
  return Failure{verdict, std::string(status.message())};
}

/// " (1200 elements, 0.5 % undetermined)"
std::string CoverageText(const Reference::Coverage& coverage) {
  const double share = coverage.elements == 0 ? 0
                                              : static_cast<double>(coverage.undetermined) /
                                                    static_cast<double>(coverage.elements);
  return absl::StrFormat(" (%d elements, %.2g %% undetermined)", coverage.elements, 100 * share);
}

/// ", a sample of what each of 27 kinds of launches made of its operands there (...)"
std::string LaunchesText(const LaunchChecks& checks) {
  return absl::StrCat(", a sample of what each of ", checks.checked(),
                      " kinds of launches makes of its operands", CoverageText(checks.coverage()),
                      checks.skipped() == 0
                          ? ""
                          : absl::StrCat("; ", checks.skipped(),
                                         " more were checked at small sizes only (partial sums "
                                         "between nodes, or too long for the interpreter)"));
}

}  // namespace

absl::Status RankRunner::MakeData() {
  const bool has_launches =
      TensorCount(program_) == 0 &&
      absl::c_all_of(variants_, [](const Variant& variant) { return variant.apart == nullptr; });
  const bool by_launch =
      has_launches && (ProductsOf(program_) > options_.interpreted ||
                       FoldsTooMuch(variants_[0].schedule.program(), rank_.mesh()));
  ASSIGN_OR_RETURN(full_, FullDataSet(program_, rank_, options_.seed,
                                      by_launch ? Checked::kButValues : Checked::kAll,
                                      options_.interrupted, options_.numerics));
  if (by_launch)
    launch_checks_.emplace(rank_, full_.references[0].data(), options_.seed, options_.interrupted,
                           options_.numerics);
  timing_inputs_.emplace(Expand(program_), options_.seed, rank_.stage_size(),
                         options_.typical_rows);
  plain_.emplace(SlicedResults(), rank_.topology().ranks_per_node);
  for (const int v : options_.first) {
    const Work& work = work_[v];
    if (work.plans != nullptr && !work.failure.has_value())
      RETURN_IF_ERROR(MakeSmallData(work.facts.small_at));
  }
  return absl::OkStatus();
}

absl::Status RankRunner::MakeSmallData(size_t small_at) {
  if (!small_data_[small_at].references.empty()) return absl::OkStatus();
  const Phases::Part part(options_.phases, Phase::kMakeData);
  const Graph small = Expand(shrinks_ ? Shrink(program_, small_[small_at].size) : program_);
  ASSIGN_OR_RETURN(small_data_[small_at], SmallDataSets(small, rank_, options_.seed,
                                                        options_.interrupted, options_.numerics));
  return small_[small_at].tiny ? absl::OkStatus() : CheckDetermined(small, small_data_[small_at]);
}

std::set<PlainResults::SlicedResult> RankRunner::SlicedResults() const {
  std::set<PlainResults::SlicedResult> sliced;
  const Variant* previous = nullptr;
  for (const Variant& variant : variants_) {
    if (previous != nullptr && SameSchedule(*previous, variant)) continue;
    previous = &variant;
    const TypedGraph& program = variant.schedule.program();
    for (NodeId id = 0; id < program.graph().size(); ++id) {
      const auto* state = As<State>(program.graph(), id);
      const TensorType& type = program.type(id);
      if (state != nullptr && type.layout.sliced() && type.shape.size() > 1)
        sliced.emplace(state->name, type.layout.dim);
    }
  }
  return sliced;
}

absl::StatusOr<std::optional<Failure>> RankRunner::Bind(const Plan& plan, const TypedGraph& program,
                                                        const Module& module,
                                                        std::vector<std::shared_ptr<Memory>> memory,
                                                        Instance& instance) {
  const Phases::Part part(options_.phases, Phase::kBind);
  instance.plan = &plan;
  instance.tensors = PlaceTensors(program.Expanded(), plan);
  instance.buffers = Pointers(memory);
  instance.memory = std::move(memory);
  const double wait_s =
      std::min(GetEnv().timeout_s,
               kWaitSeconds + static_cast<double>(plan.bytes_per_rank) / kSlowestBytesPerSecond);
  absl::StatusOr<std::unique_ptr<BoundPlan>> bound =
      rank_.Bind(plan, module, instance.buffers, wait_s);
  if (absl::Status all = rank_.exchange().Agree(bound.status()); !all.ok()) {
    // Without a library for matrix products, no variant on cores can be tuned.
    if (absl::IsUnavailable(all) && rank_.topology().multiprocessors == 0) return all;
    return FailureOf(all, VerdictOn(all));
  }
  instance.bound = *std::move(bound);
  return std::nullopt;
}

absl::StatusOr<std::optional<Failure>> RankRunner::VerifyPlaced(const Plan& plan,
                                                                const TypedGraph& program,
                                                                const Module& module,
                                                                size_t small_at) {
  const bool share = TemporariesOverlap(plan);
  for (const Temporaries temporaries : {Temporaries::kApart, Temporaries::kShared}) {
    if (temporaries == Temporaries::kShared && !share) break;
    Instance instance;
    ASSIGN_OR_RETURN(
        std::optional<Failure> failure,
        Bind(plan, program, module, arena_->Place(rank_, plan, temporaries), instance));
    if (!failure.has_value()) {
      ASSIGN_OR_RETURN(failure, VerifyAllData(small_at, instance));
    }
    if (failure.has_value()) return failure;
  }
  return std::nullopt;
}

absl::StatusOr<std::optional<Failure>> RankRunner::VerifySmall(const Work& work,
                                                               const TypedGraph& program,
                                                               Sizes sizes) {
  const Phases::Part part(options_.phases, Phase::kVerifySmall);
  if (!shrinks_) return VerifyPlaced(work.plans->full->plan, program, *work.module, 0);
  std::unique_ptr<Module> other;  // where the small sizes have other kernels, or none
  const Module* module = work.module.get();
  if (work.small_path != work.path) {
    ASSIGN_OR_RETURN(
        Binaries::Loaded loaded,
        options_.binaries->Load(work.small_path, work.plans->small[0].lowered.kernels));
    if (!loaded.status.ok()) return FailureOf(loaded.status, Verdict::kNotLoaded);
    other = std::move(loaded.module);
    module = other.get();
  }
  for (const VariantPlans::Small& small : work.plans->small) {
    if (sizes == (small_[small.at].tiny ? Sizes::kAllButTiny : Sizes::kTiny)) continue;
    ASSIGN_OR_RETURN(std::optional<Failure> failure,
                     VerifyPlaced(small.lowered.plan, small.program, *module, small.at));
    if (!failure.has_value()) continue;
    failure->reason = absl::StrCat("at a small size: ", failure->reason);
    return failure;
  }
  return std::nullopt;
}

std::string RankRunner::CodeOf(int variant) const {
  Config config = variants_[variant].config;
  config.chunk = config.vec;
  config.blocks = config.threads = 1;
  const VariantPlans& plans = *work_[variant].plans;
  return absl::StrCat(variants_[variant].group, "\n", Text(config), "\n",
                      Fingerprint(plans.full->kernels.text()), "\n",
                      shrinks_ ? Fingerprint(plans.small[0].lowered.kernels.text()) : "");
}

absl::StatusOr<std::optional<Failure>> RankRunner::VerifyAllData(size_t small_at,
                                                                 Instance& instance) {
  RETURN_IF_ERROR(MakeSmallData(small_at));
  ASSIGN_OR_RETURN(std::optional<Failure> failure,
                   VerifySteps(rank_, instance, absl::MakeSpan(small_data_[small_at].references)));
  if (failure.has_value()) failure->reason = WithSeed(failure->reason);
  return failure;
}

std::string RankRunner::WithSeed(const std::string& reason) const {
  return absl::StrCat(reason, " (COCONET_SEED=", options_.seed, ")");
}

absl::StatusOr<std::optional<Failure>> RankRunner::Load(int variant) {
  const Phases::Part part(options_.phases, Phase::kLoad);
  Work& work = work_[variant];
  RETURN_IF_ERROR(LowerOnce(variant));
  ASSIGN_OR_RETURN(Binaries::Loaded loaded,
                   options_.binaries->Load(work.path, work.plans->full->kernels));
  if (!loaded.status.ok()) return FailureOf(loaded.status, Verdict::kNotLoaded);
  work.module = std::move(loaded.module);
  const TypedGraph& program = variants_[variant].schedule.program();
  const std::string code = CodeOf(variant);
  work.checks_more = shrinks_ && work.plans->small.size() > 1 && verified_code_.contains(code);
  ASSIGN_OR_RETURN(std::optional<Failure> failure,
                   VerifySmall(work, program, work.checks_more ? Sizes::kTiny : Sizes::kAll));
  if (!failure.has_value()) {
    verified_code_.insert(code);
    const Plan& plan = work.plans->full->plan;
    ASSIGN_OR_RETURN(
        failure, Bind(plan, program, *work.module, arena_->Place(rank_, plan, Temporaries::kShared),
                      work.instance));
    // A GPU takes less power, and less time, for zeros.
    const bool matters = rank_.topology().multiprocessors > 0 && !rank_.topology().simulated;
    if (!failure.has_value() && matters && !has_numbers_)
      RETURN_IF_ERROR(PrepareStep(rank_, work.instance, full_.references[0]));
    has_numbers_ = true;
  }
  if (failure.has_value()) Unload(variant);
  return failure;
}

absl::StatusOr<std::optional<Failure>> RankRunner::VerifyLaunches(int variant) {
  Work& work = work_[variant];
  const Plan& plan = work.plans->full->plan;
  const std::vector<LaunchProgram> programs =
      LaunchPrograms(variants_[variant].schedule.program(), *work.plans->full);
  const std::vector<const LaunchProgram*> unchecked = launch_checks_->Unchecked(programs);
  if (!unchecked.empty()) RETURN_IF_ERROR(PrepareStep(rank_, work.instance, full_.references[0]));
  int done = 0;
  for (const LaunchProgram* launch : unchecked) {
    const Plan part = StepsOf(plan, done, launch->end);
    Instance instance;
    ASSIGN_OR_RETURN(std::optional<Failure> failure,
                     Bind(part, variants_[variant].schedule.program(), *work.module,
                          work.instance.memory, instance));
    if (!failure.has_value()) {
      ASSIGN_OR_RETURN(failure, RunTogether(rank_, *instance.bound));
    }
    if (!failure.has_value()) {
      ASSIGN_OR_RETURN(failure, launch_checks_->Check(*launch, plan, instance.buffers));
    }
    if (failure.has_value()) return failure;
    done = launch->end;
  }
  return std::nullopt;
}

absl::Status RankRunner::MakeKernels(const std::vector<PlacedTensor>& tensors) {
  const Topology& here = rank_.topology();
  const bool has_gpu = here.multiprocessors > 0 && !here.simulated;
  const auto is_long = [&](const PlacedTensor& t) { return !full_.references[0].ChecksAll(t); };
  if (kernels_ != nullptr || compares_on_host_ || !has_gpu || absl::c_none_of(tensors, is_long))
    return absl::OkStatus();
  const std::string source = ResultKernels::Source();
  ASSIGN_OR_RETURN(const std::vector<absl::StatusOr<std::string>> binaries,
                   options_.binaries->Compile({source}, options_.watch));
  // A job that may not compile, or has no compiler, can still compare on the host.
  const absl::Status& compiled = binaries[0].status();
  compares_on_host_ = absl::IsUnavailable(compiled) || absl::IsFailedPrecondition(compiled);
  if (compares_on_host_) return absl::OkStatus();
  RETURN_IF_ERROR(compiled);
  ASSIGN_OR_RETURN(Binaries::Loaded loaded, options_.binaries->Load(*binaries[0], source));
  RETURN_IF_ERROR(loaded.status);
  ASSIGN_OR_RETURN(kernels_, ResultKernels::Make(rank_, std::move(loaded.module)));
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Failure>> RankRunner::Verify(int variant) {
  const Phases::Part part(options_.phases, Phase::kVerifyAtSize);
  RETURN_IF_ERROR(MakeKernels(work_[variant].instance.tensors));
  Instance& instance = work_[variant].instance;
  std::optional<Failure> failure;
  if (work_[variant].checks_more) {
    ASSIGN_OR_RETURN(failure, VerifySmall(work_[variant], variants_[variant].schedule.program(),
                                          Sizes::kAllButTiny));
    work_[variant].checks_more = failure.has_value();
  }
  if (!failure.has_value() && launch_checks_.has_value()) {
    ASSIGN_OR_RETURN(failure, VerifyLaunches(variant));
  }
  if (!failure.has_value()) {
    ASSIGN_OR_RETURN(failure,
                     VerifyStep(rank_, instance, full_.references[0], *plain_, kernels_.get()));
  }
  if (!failure.has_value()) {
    ASSIGN_OR_RETURN(failure, VerifyRepeat(rank_, instance, full_.references[0], kernels_.get()));
  }
  if (failure.has_value() && failure->verdict == Verdict::kWrongAnswer)
    failure->reason = WithSeed(failure->reason);
  return failure;
}

Trust RankRunner::TrustIn(int variant) const {
  const Work& work = work_[variant];
  const bool sampled = !plain_->empty();
  Reference::Coverage small;
  const auto add = [&](size_t at) {
    small.elements += small_data_[at].coverage.elements;
    small.undetermined += small_data_[at].coverage.undetermined;
  };
  if (!shrinks_) add(0);
  for (const VariantPlans::Small& plan : work.plans->small) add(plan.at);
  const size_t sizes = work.plans->small.size();
  return {
      .fingerprint = CodeFingerprint(*work.plans->full),
      .machine = MachineDigest(),
      .checks = absl::StrCat(
          "steps back to back on ", small_data_[work.facts.small_at].references.size(),
          " sets of data",
          !shrinks_    ? ""
          : sizes == 1 ? " at a small size"
                       : absl::StrCat(" at ", sizes, " small sizes"),
          CoverageText(small), "; two steps at the program's size on ",
          Name(full_.references[0].data().kind()), " data",
          launch_checks_.has_value() ? LaunchesText(*launch_checks_) : CoverageText(full_.coverage),
          sampled ? ", compared in full with the plain schedule's" : "",
          plain_->lacks_memory() ? " (in part: there was no memory for more)" : ""),
      .verified_s = absl::ToUnixSeconds(absl::Now())};
}

}  // namespace coconet
