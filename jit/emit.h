#ifndef COCONET_JIT_EMIT_H_
#define COCONET_JIT_EMIT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "jit/buffers.h"
#include "jit/config.h"
#include "jit/pieces.h"
#include "jit/target.h"
#include "jit/units.h"
#include "runtime/plan.h"

namespace coconet {

/// One generated kernel: its definition in the kernel dialect and the arguments that it expects.
struct EmittedKernel {
  std::string symbol;  // from the fingerprint of the text: equal kernels are one
  std::string text;
  std::vector<Arg> args;
  int64_t bytes = 0;   // that rank 0 loads and stores
};

/// Emits the kernel of `unit`, which is step `step` of the plan; adds its flags and counters to `table`.
///
/// A kernel has two phases, each present where it stores something. Phase A runs over this rank's slice: it reduces the operands of
/// the unit's ReduceScatters over all ranks, computes, stores Sliced results, and stores the unit's gathered values to all
/// ranks. Phase B runs over whole tensors: it reduces the operands of AllReduces itself (one-shot), may read what the
/// unit gathered, chunk by chunk as it arrives (two-shot), and stores the rest.
/// With `piece` it does only that part of an overlap's tensors.
absl::StatusOr<EmittedKernel> EmitKernel(const Units& u, int unit, const Config& config, const Target& target, int step,
                                         const Piece* piece, BufferTable& table);

}  // namespace coconet

#endif  // COCONET_JIT_EMIT_H_
