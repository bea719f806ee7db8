#include "tests/host_verification.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "autotune/search/rank_runner.h"
#include "coconet/base/status.h"
#include "runtime/world.h"
#include "tests/mutation_edits.h"

namespace coconet {
namespace {

constexpr double kTimeoutSeconds = 60;  // of what ranks say to each other between steps

HostFinding FindingOf(const Failure& failure) {
  switch (failure.verdict) {
    case Verdict::kLowerError:
      return HostFinding::kLowerError;
    case Verdict::kCompileError:
      return HostFinding::kCompileError;
    case Verdict::kWrongAnswer:
      if (absl::StrContains(failure.reason, " behind its ")) return HostFinding::kGuard;
      if (absl::StrContains(failure.reason, "the replicas of ranks "))
        return HostFinding::kReplicas;
      if (absl::StrContains(failure.reason, " was changed; ")) return HostFinding::kChangedInput;
      return HostFinding::kWrongElement;
    case Verdict::kRunError:
    case Verdict::kTooLarge:
    case Verdict::kMeasured:
    case Verdict::kPruned:
    case Verdict::kNotMeasured:
    case Verdict::kQuarantined:
      return HostFinding::kRunError;
  }
  CC_CHECK(false);
}

/// Collective. What keeps the runner's one variant from being dispatched; nullopt: nothing.
absl::StatusOr<std::optional<Failure>> FailureOf(RankRunner& runner) {
  const VariantResult before = runner.Entrants()[0].result;
  if (IsFailure(before.verdict)) return Failure{before.verdict, before.reason};
  const int variants[] = {0};
  ASSIGN_OR_RETURN(std::vector<std::optional<Failure>> failures,
                   runner.Compile(variants, [] { return false; }));
  if (failures[0].has_value()) return failures[0];
  ASSIGN_OR_RETURN(std::optional<Failure> failure, runner.Load(0));
  if (!failure.has_value()) {
    ASSIGN_OR_RETURN(failure, runner.Verify(0));
  }
  runner.Unload(0);
  return failure;
}

}  // namespace

absl::StatusOr<MutationOutcome> VerifyOnHost(const MutationCase& at,
                                             const std::vector<MutationEdit>& edits,
                                             const std::string& cache_dir, uint64_t seed) {
  ASSIGN_OR_RETURN(const CaseVariant v, VariantOf(at));
  ASSIGN_OR_RETURN(std::unique_ptr<Compiler> compiler,
                   MakeHostCompiler({.cache_dir = cache_dir, .optimize = Optimize::kFast}));
  MutatingCompiler mutating(std::move(compiler), edits, Dialect::kHost);
  const std::vector<Variant> variants = {{v.schedule, v.config}};
  MutationOutcome outcome{.kind = std::nullopt, .report = "", .seed = seed, .tried = 1};
  RETURN_IF_ERROR(RunWorld(
      {.ranks = at.target.world(),
       .stages = at.target.stages,
       .nodes = at.target.world_nodes(),
       .timeout_s = kTimeoutSeconds,
       .pin = false},
      [&](Rank& rank) -> absl::Status {
        ASSIGN_OR_RETURN(
            const std::unique_ptr<RankRunner> runner,
            RankRunner::Create(
                rank, v.program, variants,
                {.seed = seed, .compiler = rank.rank() == 0 ? &mutating : nullptr, .watch = {}}));
        ASSIGN_OR_RETURN(const std::optional<Failure> failure, FailureOf(*runner));
        if (rank.rank() == 0 && failure.has_value()) {
          outcome.kind = FindingOf(*failure);
          outcome.report = failure->reason;
        }
        return absl::OkStatus();
      }));
  return outcome;
}

}  // namespace coconet
