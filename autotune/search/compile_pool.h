#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "jit/compile/compiler.h"
#include "runtime/rank.h"

namespace coconet {

struct CompileWatch {
  /// Polled on rank 0; once it returns true, no further compile starts.
  std::function<bool()> stop;
  /// Called on rank 0 while compiling: `done` of `of` sources are compiled.
  std::function<void(int done, int of)> progress;
  /// Called on rank 0 with warnings of the compiler's cache.
  std::function<void(absl::string_view)> warn;
};

/// Collective. Returns the path of the binary per source; Cancelled for sources that were not
/// begun. Rank 0 compiles, with one thread per core that the ranks of its machine may use, and
/// sends heart beats, so that the waiting ranks do not time out. Only rank 0's `compiler` and
/// `sources` count.
absl::StatusOr<std::vector<absl::StatusOr<std::string>>> CompileTogether(
    Rank& rank, Compiler* compiler, absl::Span<const std::string> sources,
    const CompileWatch& watch);

}  // namespace coconet
