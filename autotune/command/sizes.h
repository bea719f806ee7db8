#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autotune/store/families/size_ranges.h"
#include "coconet/ir/types.h"

namespace coconet {

// Sizes on command lines.

/// Parses a size, or a list: "1024,3x5,1Mi", "@bert-large" (model_shapes.h), "@file" with one size
/// per line. NotFound if a list cannot be read.
absl::StatusOr<BoundSize> ParseSizes(absl::string_view text, const std::string& folder);

/// Parses "1Ki..64Mi": both ends included, the smaller first, from 1 on.
absl::StatusOr<SizeRange> ParseSizeRange(absl::string_view text);
/// Whether ParseSizeRange, rather than ParseSizes, is to parse the text.
bool IsSizeRange(absl::string_view text);

/// "1000", "16Ki": parses back.
std::string ShortSize(int64_t size);
/// "K=8 N=1Ki..64Mi"
std::string RangesText(const SizeRanges& ranges);

/// "N=1024", "N=3,15", "N=(396 tensors, 335707968)".
std::string SizesText(const Sizes& sizes);

/// "4096", "16Ki", "1.5Mi", "2k", "1G": powers of 1024 with an i, of 1000 without.
absl::StatusOr<int64_t> ParseSize(absl::string_view text);

}  // namespace coconet
