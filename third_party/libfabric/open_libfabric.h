#pragma once

#include "absl/status/status.h"
#include "third_party/dynamic/dynamic_library.h"

namespace coconet {

/// Opens libfabric unless it is open. Unavailable, saying what to install, if it cannot be opened.
/// Thread-safe.
absl::Status OpenLibfabric();

extern DynamicLibrary libfabric_library;

}  // namespace coconet
