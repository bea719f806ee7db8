#pragma once

#include "absl/status/statusor.h"
#include "jit/config/config.h"
#include "jit/config/target.h"
#include "jit/expressions/kernel_text.h"
#include "jit/storage/buffers.h"

namespace coconet {

/// Emits a kernel, and adds the buffers of its flags and counters to `table`. Internal when the
/// unit is none that Fuse makes.
///
/// A kernel computes the matrix products of its unit, then does the phases of the unit
/// (KernelPhases) in their order. Those over this rank's slice
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
