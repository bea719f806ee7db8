#pragma once

#include "jit/config/config.h"
#include "jit/expressions/kernel_text.h"
#include "jit/launches/placed_launches.h"
#include "jit/storage/buffers.h"

namespace coconet {

/// The launch is a fold over dimensions that are neither the last nor all, with what stores it.
bool IsStridedFold(const PlacedLaunches& u, int launch);

/// Its kernel: each thread folds some results, neighbours in memory.
EmittedKernel EmitStridedFold(const PlacedLaunches& u, int launch, const Config& config, int ranks,
                              BufferTable& table);

}  // namespace coconet
