#include "bench/machine_code/listing.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

/// Consumes `text` up to `end` and `end` itself. "" if `end` does not occur.
absl::string_view Until(absl::string_view& text, absl::string_view end) {
  const size_t at = text.find(end);
  if (at == absl::string_view::npos) return "";
  const absl::string_view before = text.substr(0, at);
  text.remove_prefix(at + end.size());
  return before;
}

/// Reads sync.h and 12 from `//## File "/folder/sync.h", line 12 inlined at "...", line 3`.
absl::StatusOr<SourceLine> ReadSource(absl::string_view words) {
  absl::string_view rest = words;
  Until(rest, "\"");
  absl::string_view path = Until(rest, "\"");
  Until(rest, "line ");
  SourceLine source;
  source.file = std::string(path.substr(path.rfind('/') + 1));
  if (source.file.empty() || !absl::SimpleAtoi(rest.substr(0, rest.find(' ')), &source.line))
    return absl::InvalidArgumentError(absl::StrCat(
        "listing: want a line of source like '//## File \"sync.h\", line 12', found ", words));
  return source;
}

/// Reads guard, opcode, operands and label of "@!P0 BRA `(.L_x_3) ;".
Instruction ReadInstruction(absl::string_view words) {
  Instruction read;
  if (absl::ConsumePrefix(&words, "@")) read.guard = std::string(Until(words, " "));
  words = absl::StripAsciiWhitespace(words);
  const size_t end = words.find_first_of(" ;");
  read.opcode = std::string(words.substr(0, end));
  words.remove_prefix(end == absl::string_view::npos ? words.size() : end);
  read.operands = std::string(absl::StripAsciiWhitespace(words.substr(0, words.rfind(';'))));
  absl::string_view operands = read.operands;
  if (read.name() == "BRA" && operands.find("`(") != absl::string_view::npos) {
    Until(operands, "`(");
    read.label = std::string(Until(operands, ")"));
  }
  return read;
}

class Reader {
 public:
  absl::Status Line(absl::string_view line) {
    if (absl::StrContains(line, "//## ")) {
      if (!in_source_) source_.clear();
      in_source_ = true;
      ASSIGN_OR_RETURN(source_.emplace_back(), ReadSource(line));
      return absl::OkStatus();
    }
    in_source_ = false;
    absl::string_view rest = absl::StripAsciiWhitespace(line);
    if (absl::ConsumePrefix(&rest, ".section\t")) return Section(absl::StripAsciiWhitespace(rest));
    if (!in_code_ || rest.empty()) return absl::OkStatus();
    if (absl::ConsumePrefix(&rest, "/*")) return Code(Until(rest, "*/"), rest);
    if (absl::ConsumeSuffix(&rest, ":")) Label(std::string(rest));
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<MachineFunction>> Finish() {
    RETURN_IF_ERROR(EndSection());
    if (functions_.empty())
      return absl::InvalidArgumentError("listing: want a function, found none");
    return std::move(functions_);
  }

 private:
  struct Place {
    size_t function, instruction;
  };

  absl::Status Section(absl::string_view name) {
    RETURN_IF_ERROR(EndSection());
    in_code_ = absl::ConsumePrefix(&name, ".text.");
    source_.clear();
    if (in_code_) functions_.push_back({std::string(name.substr(0, name.find(','))), {}});
    return absl::OkStatus();
  }

  void Label(std::string name) {
    // Functions that the kernel calls follow it in its section.
    if (absl::StartsWith(name, "$")) functions_.push_back({name, {}});
    labels_[std::move(name)] = {functions_.size() - 1, functions_.back().instructions.size()};
  }

  absl::Status Code(absl::string_view address, absl::string_view words) {
    words = absl::StripAsciiWhitespace(words);
    if (words.empty() || words[0] == '.') return absl::OkStatus();  // padding, data
    Instruction read = ReadInstruction(words);
    if (read.opcode.empty() || !absl::SimpleHexAtoi(address, &read.address))
      return absl::InvalidArgumentError(absl::StrCat(
          "listing: want an instruction like /*0010*/ EXIT ;, found /*", address, "*/ ", words));
    read.source = source_;
    functions_.back().instructions.push_back(std::move(read));
    return absl::OkStatus();
  }

  /// Finds where the branches of the section's functions go to.
  absl::Status EndSection() {
    for (; ended_ < functions_.size(); ++ended_) {
      MachineFunction& function = functions_[ended_];
      for (Instruction& branch : function.instructions) {
        if (branch.label.empty()) continue;
        const auto to = labels_.find(branch.label);
        const bool is_here = to != labels_.end() && to->second.function == ended_;
        const bool is_known = is_here && to->second.instruction < function.instructions.size();
        if (to == labels_.end() || (is_here && !is_known))
          return absl::InvalidArgumentError(
              absl::StrCat("listing: ", function.name, " branches to ", branch.label,
                           is_here ? ", want an instruction behind it" : ", want such a label"));
        if (is_known) branch.target = static_cast<int>(to->second.instruction);
      }
    }
    labels_.clear();
    return absl::OkStatus();
  }

  std::vector<MachineFunction> functions_;
  size_t ended_ = 0;                     // of these functions, whose sections were read
  std::map<std::string, Place> labels_;  // of this section
  std::vector<SourceLine> source_;
  bool in_code_ = false, in_source_ = false;
};

}  // namespace

absl::string_view Instruction::name() const {
  const absl::string_view all = opcode;
  return all.substr(0, all.find('.'));
}

bool Instruction::Has(absl::string_view modifier) const {
  const std::vector<absl::string_view> words = absl::StrSplit(opcode, '.');
  return absl::c_linear_search(words, modifier);
}

absl::StatusOr<std::vector<MachineFunction>> ReadListing(absl::string_view text) {
  Reader reader;
  for (absl::string_view line : absl::StrSplit(text, '\n')) RETURN_IF_ERROR(reader.Line(line));
  return reader.Finish();
}

void SourceTexts::Add(absl::string_view file, absl::string_view text) {
  std::vector<std::string>& lines = lines_[std::string(file)];
  lines.clear();
  for (absl::string_view line : absl::StrSplit(text, '\n'))
    lines.emplace_back(absl::StripAsciiWhitespace(line));
}

absl::string_view SourceTexts::At(const SourceLine& line) const {
  const auto found = lines_.find(line.file);
  const auto at = static_cast<size_t>(line.line) - 1;
  if (found == lines_.end() || at >= found->second.size()) return "";
  return found->second[at];
}

std::vector<std::string> SourceTexts::BodyOf(const SourceLine& line) const {
  std::vector<std::string> body;
  const auto found = lines_.find(line.file);
  if (found == lines_.end() || line.line < 1) return body;
  int open = 0;
  for (size_t at = line.line - 1; at < found->second.size(); ++at) {
    const std::string& text = found->second[at];
    open += static_cast<int>(absl::c_count(text, '{') - absl::c_count(text, '}'));
    if (open <= 0) break;
    if (at + 1 > static_cast<size_t>(line.line)) body.push_back(text);
  }
  return body;
}

std::string SourceTexts::FunctionAt(const SourceLine& line) const {
  for (SourceLine above = line; above.line > 0; --above.line) {
    const absl::string_view text = At(above);
    if (!absl::StartsWith(text, "CC_DEVICE ") && !absl::StartsWith(text, "CC_MEMBER ")) continue;
    const absl::string_view head = text.substr(0, text.find('('));
    return std::string(head.substr(head.find_last_of(" &*") + 1));
  }
  return absl::StrCat(line.file, ":", line.line);
}

}  // namespace coconet::bench
