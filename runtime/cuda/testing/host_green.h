#ifndef COCONET_RUNTIME_CUDA_TESTING_HOST_GREEN_H_
#define COCONET_RUNTIME_CUDA_TESTING_HOST_GREEN_H_

#include "runtime/cuda/driver/driver_api.h"
#include "runtime/cuda/testing/host_driver.h"

namespace coconet {

/// Green contexts of the driver of tests.
struct HostGreen {
  int contexts = 0, streams = 0;  // that there are
  int left = 0;                   // streams whose context was destroyed before them
  int launches = 0;               // in their streams, since this was last asked
};
HostGreen TakeHostGreen();

/// The driver's functions of green contexts, of `devices`. Wraps those that launch kernels and
/// destroy streams.
void FillGreenContexts(DriverApi& driver, const HostDevices& devices);

}  // namespace coconet

#endif  // COCONET_RUNTIME_CUDA_TESTING_HOST_GREEN_H_
