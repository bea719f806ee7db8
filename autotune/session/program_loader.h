#ifndef COCONET_AUTOTUNE_SESSION_PROGRAM_LOADER_H_
#define COCONET_AUTOTUNE_SESSION_PROGRAM_LOADER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "autotune/session/session_state.h"
#include "autotune/store/record.h"
#include "coconet/ir/graph.h"

namespace coconet {

struct LoadedProgram {
  TuningRecord record;
  bool from_cache = false;
  std::shared_ptr<const CompiledProgram> compiled;
};

/// Collective. The record of a bound, canonical program that is the same on all ranks: from the
/// cache, else by tuning. Rank 0 reads and decides; every rank checks what it gets, and that all
/// hold the same plan and kernels, before anything is dispatched.
absl::StatusOr<LoadedProgram> FindOrTune(const std::shared_ptr<SessionState>& state, Graph program);

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_SESSION_PROGRAM_LOADER_H_
