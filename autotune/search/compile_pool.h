#ifndef COCONET_AUTOTUNE_SEARCH_COMPILE_POOL_H_
#define COCONET_AUTOTUNE_SEARCH_COMPILE_POOL_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "jit/compile/compiler.h"
#include "runtime/rank.h"

namespace coconet {

struct CompileWatch {
  /// Polled on rank 0: true starts no further compile.
  std::function<bool()> stop;
  /// On rank 0, now and then: so many of so many are done.
  std::function<void(int done, int of)> progress;
  /// Warnings of the compiler's cache, on rank 0.
  std::function<void(absl::string_view)> warn;
};

/// Collective. Compiles on rank 0, with a thread for every core that the ranks of its machine may
/// use; the others wait, and hear of it often enough not to take rank 0 for dead. `compiler` and
/// `sources` are rank 0's. The paths of the binaries, by source; Cancelled for those that were not
/// begun.
absl::StatusOr<std::vector<absl::StatusOr<std::string>>> CompileTogether(
    Rank& rank, Compiler* compiler, absl::Span<const std::string> sources,
    const CompileWatch& watch);

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_SEARCH_COMPILE_POOL_H_
