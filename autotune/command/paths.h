#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace coconet {

/// Resolves a path of the command line against `folder`. UserFolder is the user's working
/// directory; under `bazel run`, BUILD_WORKING_DIRECTORY.
std::string ResolvePath(absl::string_view path, const std::string& folder);
std::string UserFolder();

/// FailedPrecondition, "--json: cannot write FILE", if the file that a flag names cannot be
/// written; OK for "". To be asked before what takes minutes, whose results would be lost. Makes
/// the file.
absl::Status CheckWritable(absl::string_view flag, const std::string& file);

}  // namespace coconet
