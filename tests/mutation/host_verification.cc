#include "tests/mutation/host_verification.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "autotune/runner/binaries.h"
#include "autotune/runner/rank_runner.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"
#include "coconet/schedule/derivation/derive.h"
#include "runtime/world.h"

namespace coconet {
namespace {

constexpr char kPlainConfig[] = "library vec=8 chunk=4096 blocks=1 stream=none one-shot=pull";
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
    case Verdict::kTimedOut:
    case Verdict::kNotLoaded:
    case Verdict::kTooLarge:
    case Verdict::kMeasured:
    case Verdict::kPruned:
    case Verdict::kNotMeasured:
    case Verdict::kQuarantined:
      return HostFinding::kRunError;
  }
  CC_CHECK(false);
}

/// Collective. What keeps a variant from being dispatched; nullopt: nothing.
absl::StatusOr<std::optional<Failure>> FailureOf(RankRunner& runner, int variant) {
  const VariantResult before = runner.Entrants()[variant].result;
  if (FailsForGood(before.verdict)) return Failure{before.verdict, before.reason};
  const int variants[] = {variant};
  ASSIGN_OR_RETURN(std::vector<std::optional<Failure>> failures,
                   runner.Compile(variants, [] { return false; }));
  if (failures[0].has_value()) return failures[0];
  ASSIGN_OR_RETURN(std::optional<Failure> failure, runner.Load(variant));
  if (!failure.has_value()) {
    ASSIGN_OR_RETURN(failure, runner.Verify(variant));
  }
  runner.Unload(variant);
  return failure;
}

/// The case's variant, and for tensors that the interpreter does not compute in full the plain one,
/// which the tuner verifies first, so that others are compared with it.
absl::StatusOr<std::vector<Variant>> VariantsOf(const CaseVariant& v) {
  std::vector<Variant> variants = {{v.schedule, v.config}};
  bool is_large = false;
  for (const Node& node : v.program.nodes) {
    const TensorType* type = DeclaredType(node.op);
    if (type != nullptr && v.program.lists.empty())
      is_large = is_large || NumElements(type->shape) > Reference::kFullElements;
  }
  if (!is_large) return variants;
  ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(v.program));
  ASSIGN_OR_RETURN(const Config config, ParseConfig(kPlainConfig));
  variants.push_back({schedules.front(), config, /*group=*/1});
  return variants;
}

}  // namespace

absl::StatusOr<MutationOutcome> VerifyOnHost(const MutationCase& at, PlantingCompiler& compiler,
                                             uint64_t seed) {
  ASSIGN_OR_RETURN(const CaseVariant v, VariantOf(at));
  ASSIGN_OR_RETURN(const std::vector<Variant> variants, VariantsOf(v));
  MutationOutcome outcome{.kind = std::nullopt, .report = "", .seed = seed, .tried = 1};
  RETURN_IF_ERROR(RunWorld(
      {.ranks = at.target.world(),
       .stages = at.target.stages,
       .nodes = at.target.world_nodes(),
       .timeout_s = kTimeoutSeconds,
       .pin = false},
      [&](Rank& rank) -> absl::Status {
        const std::shared_ptr<Compiler> borrowed(std::shared_ptr<void>(), &compiler);
        ASSIGN_OR_RETURN(const std::unique_ptr<Binaries> binaries,
                         Binaries::Open(rank, {.target = BinaryTarget(/*arch=*/"", /*driver=*/0),
                                               .cache_dir = GetEnv().cache_dir,
                                               .compiler = [&] { return borrowed; },
                                               .warn = nullptr}));
        ASSIGN_OR_RETURN(
            const std::unique_ptr<RankRunner> runner,
            RankRunner::Create(rank, v.program, variants,
                               {.seed = seed, .binaries = binaries.get(), .watch = {}}));
        if (rank.rank() == 0) compiler.set_planted(false);
        for (int plain = 1; plain < static_cast<int>(variants.size()); ++plain) {
          ASSIGN_OR_RETURN(const std::optional<Failure> failure, FailureOf(*runner, plain));
          if (failure.has_value()) return absl::InternalError(failure->reason);
        }
        if (rank.rank() == 0) compiler.set_planted(true);
        ASSIGN_OR_RETURN(const std::optional<Failure> failure, FailureOf(*runner, 0));
        if (rank.rank() == 0 && failure.has_value()) {
          outcome.kind = FindingOf(*failure);
          outcome.report = failure->reason;
        }
        return absl::OkStatus();
      }));
  return outcome;
}

}  // namespace coconet
