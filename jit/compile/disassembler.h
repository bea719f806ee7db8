#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace coconet {

/// The machine code of a cubin as text, by nvdisasm or cuobjdump: on PATH, under CUDA_HOME, or
/// where the build found them. NotFound if there is neither.
absl::StatusOr<std::string> Disassemble(absl::string_view cubin);

/// The same by nvdisasm, with the source lines that each instruction comes from, if the cubin has
/// them (Lines::kKept). Unavailable, saying what to do, if there is no nvdisasm.
absl::StatusOr<std::string> DisassembleWithLines(absl::string_view cubin);

}  // namespace coconet
