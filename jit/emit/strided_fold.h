#pragma once

#include "jit/config/config.h"
#include "jit/config/units.h"
#include "jit/expressions/kernel_text.h"
#include "jit/storage/buffers.h"

namespace coconet {

/// Whether the unit is a fold over dimensions that are neither the last nor all, with its store.
bool IsStridedFold(const Units& u, int unit);

/// The kernel of such a unit: each thread folds some results, neighbours in memory.
EmittedKernel EmitStridedFold(const Units& u, int unit, const Config& config, int ranks,
                              BufferTable& table);

}  // namespace coconet
