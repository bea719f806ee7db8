#include "coconet/language/text.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "coconet/base/nearest.h"
#include "coconet/base/status.h"
#include "coconet/language/expression.h"
#include "coconet/language/language.h"
#include "coconet/language/lexer.h"

namespace coconet {
namespace {

constexpr int kVersion = 1;
constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";  // some editors begin UTF-8 with it

/// The error of words that are none of the known ones, with the one that may be meant.
absl::Status Unknown(Words& words, absl::string_view wanted,
                     const std::vector<std::string>& known) {
  const std::string hint = DidYouMean(words.Peek().text, known);
  return absl::InvalidArgumentError(absl::StrCat(words.Expected(wanted).message(), hint));
}

/// Reads a program line by line; what a statement means is the language's business (Program).
class Parser {
 public:
  absl::Status Line(absl::string_view line);
  absl::StatusOr<Graph> Finish() const;

 private:
  absl::Status Version();
  absl::Status Statement();
  absl::Status ProgramName();
  absl::Status SizeList();
  absl::Status Declaration(bool is_state);
  absl::Status OutputOf();
  absl::Status Assignment();
  absl::StatusOr<Tensor> Value() { return ParseExpression(words_, values_, program()); }
  absl::Status Define(absl::string_view name, Tensor value);
  absl::StatusOr<Layout> ParseLayout(bool is_state, const Shape& shape);
  absl::Status ParseWeights(Layout& layout);
  /// Made by the first statement after the name.
  Program& program() { return program_.has_value() ? *program_ : program_.emplace(name_); }

  Words words_;
  bool saw_version_ = false;
  std::string name_;
  std::optional<Program> program_;
  Values values_;
};

absl::Status Parser::Line(absl::string_view line) {
  ASSIGN_OR_RETURN(words_, Words::Of(line));
  if (words_.Peek().kind == Token::Kind::kEnd) return absl::OkStatus();
  RETURN_IF_ERROR(saw_version_ ? Statement() : Version());
  RETURN_IF_ERROR(words_.ExpectEnd());
  return program_.has_value() ? program_->status() : absl::OkStatus();
}

absl::StatusOr<Graph> Parser::Finish() const {
  if (!saw_version_) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected 'coconet ", kVersion, "', found no text"));
  }
  if (!program_.has_value()) return absl::InvalidArgumentError("the program has no statements");
  return program_->graph();
}

absl::Status Parser::Statement() {
  if (words_.Peek(1).Is("=")) return Assignment();
  if (words_.Accept("program")) return ProgramName();
  if (words_.Accept("sizes")) return SizeList();
  if (words_.Accept("input")) return Declaration(/*is_state=*/false);
  if (words_.Accept("state")) return Declaration(/*is_state=*/true);
  if (words_.Accept("output")) return OutputOf();
  if (words_.Peek().Is("update") && words_.Peek(1).Is("("))
    return ParseCall(words_, values_, program()).status();
  return Unknown(words_, "program, sizes, input, state, output, update(...) or <name> =",
                 {"program", "sizes", "input", "state", "output", "update"});
}

absl::Status Parser::Version() {
  if (!words_.Accept("coconet"))
    return words_.Expected(absl::StrCat("'coconet ", kVersion, "' as the first line"));
  ASSIGN_OR_RETURN(const int version, words_.Integer<int>("the version of the text form"));
  if (version != kVersion) {
    return absl::InvalidArgumentError(absl::StrCat("the text is of version ", version,
                                                   ", this library reads version ", kVersion));
  }
  saw_version_ = true;
  return absl::OkStatus();
}

absl::Status Parser::ProgramName() {
  if (!name_.empty() || program_.has_value())
    return absl::InvalidArgumentError("the program's name comes once, before all other statements");
  ASSIGN_OR_RETURN(name_, words_.Name("the program's name"));
  return absl::OkStatus();
}

absl::Status Parser::SizeList() {
  ASSIGN_OR_RETURN(const std::string symbol, words_.Name("the symbol's name"));
  RETURN_IF_ERROR(words_.Expect("="));
  std::vector<int64_t> sizes;
  do {
    ASSIGN_OR_RETURN(const int64_t size, words_.Integer<int64_t>("the size of a tensor"));
    sizes.push_back(size);
  } while (words_.Accept(","));
  program().Sizes(symbol, std::move(sizes));
  return absl::OkStatus();
}

absl::Status Parser::Declaration(bool is_state) {
  ASSIGN_OR_RETURN(const std::string name,
                   words_.Name(is_state ? "the state's name" : "the input's name"));
  RETURN_IF_ERROR(words_.Expect(":"));
  ASSIGN_OR_RETURN(const DType dtype, ParseDTypeWord(words_));
  ASSIGN_OR_RETURN(const Shape shape, ParseShape(words_));
  ASSIGN_OR_RETURN(const Layout layout, ParseLayout(is_state, shape));
  Tensor declared = is_state ? program().State(name, dtype, shape, layout)
                             : program().Input(name, dtype, shape, layout);
  if (words_.Accept("each")) declared = program().Each(declared);
  return Define(name, declared);
}

absl::Status Parser::OutputOf() {
  ASSIGN_OR_RETURN(const std::string name, words_.Name("the output's name"));
  RETURN_IF_ERROR(words_.Expect("="));
  ASSIGN_OR_RETURN(const Tensor value, Value());
  program().Output(name, value);
  return absl::OkStatus();
}

absl::Status Parser::Assignment() {
  if (words_.Peek().kind != Token::Kind::kName && words_.Peek().kind != Token::Kind::kValue)
    return words_.Expected("a name before '='");
  const Token name = words_.Take();
  RETURN_IF_ERROR(words_.Expect("="));
  ASSIGN_OR_RETURN(const Tensor value, Value());
  return Define(name.text, value);
}

absl::Status Parser::Define(absl::string_view name, Tensor value) {
  if (name == "world")
    return absl::InvalidArgumentError("'world' is the number of ranks and cannot be a name");
  if (IsReserved(name))
    return absl::InvalidArgumentError(absl::StrCat("'", name, "' cannot be a name"));
  if (values_.try_emplace(std::string(name), value).second) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the name '", name, "' is taken"));
}

/// "by L", the name of a list of weights, or "by 3+2/214", the share of a tensor.
absl::Status Parser::ParseWeights(Layout& layout) {
  RETURN_IF_ERROR(words_.Expect("by"));
  if (words_.Peek().kind == Token::Kind::kName) {
    layout.by = std::string(words_.Take().text);
    return absl::OkStatus();
  }
  constexpr absl::string_view kWanted = "the name of a list of weights, or BEFORE+OWN/ALL";
  ASSIGN_OR_RETURN(layout.share.before, words_.Integer<int64_t>(kWanted));
  RETURN_IF_ERROR(words_.Expect("+"));
  ASSIGN_OR_RETURN(layout.share.own, words_.Integer<int64_t>("a weight"));
  RETURN_IF_ERROR(words_.Expect("/"));
  ASSIGN_OR_RETURN(layout.share.of, words_.Integer<int64_t>("the sum of all weights"));
  return absl::OkStatus();
}

absl::StatusOr<Layout> Parser::ParseLayout(bool is_state, const Shape& shape) {
  const bool open = words_.Peek().kind == Token::Kind::kEnd || words_.Peek().Is("each");
  if (open && is_state) return Layout::Auto();
  if (open && shape.empty()) return Layout::Replicated();
  if (words_.Accept("local")) return Layout::Local();
  if (words_.Accept("replicated")) return Layout::Replicated();
  if (words_.Accept("auto")) return Layout::Auto();
  if (words_.Peek().Is("owned")) {
    ASSIGN_OR_RETURN(const Cut to, ParseCut(words_));
    return Layout::Sliced(to);
  }
  if (!words_.Accept("sliced"))
    return Unknown(words_, "a layout (local, replicated, sliced(...), owned or auto)",
                   {"local", "replicated", "sliced", "owned", "auto", "each"});
  RETURN_IF_ERROR(words_.Expect("("));
  Layout layout = Layout::Sliced(0);
  ASSIGN_OR_RETURN(layout.dim, ParseSlicedDim(words_));
  if (words_.Accept(",")) RETURN_IF_ERROR(ParseWeights(layout));
  RETURN_IF_ERROR(words_.Expect(")"));
  return layout;
}

/// Whether a text that has no line of a program is the name of a file.
bool IsPath(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (text.empty() || absl::StrContains(text, '\n') || absl::StrContains(text, ' ')) return false;
  const size_t dot = text.rfind('.');
  return absl::StrContains(text, '/') || (dot != text.npos && dot > 0 && dot + 1 < text.size());
}

/// InvalidArgument for what is often taken for a program.
absl::Status CheckIsProgram(absl::string_view text) {
  const auto error = [](absl::string_view have) {
    return absl::InvalidArgumentError(absl::StrCat("want the text of a program, have ", have));
  };
  const absl::string_view head = absl::StripLeadingAsciiWhitespace(text.substr(0, 4096));
  if (absl::StartsWith(text, "\x1f\x8b"))
    return error("a file that gzip compressed; decompress it: gunzip FILE");
  if (absl::StartsWith(head, "HloModule"))
    return error("XLA's HLO; sweep imports it from a file, and FromHlo in C++");
  if (absl::StartsWith(head, "module ") || absl::StartsWith(head, "#loc"))
    return error("MLIR; from JAX, HLO can be imported: lowered.compiler_ir(\"hlo\").as_hlo_text()");
  if (IsPath(text))
    return error(absl::StrCat("the path '", absl::StripAsciiWhitespace(text),
                              "'; read the file, and pass what it contains"));
  return absl::OkStatus();
}

}  // namespace

std::string Print(const Graph& g) {
  std::string text = "coconet 1\n";
  if (!g.name.empty()) absl::StrAppend(&text, "program ", g.name, "\n");
  for (const auto& [symbol, sizes] : g.lists)
    absl::StrAppend(&text, "sizes ", symbol, " = ", absl::StrJoin(sizes, ", "), "\n");
  for (NodeId id = 0; id < g.size(); ++id) absl::StrAppend(&text, NodeText(g, id), "\n");
  return text;
}

absl::StatusOr<Graph> Parse(absl::string_view text) {
  absl::ConsumePrefix(&text, kByteOrderMark);
  RETURN_IF_ERROR(CheckIsProgram(text));
  Parser parser;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    RETURN_IF_ERROR(WithContext(parser.Line(line), absl::StrCat("line ", number)));
  }
  absl::StatusOr<Graph> graph = parser.Finish();
  if (!graph.ok()) return WithContext(graph.status(), absl::StrCat("line ", number));
  return graph;
}

}  // namespace coconet
