#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace coconet {

// Several named contents in one: a first line that tells a bundle from other files, a line "NAME
// BYTES" for each, an empty line, the contents. What follows them, as the digest of a file of the
// binary cache does, is ignored.

/// What a bundle begins with.
inline constexpr absl::string_view kBundleBegin = "coconet bundle 1\n";

/// Names have neither spaces nor line ends.
std::string PackBundle(absl::Span<const std::pair<std::string, std::string>> parts);

/// Whether a content begins as a bundle does.
bool IsBundle(absl::string_view content);

/// The parts, as views of `bundle`. DataLoss if the content is not a bundle or is cut off.
absl::StatusOr<std::vector<std::pair<std::string, absl::string_view>>> UnpackBundle(
    absl::string_view bundle);

}  // namespace coconet
