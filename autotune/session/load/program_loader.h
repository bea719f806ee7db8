#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "autotune/runner/typical_rows.h"
#include "autotune/session/session_state.h"
#include "autotune/store/record.h"
#include "coconet/ir/graph.h"

namespace coconet {

struct LoadedProgram {
  TuningRecord record;
  bool from_cache = false;
  std::shared_ptr<const CompiledProgram> compiled;
};

/// Collective. Returns the best variant of a program, from the cache or by tuning for `budget_s`,
/// with timed steps of `typical_rows` if that knows the program's tensors by name. Unless it is a
/// part of another, a line tells the user of the tuning. The program is bound, canonical, and equal
/// on all ranks. Rank 0 reads the cache and decides; every rank validates what rank 0 sends, and
/// all ranks compare their plans and kernels before they dispatch.
absl::StatusOr<LoadedProgram> FindOrTune(const std::shared_ptr<SessionState>& state, Graph program,
                                         double budget_s, TypicalRows typical_rows = nullptr,
                                         bool is_part = false);

/// Collective. The tuning cache's record for the program, in words (explanation.h); if there is
/// none, how the nearest record differs. Nothing is compiled or run.
absl::StatusOr<std::string> ExplainStored(const std::shared_ptr<SessionState>& state,
                                          Graph program);

}  // namespace coconet
