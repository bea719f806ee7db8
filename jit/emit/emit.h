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
  std::string symbol;  // from the fingerprint of the text: equal texts are one kernel
  std::string text;
  std::vector<Arg> args;
  std::vector<Arg> tensor_args;  // the row of its table for this tensor of a list
  int64_t bytes = 0;             // that rank 0 loads and stores; of one tensor
  int64_t chunks = 0;            // that have flags; of one tensor
  bool totals = false;           // it adds something up over all tensors
  bool rounds = false;           // blocks or ranks meet for sums in the middle of its work
};

/// The kernel of unit `unit` of `units`, to be step `step` of the plan.
struct KernelPlace {
  const Units& units;
  int unit;
  int step;
  const Piece* piece = nullptr;         // of an overlap's tensors; null: all
  int tensors = 0;                      // of a list: rows of the kernel's table
  int64_t list_chunks = 0;              // that have flags, of all these tensors
  const TiledProduct* tiles = nullptr;  // runs beside the kernel, which takes elements of it
};

/// Emits a kernel, and adds the buffers of its flags and counters to `table`. Internal when the
/// unit is none that Fuse makes.
///
/// A kernel does the phases of its unit (KernelPhases) in their order. Those over this rank's slice
/// reduce the operands of the unit's ReduceScatters over all ranks, compute, store sliced results,
/// and store what the unit gathers to all ranks. Those over whole tensors reduce the operands of
/// AllReduces (one-shot), read what the unit gathered, chunk by chunk as it arrives (two-shot), and
/// store the rest.
///
/// The kernel of a unit that each tensor of a list has works on all of them. `units` are those of
/// one tensor; tensors that differ from it in size only have the same text, and each its own
/// `tensor_args`.
absl::StatusOr<EmittedKernel> EmitKernel(const KernelPlace& at, const Config& config,
                                         const Target& target, BufferTable& table);

}  // namespace coconet

#endif  // COCONET_JIT_EMIT_EMIT_H_
