#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "jit/compile/compiler.h"

namespace coconet {

/// MakeHostCompiler with a given compiler: a path, or a name on PATH; "": none was found.
absl::StatusOr<std::unique_ptr<Compiler>> MakeHostCompilerFor(const std::string& cxx,
                                                              const CompilerOptions& options);

/// What determines the code that a compiler generates on this machine.
struct Toolchain {
  std::string version;  // "gcc version 12.2.0 (Debian 12.2.0-14)"
  /// "x86_64-linux-gnu 0123456789abcdef": with a digest of the expansion of -march.
  std::string target;
  bool operator==(const Toolchain&) const = default;
};

/// Parses the output of g++ or clang++ for -###. InvalidArgument when `text` is something else.
absl::StatusOr<Toolchain> ParseToolchain(absl::string_view text);

/// BinaryTarget of the host and of simulated GPUs.
std::string HostBinaryTarget();

}  // namespace coconet
