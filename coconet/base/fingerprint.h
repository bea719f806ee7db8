#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace coconet {

/// SHA-256 of `canonical_text`, as 64 lower-case hex digits. Stable across processes and machines,
/// so that it may be stored on disk (absl::Hash may not: it is seeded per process).
std::string Fingerprint(absl::string_view canonical_text);

}  // namespace coconet
