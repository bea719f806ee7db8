#pragma once

#include "absl/status/statusor.h"
#include "jit/config/config.h"
#include "jit/config/target.h"
#include "jit/expressions/kernel_text.h"
#include "jit/storage/buffers.h"

namespace coconet {

/// Emits a kernel, and adds the buffers of its flags and counters to `table`. Internal if Fuse does
/// not make such a launch.
///
/// A kernel computes the matrix products of its launch, then does the phases of the launch
/// (KernelPhases) in their order. Phases over this rank's slice reduce the operands of the launch's
/// ReduceScatters over all ranks, compute, store sliced results, and store the operands of the
/// launch's AllGathers to all ranks. Phases over whole tensors reduce the operands of AllReduces
/// (one-shot), read what the launch gathered, chunk by chunk as it arrives (two-shot), and store
/// the rest.
///
/// If each tensor of a list has the launch, its kernel works on all of them. `launches` are those
/// of one tensor; tensors that differ from it only in size have the same text, and their own
/// `tensor_args`.
absl::StatusOr<EmittedKernel> EmitKernel(const KernelPlace& at, const Config& config,
                                         const Target& target, BufferTable& table);

}  // namespace coconet
