#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coconet/base/dtype.h"

namespace coconet {

inline constexpr absl::string_view kResourcesFile = "tests/goldens/resources.txt";

/// Registers, stack and shared memory of kernels of every workload, those of the schedule that has
/// most in one kernel, for each architecture. The first line names NVRTC's version, since another
/// one allocates otherwise. Kernels that `takes` refuses have no line.
/// Unavailable without NVRTC.
absl::StatusOr<std::string> MakeResourceText(
    const std::string& cache_dir,
    const std::function<bool(absl::string_view workload, DType dtype)>& takes);

}  // namespace coconet
