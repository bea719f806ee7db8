#pragma once

#include "runtime/cuda/driver/driver_api.h"
#include "runtime/cuda/testing/host_driver.h"

namespace coconet {

/// Counts of HostDriver's virtual memory, and of calls in a forbidden order.
struct HostVirtual {
  int handles = 0, reservations = 0, mappings = 0, bindings = 0;
  int wrong = 0;  // objects unbound while mapped, memory released while bound, addresses freed
                  // while mapped
};
HostVirtual SeeHostVirtual();

/// Sets the driver's functions of virtual memory and multicast on `devices`. Memory is a memfd that
/// processes pass to each other. Each line of 64 bytes of a multicast object holds a table with the
/// line's addresses on its devices, at most 8: with it kernels of the host dialect reach them all.
/// Calls that would wait until all devices are added are refused, and so are mappings of objects to
/// which not all devices have bound memory.
void FillVirtualMemory(DriverApi& driver, const HostDevices& devices);

}  // namespace coconet
