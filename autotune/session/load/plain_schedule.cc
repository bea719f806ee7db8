#include "autotune/session/load/plain_schedule.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autotune/runner/rank_runner.h"
#include "autotune/search/variants.h"
#include "autotune/session/load/winner_check.h"
#include "coconet/base/status.h"
#include "runtime/plan_memory.h"

namespace coconet {
namespace {

/// The baseline, lowered; it is in the set, however little is derived.
absl::StatusOr<Winner> LowerBaseline(const Loading& loading) {
  ASSIGN_OR_RETURN(VariantSet set, loading.Variants([] { return false; }));
  Winner winner;
  winner.variant = std::move(set.variants[set.baseline]);
  ASSIGN_OR_RETURN(Lowered lowered, LowerVariant(winner.variant, loading.target()));
  const int64_t need = MemoryOf(lowered.plan).Total();
  const int64_t limit = loading.state->options.memory_limit.value_or(need);
  if (need > limit) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the plain schedule needs ", need, " bytes a rank, and SessionOptions::memory_limit is ",
        limit, "; tune the program, which finds schedules that need less, or raise the limit"));
  }
  winner.variant.lowered = std::make_shared<const Lowered>(std::move(lowered));
  return winner;
}

}  // namespace

absl::StatusOr<Winner> PlainSchedule(const Loading& loading) {
  const std::string context =
      absl::StrCat("Compile ", NameForMessages(loading.program), ": the plain schedule");
  absl::StatusOr<Winner> winner = LowerBaseline(loading);
  RETURN_IF_ERROR(WithContext(loading.exchange().Agree(winner.status()), context));
  const Lowered& lowered = *winner->variant.lowered;
  winner->record = RecordWithoutTimes(loading, winner->variant, lowered);
  const absl::StatusOr<std::optional<Failure>> failure = VerifyAndLoad(loading, *winner);
  if (!failure.ok()) return WithContext(failure.status(), context);
  if (failure->has_value()) {
    return absl::FailedPreconditionError(absl::StrCat(context, ", ", Words(winner->record.best),
                                                      ", fails here: ", (*failure)->reason));
  }
  return winner;
}

}  // namespace coconet
