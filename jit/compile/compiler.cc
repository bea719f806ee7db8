#include "jit/compile/compiler.h"

namespace coconet {

absl::StatusOr<std::unique_ptr<Compiler>> MakeCompilerFor(absl::string_view arch, bool simulated,
                                                          const CompilerOptions& options) {
  if (!arch.empty()) return MakeNvrtcCompiler(arch, options);
  return simulated ? MakeSimtCompiler(options) : MakeHostCompiler(options);
}

}  // namespace coconet
