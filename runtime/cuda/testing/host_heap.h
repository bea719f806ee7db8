#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace coconet {

/// HostDriver's device memory, which is memory of the host. Other processes can open blocks of
/// 2 MiB and more.
struct HostHeap {
  /// CUDA_ERROR_OUT_OF_MEMORY where `context` would have more than `most` bytes.
  static CUresult Allocate(CUdeviceptr* address, size_t bytes, CUcontext context, int64_t most);
  static CUresult Export(CUipcMemHandle* handle, CUdeviceptr address);
  static CUresult Import(CUdeviceptr* address, const CUipcMemHandle& handle);
  /// Frees allocated and imported memory.
  static CUresult Free(CUdeviceptr address);
};

}  // namespace coconet
