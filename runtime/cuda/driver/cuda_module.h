#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/cuda/driver/device.h"
#include "runtime/rank.h"

namespace coconet {

/// Loads a cubin, or a bundle of cubins (coconet/base/bundle.h). Its symbols are CUfunctions of
/// `device`; their code is on the GPU when Symbol returns, because a kernel loaded by its first
/// launch could wait for kernels that spin until it runs.
absl::StatusOr<std::unique_ptr<Module>> LoadCudaModule(std::shared_ptr<Device> device,
                                                       const std::string& path);

}  // namespace coconet
