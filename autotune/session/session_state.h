#ifndef COCONET_AUTOTUNE_SESSION_SESSION_STATE_H_
#define COCONET_AUTOTUNE_SESSION_SESSION_STATE_H_

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "autotune/measure/tensors.h"
#include "autotune/session/session.h"
#include "autotune/store/tuning_cache.h"
#include "coconet/schedule/schedule.h"
#include "jit/compile/compiler.h"
#include "jit/lower/lower.h"
#include "runtime/rank.h"

namespace coconet {

/// What a Session, its programs and their bindings share. One a rank; used by its thread.
struct SessionState {
  SessionState(Rank& r, SessionOptions o) : rank(r), options(std::move(o)) {}

  Rank& rank;
  SessionOptions options;

  // From the first Compile on.
  std::vector<Topology> topologies;   // of all ranks; empty before
  std::vector<std::string> products;  // of all ranks, from the first program on that multiplies
                                      // matrices (Rank::Products)
  std::unique_ptr<Compiler>
      compiler;  // rank 0's; other ranks make theirs where they cannot see its binaries
  std::unique_ptr<TuningCache> cache;  // rank 0's

  int64_t allocations = 0;
  std::set<std::string> warned;
  absl::Status poison;  // the first error after which nothing can go on

  /// Once for each text, on rank 0.
  void Warn(const std::string& text) {
    if (rank.rank() == 0 && options.warn && warned.insert(text).second) options.warn(text);
  }
  absl::Status Poison(const absl::Status& status) {
    if (poison.ok()) poison = status;
    return status;
  }
  /// What a plan says of its steps. What it refuses to do leaves everything as it was.
  absl::Status Watched(const absl::Status& status) {
    const bool refused = absl::IsUnimplemented(status) || absl::IsFailedPrecondition(status);
    return status.ok() || refused ? status : Poison(status);
  }
};

/// The chosen variant of a program, loaded.
struct CompiledProgram {
  std::shared_ptr<SessionState> session;
  Graph program;  // bound, as the user wrote it; of a list written out
  Schedule schedule;
  Lowered lowered;
  std::vector<PlacedTensor> tensors;
  std::unique_ptr<Module> module;
  std::vector<VariantResult> variants;
};

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_SESSION_SESSION_STATE_H_
