#ifndef COCONET_RUNTIME_CUDA_TESTING_HOST_DRIVER_H_
#define COCONET_RUNTIME_CUDA_TESTING_HOST_DRIVER_H_

#include <functional>
#include <string>

#include "runtime/cuda/driver/driver_api.h"
#include "runtime/kernel_abi.h"

namespace coconet {

/// A driver without a GPU: device memory is the host's, a stream is a thread that does one thing
/// after the other, a module a shared object, and a kernel one of the host dialect (kernel_abi.h),
/// each of its blocks a thread. What frees memory waits for all kernels that run on the device, as
/// the real one does. There is one of it in a process; errors can be put in.
const DriverApi& HostDriver();

/// What controls must begin as for kernels of the host dialect: their waits end as those of the
/// CUDA prelude do.
Control ControlOfHostKernels();

/// How many GPUs of how many multiprocessors there are from now on, and whether they reach each
/// other's memory.
struct HostDevices {
  int count = 1;
  int multiprocessors = 128;
  bool reach_each_other = true;
  int64_t memory_bytes = int64_t{1} << 30;  // of each
  int group = 8;                            // of multiprocessors: green contexts have whole ones
  bool tells_group = true;                  // as drivers since CUDA 13 do
  int driver = 13000;                       // the version of CUDA that the driver is of
  bool multicast = false;                   // an NVSwitch is between them
  int64_t multicast_unit = int64_t{2} << 20, best_multicast_unit = int64_t{4} << 20;
  bool opens_memory = true;                // of other processes, by cuIpcOpenMemHandle
  bool files_pass = true, fabric = false;  // how handles of memory go to other processes
};
void SetHostDevices(const HostDevices& devices);

/// Puts `work` behind what the stream has been given. On a thread of the stream's; at once in the
/// stream of nobody.
void GiveToHostStream(CUstream stream, std::function<void()> work);
/// Which GPU the calling thread's calls are of; -1: none.
int CurrentHostDevice();

/// The `call`-th call from now on, of those that can fail, or of those of `only`, returns `result`;
/// 0: none does.
void FailCall(int call, CUresult result, const std::string& only = "");
/// What that call was, "cuMemAlloc"; "" when it has not come.
std::string FailedCall();

}  // namespace coconet

#endif  // COCONET_RUNTIME_CUDA_TESTING_HOST_DRIVER_H_
