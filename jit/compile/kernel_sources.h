#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace coconet {

/// What a source begins with.
inline constexpr absl::string_view kKernelInclude = "#include \"coconet/kernel.h\"\n";

/// A kernel of a source that Lower made: it needs nothing but kKernelInclude before it.
struct KernelSource {
  std::string symbol;
  absl::string_view text;  // of the source
};

/// All of them, in order; none of another source, as tests write them.
std::vector<KernelSource> KernelsOf(absl::string_view source);

}  // namespace coconet
