#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "jit/compile/compiler.h"
#include "jit/compile/nvrtc_api.h"

namespace coconet {

/// MakeNvrtcCompiler over a given NVRTC, which must outlive the result.
absl::StatusOr<std::unique_ptr<Compiler>> MakeNvrtcCompilerOver(const NvrtcApi& nvrtc,
                                                                absl::string_view arch,
                                                                const CompilerOptions& options);

}  // namespace coconet
