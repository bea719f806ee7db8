#ifndef COCONET_RUNTIME_CUDA_GEMM_HOST_CUBLASLT_H_
#define COCONET_RUNTIME_CUDA_GEMM_HOST_CUBLASLT_H_

#include <cstddef>
#include <functional>
#include <vector>

#include "runtime/cuda/gemm/cublaslt_api.h"

namespace coconet {

/// A product that a stream is given.
struct HostLtWork {
  struct Access {
    void* p;
    size_t bytes;
    bool writes;
  };
  std::function<void()> compute;  // when the stream comes to it
  std::vector<Access> accesses;   // of the matrices, by row or by column
  int way = 0;                    // which it goes
  int multiprocessors = 0;        // that it was told of
  const void* result = nullptr;
};

/// Devices whose memory is the host's, as a library on them sees them.
struct HostLtDevices {
  int (*current)();  // of the calling thread; < 0: it has none
  void (*give)(cudaStream_t stream, HostLtWork work);
};

/// cuBLASLt on such devices: multiplies on the host, element by element in f32, when the stream
/// comes to it. Refuses what the library refuses: another device, sizes that do not fit together,
/// memory that lies worse than was said, too small a workspace. Offers kHostWays ways, and one
/// more, which rounds parts of sums to the type of the result, to those who do not forbid that.
/// `create`: calls CreateHostCublasLt for some devices, which live on.
CublasLtApi MakeHostCublasLt(decltype(CublasLtApi::Create) create);
cublasStatus_t CreateHostCublasLt(cublasLtHandle_t* handle, const HostLtDevices& devices);
inline constexpr int kHostWays = 3;

}  // namespace coconet

#endif  // COCONET_RUNTIME_CUDA_GEMM_HOST_CUBLASLT_H_
