#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autotune/runner/rank_runner.h"
#include "autotune/runner/typical_rows.h"
#include "autotune/search/variants.h"
#include "autotune/session/load/preparation.h"
#include "autotune/session/session_state.h"
#include "autotune/store/phases.h"
#include "autotune/store/record.h"
#include "coconet/ir/graph.h"
#include "jit/config/config.h"
#include "jit/lower/lower.h"
#include "runtime/rank.h"

namespace coconet {

/// Variants that a tuning starts from: the fastest at neighbouring sizes. It tries these, the plain
/// schedule, and a few that are expected to be fast, so its record is incomplete.
struct Start {
  std::vector<VariantResult> variants;  // traces and configs
  int promising = 0;                    // how many of the others, by their expected times
  int samples = 8;                      // of each that may be the fastest, at least
  bool anew = false;                    // they are timed, even if the cache has their times
};

/// A program on its way from its graph to its best variant: the state shared by looking it up,
/// verifying it and tuning it. One per call of FindOrTune and rank.
struct Loading {
  Loading(std::shared_ptr<SessionState> state, Graph program, double budget_s);

  const std::shared_ptr<SessionState> state;
  const Graph program;
  const double budget_s;  // of tuning, from `start_s` on
  const double start_s;   // on the clock Seconds
  ConfigSpace space;
  std::string key, key_text;  // of the tuning cache, of the record that is in use
  /// The cache keys without, and with, the memory limit; equal unless the limit leaves out
  /// variants.
  std::string plain_text, limited_text;
  TypicalRows typical_rows;    // of timed steps; may be empty
  std::optional<Start> start;  // none: from all variants
  /// Variants that are tried first, as they were the fastest at the nearest sizes.
  std::vector<VariantResult> favourites;
  const std::shared_ptr<Phases> phases = std::make_shared<Phases>();  // of this rank's time

  Rank& rank() const { return state->rank; }
  /// The target that its plans are lowered for.
  Target target() const { return TargetOf(state->rank, state->options.numerics()); }
  Exchange& exchange() const { return state->rank.exchange(); }
  void UseKey(const std::string& text);
  /// Whether the user wants only some of the variants.
  bool TriesSome() const {
    return state->options.admits != nullptr || !state->options.choice.empty();
  }
  /// Not collective. The variants to try. `go_on`, `few` and `planned` as of EnumerateVariants.
  absl::StatusOr<VariantSet> Variants(const std::function<bool()>& go_on, bool few = false,
                                      absl::Span<const Schedule> planned = {}) const;
  /// The variant of that trace, or text of a combination, and config; an error if it does not hold
  /// for the program.
  absl::StatusOr<Variant> VariantNamed(const std::string& trace, const Config& config) const;
  bool first() const { return state->rank.rank() == 0; }

  /// Reports progress to the user, and how much time is left.
  void Report(absl::string_view text) const;
  bool Interrupted() const;
  absl::Status InterruptedWhile(absl::string_view doing) const;
  /// Work before measuring, such as "its schedules were derived", until that share of the budget is
  /// spent.
  Preparation PreparationOf(absl::string_view doing, double share) const;
};

/// Whether what a job learns by the policy goes into the tuning cache.
bool MayKeep(Policy policy);
/// Whether Compile tunes: as the session's policy and COCONET_ASSERT_CACHED say.
bool MayTune(const SessionState& state);

/// A monotonic clock.
double Seconds();

/// Collective. Seed of verification data and of the order of measurements: COCONET_SEED, else
/// random.
absl::StatusOr<uint64_t> AgreeOnSeed(const Loading& loading);

/// Best variant of a record, lowered once: what is verified is what is dispatched.
struct Winner {
  TuningRecord record;
  Variant variant;
  std::unique_ptr<Module> module = nullptr;  // null: not loaded yet
};

/// The variant, which was lowered, as a program of the session, without a module.
std::shared_ptr<CompiledProgram> CompiledOf(const Loading& loading, Variant variant);

/// A record of a variant under the program's key that is in no cache and has no times.
TuningRecord RecordWithoutTimes(const Loading& loading, const Variant& variant,
                                const Lowered& lowered);

}  // namespace coconet
