#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "autotune/runner/typical_rows.h"
#include "autotune/session/load/loading.h"
#include "autotune/session/session_state.h"
#include "autotune/session/sizes/family.h"
#include "autotune/store/families/bucket_rows.h"
#include "autotune/store/record.h"
#include "coconet/ir/graph.h"

namespace coconet {

struct LoadedProgram {
  TuningRecord record;
  bool from_cache = false;
  std::shared_ptr<const CompiledProgram> compiled;
};

struct LoadTerms {
  TypicalRows typical_rows = nullptr;  // of timed steps, by the program's names of tensors
  bool is_part = false;                // of a larger tuning: the user is not told of it
  /// The program without its sizes: the cache may know its variant for a range of them. None: a
  /// bucket of sizes is not looked for.
  std::optional<FamilyMember> family = std::nullopt;
  /// The bucket that has the program's sizes; none: the cache is asked for it.
  std::optional<SizeBucket> bucket = std::nullopt;
  /// Variants that a tuning starts from; none: from all.
  std::optional<Start> start = std::nullopt;
};

/// Collective. Returns the best variant of a program, from the cache or by tuning for `budget_s`.
/// Unless it is a part of another, a line tells the user of the tuning. The program is bound,
/// canonical, and equal on all ranks. Rank 0 reads the cache and decides; every rank validates what
/// rank 0 sends, and all ranks compare their plans and kernels before they dispatch.
absl::StatusOr<LoadedProgram> FindOrTune(const std::shared_ptr<SessionState>& state, Graph program,
                                         double budget_s, LoadTerms terms = {});

/// A family of programs, and the buckets of its sizes that the tuning cache has.
struct KnownFamily {
  std::string text;  // its key text
  std::vector<SizeBucket> buckets;
};
/// Collective, with the same result on all ranks. `program` is one of the family.
absl::StatusOr<KnownFamily> FindFamily(const std::shared_ptr<SessionState>& state, Graph program,
                                       FamilyMember family);

/// Collective. The tuning cache's record for the program, in words (explanation.h); if there is
/// none, how the nearest record differs. Nothing is compiled or run.
absl::StatusOr<std::string> ExplainStored(const std::shared_ptr<SessionState>& state,
                                          Graph program);

}  // namespace coconet
