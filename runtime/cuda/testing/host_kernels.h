#pragma once

#include "runtime/cuda/driver/driver_api.h"
#include "runtime/cuda/testing/host_driver.h"

namespace coconet {

/// Sets HostDriver's functions of libraries and kernels. A launch may give a block as much dynamic
/// shared memory as cuFuncSetAttribute says, by default 48 KiB without what the kernel declares;
/// kernels of the host dialect use none.
void FillKernels(DriverApi& driver, const HostDevices& devices);

/// Takes back what cuFuncSetAttribute said of all kernels.
void ForgetSharedMemory();

/// Returns when no kernel runs on the calling thread's device.
void AwaitHostKernels();

}  // namespace coconet
