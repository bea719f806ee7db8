#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "autotune/command/console/flag_help.h"

namespace coconet {

enum class Shell : uint8_t { kBash, kZsh };

/// What can be completed.
struct Completion {
  std::vector<CommandHelp> commands;
  std::vector<ProgramHelp> programs;
  std::vector<std::string> size_lists;  // "@gpt2", of flags that take sizes
};

/// A script for `source <(coconet completion bash)`, or to be found by the shell's completion as
/// the file of `coconet`: completes commands, flags, programs, the values that a flag takes, and
/// files. It runs nothing of this library.
std::string CompletionScript(Shell shell, const Completion& of);

}  // namespace coconet
