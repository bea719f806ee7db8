#ifndef COCONET_RUNTIME_CUDA_TESTING_HOST_VIRTUAL_H_
#define COCONET_RUNTIME_CUDA_TESTING_HOST_VIRTUAL_H_

#include "runtime/cuda/driver/driver_api.h"
#include "runtime/cuda/testing/host_driver.h"

namespace coconet {

/// Virtual memory of the driver of tests: what there is of it, and what was done in an order that
/// it must not have.
struct HostVirtual {
  int handles = 0, reservations = 0, mappings = 0, bindings = 0;
  int wrong = 0;  // objects unbound while mapped, memory released while bound, addresses given back
                  // while mapped
};
HostVirtual SeeHostVirtual();

/// The driver's functions of virtual memory and multicast, of `devices`. Memory is a file of the
/// host's memory, which processes hand each other. An address of a multicast object is, in each of
/// its lines of 64 bytes, a table of the addresses at which its devices, 8 at most, have what it
/// stands for: so kernels of the host dialect reach them all by it. What would wait for devices to
/// be added is refused, and so are mappings of objects that not all have bound to.
void FillVirtualMemory(DriverApi& driver, const HostDevices& devices);

}  // namespace coconet

#endif  // COCONET_RUNTIME_CUDA_TESTING_HOST_VIRTUAL_H_
