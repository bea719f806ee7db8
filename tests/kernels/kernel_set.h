#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "jit/compile/compiler.h"
#include "jit/lower/lower.h"
#include "runtime/rank.h"

namespace coconet {

/// The kernels of many variants, each once: compiled in a few calls of the compiler instead of one
/// per variant.
class KernelSet {
 public:
  /// Whether one of its kernels is new.
  bool Add(const Lowered& lowered);
  size_t size() const { return kernels_.size(); }
  /// By symbol, the definition.
  const std::map<std::string, std::string>& kernels() const { return kernels_; }
  /// Translation units of at most `kernels` kernels each.
  std::vector<KernelSource> Units(size_t kernels) const;
  /// Paths of the binaries. Compiles on all cores.
  absl::StatusOr<std::vector<std::string>> Compile(Compiler& compiler) const;

 private:
  std::map<std::string, std::string> kernels_;
};

/// Several binaries as one module.
absl::StatusOr<std::unique_ptr<Module>> LoadAll(Rank& rank,
                                                const std::vector<std::string>& binaries);

}  // namespace coconet
