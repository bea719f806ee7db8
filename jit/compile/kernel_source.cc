#include "jit/compile/kernel_source.h"

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {

void KernelSource::Add(absl::string_view symbol, absl::string_view definition) {
  if (!symbols_.emplace(symbol).second) return;
  CC_CHECK(text_.empty() || !kernels_.empty());
  absl::StrAppend(&text_, text_.empty() ? "#include \"coconet/kernel.h\"\n" : "", "\n");
  kernels_.emplace_back(symbol, text_.size());
  absl::StrAppend(&text_, definition);
}

void KernelSource::Add(const KernelSource& other) {
  for (const Kernel& kernel : other.kernels()) Add(kernel.symbol, kernel.definition);
}

std::vector<KernelSource::Kernel> KernelSource::kernels() const {
  std::vector<Kernel> kernels;
  for (size_t i = 0; i < kernels_.size(); ++i) {
    const auto& [symbol, begin] = kernels_[i];
    const bool is_last = i + 1 == kernels_.size();
    const size_t end = is_last ? text_.size() : kernels_[i + 1].second - 1;  // a blank line
    kernels.push_back({symbol, absl::string_view(text_).substr(begin, end - begin)});
  }
  return kernels;
}

}  // namespace coconet
