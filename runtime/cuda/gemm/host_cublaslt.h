#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "runtime/cuda/gemm/cublaslt_api.h"

namespace coconet {

/// A product as enqueued in a stream.
struct HostLtWork {
  struct Access {
    void* p;
    size_t bytes;
    bool writes;
  };
  std::function<void()> compute;  // called when the stream reaches it
  std::vector<Access> accesses;   // of the matrices, by row or by column
  int way = 0;                    // the algorithm
  int multiprocessors = 0;        // as described to the library
  const void* result = nullptr;
};

/// Fake devices with host memory, as the fake library uses them.
struct HostLtDevices {
  int (*current)();  // the calling thread's current device; < 0: none
  void (*give)(cudaStream_t stream, HostLtWork work);
};

/// A fake cuBLASLt on fake devices: computes on the host, element by element in f32, when the
/// stream reaches the product. Refuses what the library refuses: another device, sizes that do not
/// match, memory less aligned than promised, too small a workspace. Offers kHostWays algorithms,
/// and, if not forbidden, one more that rounds partial sums to the type of c. `create` calls
/// CreateHostCublasLt for some devices, which must outlive it.
CublasLtApi MakeHostCublasLt(decltype(CublasLtApi::Create) create);
cublasStatus_t CreateHostCublasLt(cublasLtHandle_t* handle, const HostLtDevices& devices);
inline constexpr int kHostWays = 3;

}  // namespace coconet
