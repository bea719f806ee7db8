#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace coconet {

/// The first line of a source.
inline constexpr absl::string_view kKernelInclude = "#include \"coconet/kernel.h\"\n";

/// A kernel of a source that Lower made: it needs nothing but kKernelInclude before it.
struct KernelSource {
  std::string symbol;
  absl::string_view text;  // of the source
};

/// The kernels of the source in order; none if Lower did not make it, as in tests.
std::vector<KernelSource> KernelsOf(absl::string_view source);

}  // namespace coconet
