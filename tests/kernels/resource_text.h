#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coconet/base/dtype.h"

namespace coconet {

inline constexpr absl::string_view kResourcesFile = "tests/goldens/resources.txt";

/// Registers, stack and shared memory of kernels of every workload, those of the schedule that has
/// most in one kernel, for each architecture. The first line names NVRTC's version, since another
/// one allocates otherwise. With `only` the lines of that type's kernels. Unavailable without
/// NVRTC.
absl::StatusOr<std::string> MakeResourceText(const std::string& cache_dir,
                                             std::optional<DType> only = std::nullopt);

}  // namespace coconet
