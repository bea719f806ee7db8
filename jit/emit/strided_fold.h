#pragma once

#include "jit/expressions/kernel_context.h"
#include "jit/expressions/kernel_text.h"

namespace coconet {

/// The kernel of a launch that is a strided fold (KernelShape) with what stores it: each thread
/// folds some results, neighbours in memory.
EmittedKernel EmitStridedFold(const KernelContext& k);

}  // namespace coconet
