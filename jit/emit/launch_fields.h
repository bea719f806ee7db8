#pragma once

#include <cstdint>

#include "jit/emit/rings.h"
#include "jit/expressions/kernel_context.h"

namespace coconet {

/// How a kernel with this text waits for others.
struct Synchronization {
  int rounds = 0;        // in which blocks or ranks meet
  bool is_used = false;  // ranks, blocks or a product beside the kernel are waited for
};

/// Adds the arguments that place a launch: this rank, its slice and piece, chunks; and, if it
/// synchronizes, flags and counters, whose buffers it adds to the table. Returns how many chunks of
/// a tensor have flags.
int64_t AddLaunchFields(KernelContext& k, const Rings& rings,
                        const Synchronization& synchronization);

}  // namespace coconet
