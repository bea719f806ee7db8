#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "jit/compile/compiler.h"
#include "jit/compile/nvrtc_api.h"

namespace coconet {

/// Whether a cubin has the source line of each instruction. Its code is the same.
enum class Lines : uint8_t { kDropped, kKept };

/// MakeNvrtcCompiler over a given NVRTC, which must outlive the result.
absl::StatusOr<std::unique_ptr<Compiler>> MakeNvrtcCompilerOver(const NvrtcApi& nvrtc,
                                                                absl::string_view arch,
                                                                const CompilerOptions& options,
                                                                Lines lines = Lines::kDropped);

}  // namespace coconet
