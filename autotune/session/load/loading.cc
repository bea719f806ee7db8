#include "autotune/session/load/loading.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autotune/search/choice.h"
#include "autotune/search/parts.h"
#include "autotune/store/wire.h"
#include "coconet/base/env.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"

namespace coconet {
namespace {

bool Tunes(Policy policy) { return policy == Policy::kTune || policy == Policy::kImprove; }

}  // namespace

Loading::Loading(std::shared_ptr<SessionState> state, Graph program, double budget_s)
    : state(std::move(state)),
      program(std::move(program)),
      budget_s(budget_s),
      start_s(Seconds()) {}

void Loading::UseKey(const std::string& text) {
  key_text = text;
  key = Fingerprint(text);
}

absl::StatusOr<VariantSet> Loading::Variants(const std::function<bool()>& go_on, bool few,
                                             absl::Span<const Schedule> planned) const {
  const SessionOptions& user = state->options;
  if (!user.choice.empty()) return Chooser(program, space, go_on).All(user.choice);
  return EnumerateVariants(program, space, user.admits, go_on, few, planned, phases.get());
}

absl::StatusOr<Variant> Loading::VariantNamed(const std::string& trace,
                                              const Config& config) const {
  Variant variant;
  variant.config = config;
  if (IsCombination(trace)) {
    const auto parts = std::make_shared<const Parts>(SplitIntoParts(program));
    ASSIGN_OR_RETURN(Combination apart, ParseCombination(trace, parts, space));
    return VariantOf(std::move(apart));
  }
  ASSIGN_OR_RETURN(const std::vector<Transformation> steps, ParseTrace(trace));
  ASSIGN_OR_RETURN(variant.schedule, Replay(program, steps));
  RETURN_IF_ERROR(Validate(config, variant.schedule, space));
  return variant;
}

void Loading::Report(absl::string_view text) const {
  if (!first() || !state->options.progress) return;
  const double left_s = budget_s - (Seconds() - start_s);
  state->options.progress(absl::StrFormat("at most %.0f s left: %s", std::max(left_s, 0.0), text));
}

bool Loading::Interrupted() const {
  return state->options.interrupted && state->options.interrupted();
}

absl::Status Loading::InterruptedWhile(absl::string_view doing) const {
  return absl::CancelledError(absl::StrCat("tuning ", NameForMessages(program),
                                           " was interrupted before anything was measured, while ",
                                           doing));
}

Preparation Loading::PreparationOf(absl::string_view doing, double share) const {
  return {
      exchange(),
      {state->options.interrupted, start_s + share * budget_s, Seconds, InterruptedWhile(doing)}};
}

std::shared_ptr<CompiledProgram> CompiledOf(const Loading& loading, Variant variant) {
  auto compiled = std::make_shared<CompiledProgram>();
  compiled->session = loading.state;
  compiled->program = Expand(loading.program);
  compiled->mesh = loading.rank().mesh();
  compiled->rank = loading.rank().rank();
  compiled->schedule = std::move(variant.schedule);
  compiled->lowered = std::move(variant.lowered);
  compiled->tensors =
      PlaceTensors(compiled->schedule.program().Expanded(), compiled->lowered->plan);
  compiled->seconds = loading.phases->Seconds();
  return compiled;
}

TuningRecord RecordWithoutTimes(const Loading& loading, const Variant& variant,
                                const Lowered& lowered) {
  TuningRecord record;
  record.key = loading.key;
  record.key_text = loading.key_text;
  record.best = Describe(variant);
  record.best.protocol = lowered.protocol;
  record.best.bytes = lowered.plan.bytes_per_rank * loading.rank().size();
  record.baseline = record.best;
  record.variants = 1;
  record.soft = loading.state->soft;
  return record;
}

bool MayKeep(Policy policy) { return Tunes(policy) || policy == Policy::kOnline; }

bool MayTune(const SessionState& state) {
  return Tunes(state.options.policy) && !GetEnv().assert_cached;
}

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

absl::StatusOr<uint64_t> AgreeOnSeed(const Loading& loading) {
  Packer mine;
  mine.Int(static_cast<int64_t>(GetEnv().seed.value_or(std::random_device()())));
  ASSIGN_OR_RETURN(const std::string same, loading.exchange().Broadcast(mine.bytes()));
  return static_cast<uint64_t>(Unpacker(same).Int());
}

}  // namespace coconet
