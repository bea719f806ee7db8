#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace coconet::bench {

/// A line of the source that an instruction comes from.
struct SourceLine {
  std::string file;  // without its folder
  int line = 0;
  bool operator==(const SourceLine&) const = default;
};

/// A machine instruction, as nvdisasm prints it.
struct Instruction {
  uint32_t address = 0;
  std::string guard;     // the predicate under which it runs, "P0" or "!UP1"; "": always
  std::string opcode;    // with its modifiers, "LDG.E.U16"
  std::string operands;  // "R0, desc[UR14][R4.64]"
  std::string label;     // of a branch: where it goes to, ".L_x_3"
  int target = -1;       // the index of the instruction there; -1: none known
  /// The source, innermost first: each line was inlined at the next one.
  std::vector<SourceLine> source;

  /// The opcode without its modifiers.
  absl::string_view name() const;
  /// Whether `modifier` is among those of the opcode.
  bool Has(absl::string_view modifier) const;
};

/// A kernel, or a function that it calls.
struct MachineFunction {
  std::string name;
  std::vector<Instruction> instructions;
};

/// Reads what nvdisasm prints of the code of a cubin, with or without its lines of source.
/// InvalidArgument for a text without functions, or a branch to a label that is not there.
absl::StatusOr<std::vector<MachineFunction>> ReadListing(absl::string_view text);

/// The texts that lines of source refer to, by file.
class SourceTexts {
 public:
  void Add(absl::string_view file, absl::string_view text);
  /// The line without the blanks around it; "" if the file has no such line.
  absl::string_view At(const SourceLine& line) const;
  /// The lines behind it, up to the one that closes the braces that it opens.
  std::vector<std::string> BodyOf(const SourceLine& line) const;
  /// The device function that the line is in; the file and the line if that is not known.
  std::string FunctionAt(const SourceLine& line) const;

 private:
  std::map<std::string, std::vector<std::string>> lines_;
};

}  // namespace coconet::bench
