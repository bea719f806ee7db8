#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace coconet {

/// A block of the heap, as cuPointerGetAttribute tells of it.
struct HostBlock {
  CUdeviceptr base;
  size_t bytes;
  CUcontext context;  // null: imported from another process
  bool exportable;
};

/// HostDriver's device memory, which is memory of the host. Other processes can open blocks of
/// 2 MiB and more.
struct HostHeap {
  /// CUDA_ERROR_OUT_OF_MEMORY if `context` would have more than `most` bytes.
  static CUresult Allocate(CUdeviceptr* address, size_t bytes, CUcontext context, int64_t most);
  /// The block around an address; CUDA_ERROR_INVALID_VALUE for none.
  static CUresult Find(CUdeviceptr address, HostBlock* block);
  static CUresult Export(CUipcMemHandle* handle, CUdeviceptr address);
  static CUresult Import(CUdeviceptr* address, const CUipcMemHandle& handle);
  /// Frees allocated and imported memory.
  static CUresult Free(CUdeviceptr address);
};

}  // namespace coconet
