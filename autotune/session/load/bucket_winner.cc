#include "autotune/session/load/bucket_winner.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "autotune/search/time_budget.h"
#include "autotune/session/load/winner_check.h"
#include "autotune/session/sizes/family.h"
#include "autotune/store/process_identity.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"
#include "runtime/plan_memory.h"

namespace coconet {
namespace {

absl::StatusOr<Winner> LowerBucket(const Loading& loading, const SizeBucket& bucket) {
  Winner winner;
  ASSIGN_OR_RETURN(winner.variant, loading.VariantNamed(bucket.trace, bucket.config));
  ASSIGN_OR_RETURN(Lowered lowered, LowerVariant(winner.variant, loading.target()));
  const int64_t need = MemoryOf(lowered.plan).Total();
  if (need > loading.state->options.memory_limit.value_or(need))
    return absl::ResourceExhaustedError("it needs more than SessionOptions::memory_limit");
  winner.record = RecordWithoutTimes(loading, winner.variant, lowered);
  winner.variant.lowered = std::make_shared<const Lowered>(std::move(lowered));
  return winner;
}

}  // namespace

absl::StatusOr<std::optional<Winner>> BucketWinner(const Loading& loading,
                                                   const std::string& family_text,
                                                   SizeBucket& bucket) {
  const auto refuse = [&](absl::string_view why) {
    loading.state->Warn(absl::StrCat(
        "tuning cache: the variant of ", NameForMessages(loading.program), " for sizes ",
        Text(bucket.box), " does not hold (", why, ") and is not used"));
    return std::nullopt;
  };
  absl::StatusOr<Winner> winner = LowerBucket(loading, bucket);
  if (const absl::Status valid = loading.exchange().Agree(winner.status()); !valid.ok())
    return refuse(valid.message());
  const auto has_failed = [&] {
    return absl::c_any_of(loading.state->cache->Failures(loading.key), [&](const VariantResult& v) {
      return v.trace == bucket.trace && v.config == bucket.config;
    });
  };
  ASSIGN_OR_RETURN(const int failed,
                   FromRank0(loading.exchange(), loading.first() && has_failed()));
  if (failed != 0) return refuse("it has failed at these sizes in an earlier run");
  ASSIGN_OR_RETURN(const std::string machine, loading.exchange().Broadcast(MachineDigest()));
  const std::string code = FamilyCode(bucket.trace, bucket.config, *winner->variant.lowered);
  if (bucket.machine == machine && absl::c_linear_search(bucket.code, code) && !GetEnv().verify)
    return std::optional<Winner>(*std::move(winner));
  ASSIGN_OR_RETURN(const std::optional<Failure> failure, VerifyAndLoad(loading, *winner));
  if (failure.has_value()) {
    if (loading.first() && FailsForGood(failure->verdict))
      loading.state->cache->ForgetBucket(family_text, bucket);
    return refuse(failure->reason);
  }
  if (bucket.machine != machine) bucket.code.clear();
  bucket.machine = machine;
  if (!absl::c_linear_search(bucket.code, code)) bucket.code.push_back(code);
  bucket.checks = winner->record.trust[0].checks;
  if (loading.first() && loading.state->cache->stores())
    loading.state->cache->ConfirmBucket(family_text, bucket);
  return std::optional<Winner>(*std::move(winner));
}

}  // namespace coconet
