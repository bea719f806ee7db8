#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "runtime/cuda/driver/driver_api.h"
#include "runtime/kernel_abi.h"

namespace coconet {

/// A driver without a GPU. Device memory is memory of the host; a stream is a thread; a module is a
/// shared object with kernels of the host dialect (kernel_abi.h), whose blocks are threads. Calls
/// that free memory wait for all kernels on the device, as those of the real driver do. Each call
/// that needs a context checks that the right one is current (NeedContext). One per process; tests
/// can inject errors.
const DriverApi& HostDriver();

/// The initial Control of kernels of the host dialect, whose waits end with it as those of the CUDA
/// prelude do.
Control ControlOfHostKernels();

/// The GPUs and what the driver can do, from SetHostDevices on.
struct HostDevices {
  int count = 1;
  int multiprocessors = 128;
  bool reach_each_other = true;
  int64_t memory_bytes = int64_t{1} << 30;  // per GPU
  int major = 9;                            // compute capability
  int shared_bytes_per_block = 227 << 10;
  int declared_shared_bytes = 0;  // by each kernel
  int group = 8;                  // multiprocessors per group: green contexts have whole groups
  bool tells_group = true;        // as drivers since CUDA 13 do
  int driver = 13000;             // its CUDA version
  bool multicast = false;         // an NVSwitch connects the GPUs
  int64_t multicast_unit = int64_t{2} << 20, best_multicast_unit = int64_t{4} << 20;
  /// The links between GPUs; null: with atomic operations and rank 0, if they reach each other.
  int (*link)(CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to) = nullptr;
  bool opens_memory = true;                // cuIpcOpenMemHandle works
  bool files_pass = true, fabric = false;  // kinds of handles that other processes can open
};
void SetHostDevices(const HostDevices& devices);

/// What cuTensorMapEncodeTiled fills a map with, of at most three dimensions.
struct HostTensorMap {
  uint64_t known = kKnown;
  const void* address = nullptr;
  uint64_t type = 0, rank = 0;
  uint64_t extents[3] = {}, strides[2] = {}, box[3] = {};
  uint64_t unused[4] = {};

  static constexpr uint64_t kKnown = 0x70616d726f736e65;
};

/// Appends `work` to the stream, whose thread does it; does it at once for a null stream.
void GiveToHostStream(CUstream stream, std::function<void()> work);
/// The GPU of the calling thread's current context; -1 if there is none.
int CurrentHostDevice();

/// Makes the `call`-th of the calls that can fail, or of those to `only`, counted from now on,
/// return `result`; 0: none.
void FailCall(int call, CUresult result, const std::string& only = "");
/// Makes that call, counted over those for GPU `device` only, end its context: all later calls for
/// the GPU return `result`, too, until the next FailCall.
void EndContextAt(int call, CUresult result, int device, const std::string& only = "");
/// The number of calls so far of each function that NeedContext or FailCall concern, by name.
/// Queries that found work to be done are not counted.
std::map<std::string, int> HostCalls();
/// The calls while `body` runs.
std::map<std::string, int> HostCallsOf(const std::function<void()>& body);
/// The name of the call that failed, "cuMemAlloc"; "" before it comes.
std::string FailedCall();

}  // namespace coconet
