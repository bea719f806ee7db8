#ifndef COCONET_JIT_EMIT_EMIT_FOLD_H_
#define COCONET_JIT_EMIT_EMIT_FOLD_H_

#include <string>

#include "absl/status/statusor.h"
#include "jit/emit/emit.h"
#include "jit/storage/arguments.h"

namespace coconet {

/// The unit is a fold over dimensions that are neither the last nor all, with what stores it.
bool IsStridedFold(const Units& u, int unit);

/// Its kernel: each thread folds some results, neighbours in memory.
absl::StatusOr<EmittedKernel> EmitStridedFold(const Units& u, int unit, const Config& config,
                                              int ranks, BufferTable& table);

/// A kernel of this body.
EmittedKernel FinishedKernel(int ranks, int vec, const Arguments& args, const std::string& body,
                             int64_t bytes);

}  // namespace coconet

#endif  // COCONET_JIT_EMIT_EMIT_FOLD_H_
