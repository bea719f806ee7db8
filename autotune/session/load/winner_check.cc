#include "autotune/session/load/winner_check.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "autotune/runner/rank_runner.h"
#include "autotune/store/process_identity.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"
#include "jit/lower/lower.h"

namespace coconet {
namespace {

/// The plain variant, where results are so long that a winner is compared with it; else none.
std::vector<Variant> PlainToCompareWith(const Loading& loading, const Variant& winner) {
  const Graph expanded = Expand(loading.program);
  const bool is_long = absl::c_any_of(expanded.nodes, [](const Node& node) {
    const TensorType* type = DeclaredType(node.op);
    return type != nullptr && NumElements(type->shape) > Reference::kFullElements;
  });
  if (!is_long) return {};
  // The baseline is in the set, however little is derived.
  absl::StatusOr<VariantSet> set =
      EnumerateVariants(loading.program, loading.space, nullptr, [] { return false; });
  if (!set.ok()) return {};
  Variant& plain = set->variants[set->baseline];
  if (TraceOf(plain) == TraceOf(winner) && plain.config == winner.config) return {};
  plain.group = winner.group + 1;  // those of one group need the same memory
  return {std::move(plain)};
}

/// Collective. Runs the winner once more on fresh data, and loads it where it passes.
absl::StatusOr<std::optional<Failure>> VerifyOnce(const Loading& loading, Winner& winner) {
  ASSIGN_OR_RETURN(const uint64_t seed, AgreeOnSeed(loading));
  std::vector<Variant> variants = {winner.variant};
  for (Variant& plain : PlainToCompareWith(loading, winner.variant))
    variants.push_back(std::move(plain));
  ASSIGN_OR_RETURN(const std::unique_ptr<RankRunner> runner,
                   RankRunner::Create(loading.rank(), loading.program, variants,
                                      {.seed = seed,
                                       .binaries = loading.state->binaries.get(),
                                       .watch = {},
                                       .numerics = loading.state->options.numerics(),
                                       .interrupted = loading.state->options.interrupted}));
  std::vector<int> numbers(variants.size());
  absl::c_iota(numbers, 0);
  ASSIGN_OR_RETURN(const std::vector<std::optional<Failure>> compiled,
                   runner->Compile(numbers, [&] { return loading.Interrupted(); }));
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

}  // namespace

absl::StatusOr<bool> IsTrusted(const Loading& loading, const Winner& known) {
  ASSIGN_OR_RETURN(const std::string machine, loading.exchange().Broadcast(MachineDigest()));
  const std::string fingerprint = CodeFingerprint(*known.variant.lowered);
  return !GetEnv().verify && absl::c_any_of(known.record.trust, [&](const Trust& t) {
    return t.machine == machine && t.fingerprint == fingerprint;
  });
}

absl::StatusOr<std::optional<Failure>> VerifyAndLoad(const Loading& loading, Winner& winner) {
  absl::StatusOr<std::optional<Failure>> failure = VerifyOnce(loading, winner);
  if (failure.ok() && failure->has_value() && MayPass((*failure)->verdict))
    failure = VerifyOnce(loading, winner);
  return failure;
}

absl::StatusOr<std::string> WhyUnfit(const Loading& loading, Winner& known) {
  VariantResult& best = known.record.best;
  const absl::StatusOr<std::optional<Failure>> again = VerifyAndLoad(loading, known);
  if (!again.ok()) {
    return WithContext(again.status(), absl::StrCat("verifying ", Words(best), ", kept for ",
                                                    NameForMessages(loading.program)));
  }
  const std::optional<Failure>& failure = *again;
  if (!failure.has_value()) {
    if (loading.first()) loading.state->cache->AddTrust(loading.key, best, known.record.trust[0]);
    return std::string();
  }
  const bool for_good = FailsForGood(failure->verdict);
  std::string unfit = absl::StrCat("the variant kept for ", NameForMessages(loading.program), ", ",
                                   Words(best), ", fails here (", failure->reason,
                                   ") and is not used", for_good ? "" : " this time");
  loading.state->Warn(absl::StrCat("tuning cache: ", unfit));
  if (loading.first() && for_good) {
    best.verdict = failure->verdict;
    best.reason = failure->reason;
    loading.state->cache->Fail(loading.key, best);
  }
  return unfit;
}

}  // namespace coconet
