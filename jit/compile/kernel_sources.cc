#include "jit/compile/kernel_sources.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace coconet {

std::vector<KernelSource> KernelsOf(absl::string_view source) {
  constexpr absl::string_view kBegin = "\nnamespace k_", kAfterSymbol = "_n {";
  std::vector<KernelSource> kernels;
  if (!absl::ConsumePrefix(&source, kKernelInclude)) return kernels;
  if (!absl::StartsWith(source, kBegin)) return kernels;
  while (!source.empty()) {
    const absl::string_view text = source.substr(0, source.find(kBegin, kBegin.size()));
    const absl::string_view name = text.substr(kBegin.size());
    kernels.push_back({absl::StrCat("k_", name.substr(0, name.find(kAfterSymbol))), text});
    source.remove_prefix(text.size());
  }
  return kernels;
}

}  // namespace coconet
