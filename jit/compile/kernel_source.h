#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace coconet {

/// A translation unit in the kernel dialect (jit/device/kernel.h), which knows where its kernels
/// begin: a compiler may compile them apart.
class KernelSource {
 public:
  KernelSource() = default;  // no kernels: an empty text
  /// A text that is compiled as a whole: it has no kernels that can be told apart.
  KernelSource(std::string text) : text_(std::move(text)) {}  // NOLINT: any text is a source
  KernelSource(const char* text) : text_(text) {}             // NOLINT

  /// Adds a kernel, unless there is one of that symbol. The definition needs nothing but the
  /// prelude before it. Requires a source that was not made from a text.
  void Add(absl::string_view symbol, absl::string_view definition);
  /// Adds the kernels of another source.
  void Add(const KernelSource& other);

  bool empty() const { return text_.empty(); }
  const std::string& text() const { return text_; }
  struct Kernel {
    absl::string_view symbol, definition;
  };
  /// The kernels that can be told apart, in the order of the text; valid as long as the source is
  /// unchanged.
  std::vector<Kernel> kernels() const;

  bool operator==(const KernelSource& other) const { return text_ == other.text_; }

 private:
  std::string text_;
  std::vector<std::pair<std::string, size_t>> kernels_;  // symbols, and where definitions begin
  std::set<std::string, std::less<>> symbols_;
};

}  // namespace coconet
