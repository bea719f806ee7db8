#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/cuda/driver/device.h"
#include "runtime/rank.h"

namespace coconet {

/// Loads a cubin, or a bundle of cubins (coconet/base/bundle.h). Its symbols are CUfunctions of
/// `device`; their code is on the GPU when Symbol returns, because a kernel loaded by its first
/// launch could wait for kernels that spin until it runs.
absl::StatusOr<std::unique_ptr<Module>> LoadCudaModule(std::shared_ptr<Device> device,
                                                       const std::string& path);

/// A kernel's use of a multiprocessor.
struct KernelFootprint {
  int registers = 0;         // a thread
  int64_t stack_bytes = 0;   // a thread: spills, and arrays that are not in registers
  int64_t shared_bytes = 0;  // a block: what its text declares and `dynamic_bytes`
  int resident_blocks = 0;   // that a multiprocessor holds at once
};
/// The footprint of a kernel of a module that LoadCudaModule returned, launched with `threads`
/// threads and `dynamic_bytes` bytes of dynamic shared memory per block. Unimplemented for other
/// modules and for simulated GPUs.
absl::StatusOr<KernelFootprint> FootprintOf(const Module& module, absl::string_view kernel,
                                            int threads, int64_t dynamic_bytes = 0);

}  // namespace coconet
