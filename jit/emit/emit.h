#ifndef COCONET_JIT_EMIT_EMIT_H_
#define COCONET_JIT_EMIT_EMIT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "jit/config/config.h"
#include "jit/config/pieces.h"
#include "jit/config/target.h"
#include "jit/config/units.h"
#include "jit/storage/buffers.h"
#include "runtime/plan.h"

namespace coconet {

struct TiledProduct;

/// One generated kernel: its definition in the kernel dialect and the arguments that it expects.
struct EmittedKernel {
  std::string symbol;  // from the fingerprint of the text: equal kernels are one
  std::string text;
  std::vector<Arg> args;
  std::vector<Arg> tensor_args;  // of a row of its table, for one tensor of a list
  int64_t bytes = 0;             // that rank 0 loads and stores; of one tensor
  int64_t chunks = 0;            // with flags; of one tensor
  bool totals = false;           // it adds something up over all tensors
  bool rounds = false;           // it sums up, waits for the sums, and goes on
};

/// What a kernel is of: unit `unit` of `units`, step `step` of the plan.
struct KernelPlace {
  const Units& units;
  int unit;
  int step;
  const Piece* piece = nullptr;         // of an overlap's tensors; null: all
  int tensors = 0;                      // of a list, in the kernel's table
  int64_t list_chunks = 0;              // with flags, of all of them
  const TiledProduct* tiles = nullptr;  // which runs beside it, and some of whose elements it takes
};

/// Emits a kernel; adds its flags and counters to `table`.
///
/// A kernel has two phases, each present where it stores something. Phase A runs over this rank's
/// slice: it reduces the operands of the unit's ReduceScatters over all ranks, computes, stores
/// Sliced results, and stores the unit's gathered values to all ranks. Phase B runs over whole
/// tensors: it reduces the operands of AllReduces itself (one-shot), may read what the unit
/// gathered, chunk by chunk as it arrives (two-shot), and stores the rest.
///
/// Of a unit that each tensor of a list has, the kernel works on all of them: `units` are those of
/// one tensor, whose text all share that differ from it in size only, and `tensor_args` its row of
/// the table.
absl::StatusOr<EmittedKernel> EmitKernel(const KernelPlace& at, const Config& config,
                                         const Target& target, BufferTable& table);

}  // namespace coconet

#endif  // COCONET_JIT_EMIT_EMIT_H_
