#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace coconet {

/// What a flag's value is, for those who complete it.
enum class Takes : uint8_t {
  kNothing,
  kText,    // numbers and words of the user's
  kWords,   // one of FlagHelp::words
  kFile,    // a path
  kPreset,  // the name of a workload's sizes
  kSizes,   // a size, or a list of sizes
};

/// A flag as its help and its completion show it.
struct FlagHelp {
  absl::string_view name;  // without dashes
  Takes takes = Takes::kNothing;
  absl::string_view shown;  // "ranks=2", as the help shows it
  absl::string_view does;   // what the help says of it, on any number of lines
  std::vector<std::string> words = {};
};

/// "host, cuda or simt" as words.
std::vector<std::string> WordsOf(absl::string_view list);

/// The flags' lines of a help text, of at most 100 columns.
std::string FlagsText(absl::Span<const FlagHelp> flags);

/// A command, such as `sweep`, as completion sees it.
struct CommandHelp {
  absl::string_view name;
  absl::string_view does;  // in a line
  std::vector<FlagHelp> flags = {};
  /// What stands first behind the name, before programs.
  std::vector<std::string> words = {};
  bool takes_programs = false, takes_files = false;  // names of built-in programs; .coco, .hlo
  bool takes_all = false;                            // "all" for a program
};

/// A built-in program as completion sees it.
struct ProgramHelp {
  absl::string_view name;
  absl::string_view does;                   // in a line
  std::vector<std::string> presets, sizes;  // their names; the symbols that flags set
};

}  // namespace coconet
