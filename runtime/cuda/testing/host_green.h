#pragma once

#include "runtime/cuda/driver/driver_api.h"
#include "runtime/cuda/testing/host_driver.h"

namespace coconet {

/// Counts of HostDriver's green contexts.
struct HostGreen {
  int contexts = 0, streams = 0;  // that exist
  int left = 0;                   // streams whose context was destroyed first
  int launches = 0;               // in their streams, since the last call
};
HostGreen TakeHostGreen();

/// Sets the driver's functions of green contexts on `devices`; wraps those that launch kernels and
/// destroy streams.
void FillGreenContexts(DriverApi& driver, const HostDevices& devices);

}  // namespace coconet
