#include "jit/compile/compiler.h"

namespace coconet {

absl::StatusOr<std::unique_ptr<Compiler>> MakeCompilerFor(absl::string_view arch,
                                                          const CompilerOptions& options) {
  if (arch.empty()) return MakeHostCompiler(options);
  return arch == "simt" ? MakeSimtCompiler(options) : MakeNvrtcCompiler(arch, options);
}

}  // namespace coconet
