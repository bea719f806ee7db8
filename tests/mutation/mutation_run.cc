#include "tests/mutation/mutation_run.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "coconet/base/status.h"
#include "jit/compile/compiler.h"
#include "tests/harness/differential_body.h"
#include "tests/harness/machine.h"
#include "tests/kernels/kernel_set.h"
#include "tests/mutation/planted/mutation_edits.h"

namespace coconet {
namespace {

constexpr uint64_t kData = 1;  // seed of the operands
constexpr FindingKind kKinds[] = {
    FindingKind::kRace,           FindingKind::kOutOfBounds,     FindingKind::kMisaligned,
    FindingKind::kNeverWritten,   FindingKind::kUnwrittenOutput, FindingKind::kDivergentBarrier,
    FindingKind::kBadShuffle,     FindingKind::kUnfinishedCopy,  FindingKind::kBadBarrier,
    FindingKind::kDivergentGroup, FindingKind::kBadProduct,      FindingKind::kUnfinishedProduct,
    FindingKind::kBadRegisters,   FindingKind::kBadMap,          FindingKind::kDeadlock,
    FindingKind::kNoRoom};

/// The outcome of a world that a mistake in a kernel ended.
absl::StatusOr<MutationOutcome> OutcomeOf(const absl::Status& status) {
  const std::string text(status.message());
  if (absl::IsInternal(status)) return MutationOutcome{.kind = WrongAnswer(), .report = text};
  size_t first = std::string::npos;
  MutationOutcome outcome;
  for (FindingKind kind : kKinds) {
    const size_t at = text.find(absl::StrCat(Name(kind), ": "));
    if (!absl::IsDataLoss(status) || at >= first) continue;
    first = at;
    outcome.kind = kind;
    outcome.report = text.substr(at);
  }
  if (!outcome.kind.has_value()) return status;
  return outcome;
}

absl::StatusOr<LoweredVariant> LoweredOf(const MutationCase& at) {
  ASSIGN_OR_RETURN(const CaseVariant v, VariantOf(at));
  return MakeVariant(v.program, v.schedule, v.config, at.target);
}

absl::StatusOr<MutationOutcome> Run(const MutationCase& at, const std::vector<MutationEdit>& edits,
                                    const std::string& cache_dir, uint64_t first_seed) {
  ASSIGN_OR_RETURN(const LoweredVariant variant, LoweredOf(at));
  ASSIGN_OR_RETURN(std::unique_ptr<Compiler> compiler,
                   MakeSimtCompiler({.cache_dir = cache_dir, .optimize = Optimize::kFast}));
  MutatingCompiler mutating(std::move(compiler), edits, Dialect::kSimt);
  KernelSet kernels;
  kernels.Add(variant.lowered);
  ASSIGN_OR_RETURN(const std::vector<std::string> binaries, kernels.Compile(mutating));
  for (uint64_t seed = first_seed; seed < first_seed + kMutationInterleavings; ++seed) {
    std::vector<Tally> tallies(at.target.world());
    const Machine machine = SimulatedMachine(SimtOptions::Of(seed));
    const absl::Status status = machine.run_world(
        {.ranks = at.target.world(),
         .stages = at.target.stages,
         .nodes = at.target.world_nodes(),
         .pin = false},
        [&](Rank& rank) -> absl::Status {
          ASSIGN_OR_RETURN(const std::unique_ptr<Module> module, LoadAll(rank, binaries));
          return RunVariant(rank, *module, variant, kData, at.steps, tallies[rank.rank()]);
        });
    if (status.ok()) continue;
    ASSIGN_OR_RETURN(MutationOutcome outcome, OutcomeOf(status));
    outcome.seed = seed;
    outcome.tried = static_cast<int>(seed - first_seed) + 1;
    return outcome;
  }
  return MutationOutcome{
      .kind = std::nullopt, .report = "", .seed = first_seed, .tried = kMutationInterleavings};
}

}  // namespace

absl::Status CheckPlace(const Mutation& mutation) {
  ASSIGN_OR_RETURN(const MutationCase at, FindMutationCase(mutation.at));
  ASSIGN_OR_RETURN(const LoweredVariant variant, LoweredOf(at));
  KernelSet kernels;
  kernels.Add(variant.lowered);
  for (const KernelSource& unit : kernels.Units(kernels.size()))
    RETURN_IF_ERROR(Planted(unit.text(), mutation.edits, Dialect::kSimt).status());
  return absl::OkStatus();
}

absl::StatusOr<MutationOutcome> RunMutation(const Mutation& mutation, const std::string& cache_dir,
                                            uint64_t first_seed) {
  ASSIGN_OR_RETURN(const MutationCase at, FindMutationCase(mutation.at));
  return Run(at, mutation.edits, cache_dir, first_seed);
}

absl::StatusOr<MutationOutcome> RunUnmutated(const MutationCase& at, const std::string& cache_dir,
                                             uint64_t first_seed) {
  return Run(at, {}, cache_dir, first_seed);
}

}  // namespace coconet
