#pragma once

#include "runtime/cuda/driver/driver_api.h"

namespace coconet {

/// Sets HostDriver's functions of libraries and kernels.
void FillKernels(DriverApi& driver);

/// Returns when no kernel runs on the calling thread's device.
void AwaitHostKernels();

}  // namespace coconet
