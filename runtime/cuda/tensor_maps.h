#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "runtime/arguments.h"
#include "runtime/cuda/driver/device.h"

namespace coconet {

/// The step's tensor maps on the source's rank, encoded by the driver. FailedPrecondition, with
/// what was wanted and found, where the GPU has no tensor maps, or the matrix lies so that it can
/// have none: its address or its rows at no multiples of 16 bytes, or too far apart.
absl::StatusOr<std::vector<TensorMapWords>> EncodeMaps(const Device& device,
                                                       const ArgumentSource& source,
                                                       const KernelStep& step);

}  // namespace coconet
