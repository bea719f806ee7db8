#ifndef COCONET_JIT_COMPILE_HOST_COMPILER_H_
#define COCONET_JIT_COMPILE_HOST_COMPILER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "jit/compile/compiler.h"

namespace coconet {

/// MakeHostCompiler with the compiler given: a path, or a name on PATH; "": none was found.
absl::StatusOr<std::unique_ptr<Compiler>> MakeHostCompilerFor(const std::string& cxx,
                                                              const CompilerOptions& options);

/// What decides the code that a compiler makes for this machine.
struct Toolchain {
  std::string version;  // "gcc version 12.2.0 (Debian 12.2.0-14)"
  std::string target;   // "x86_64-linux-gnu 0123456789abcdef": with a digest of what -march means
                        // here
  bool operator==(const Toolchain&) const = default;
};

/// Reads what g++ and clang++ print for -###. InvalidArgument when `text` is not that.
absl::StatusOr<Toolchain> ParseToolchain(absl::string_view text);

}  // namespace coconet

#endif  // COCONET_JIT_COMPILE_HOST_COMPILER_H_
