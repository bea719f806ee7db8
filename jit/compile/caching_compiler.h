#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "jit/compile/binary_cache.h"
#include "jit/compile/compiler.h"
#include "jit/compile/embedded_headers.h"

namespace coconet {

/// Compiles a translation unit without includes of ours to the bytes of a binary. Thread-safe.
class Translator {
 public:
  virtual ~Translator() = default;
  /// See Compiler::identity.
  virtual const std::string& identity() const = 0;
  virtual Dialect dialect() const = 0;
  virtual absl::string_view extension() const = 0;  // of its binaries: "so", "cubin"
  /// Errors as of Compiler::Compile.
  virtual absl::StatusOr<std::string> Translate(const std::string& unit) = 0;
};

/// What the host compiler and NVRTC share: looks for the source's binary in the cache; on a miss
/// expands the source's includes and translates it, once however many threads and processes ask.
/// `part_kernels`: see CompilerOptions.
std::unique_ptr<Compiler> MakeCachingCompiler(std::unique_ptr<Translator> translator,
                                              std::shared_ptr<BinaryCache> cache,
                                              size_t part_kernels = 0);

/// To be called by translators for each run of a compiler; see CompilerRuns.
void CountCompilerRun();

}  // namespace coconet
