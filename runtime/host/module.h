#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/rank.h"

namespace coconet {

/// Loads a shared object of HostKernels, or a bundle of them (coconet/base/bundle.h); the
/// destructor unloads it.
absl::StatusOr<std::unique_ptr<Module>> LoadHostModule(const std::string& path);

}  // namespace coconet
