#include "coconet/hlo/text/hlo_parser.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/hlo/text/hlo_cursor.h"

namespace coconet {
namespace {

/// Reads the shape of an array after its type's name.
absl::StatusOr<HloShape> TakeArray(HloCursor& cursor, HloType type) {
  HloShape shape;
  shape.type = type;
  RETURN_IF_ERROR(cursor.Expect("["));
  int64_t elements = 1;
  while (!cursor.Accept("]")) {
    if (!shape.dims.empty()) RETURN_IF_ERROR(cursor.Expect(","));
    if (cursor.Peek() == '<' || cursor.Peek() == '?') {
      return cursor.Expected(
          "extents that are numbers; programs of dynamic shapes have no plan, lower the program "
          "for shapes that are known");
    }
    ASSIGN_OR_RETURN(const int64_t dim, cursor.TakeInteger("an extent"));
    if (dim < 0) return cursor.Expected("an extent of at least 0 before here");
    // Extents of 0 do not hide others that are too large.
    if (dim > kMostHloElements / elements)
      return cursor.Expected("arrays of at most 2^40 elements before here");
    elements *= std::max<int64_t>(dim, 1);
    shape.dims.push_back(dim);
  }
  if (cursor.Accept("{")) {
    while (IsHloDigit(cursor.Peek())) {
      ASSIGN_OR_RETURN(const int64_t dim, cursor.TakeInteger("a dimension"));
      shape.minor_to_major.push_back(static_cast<int>(dim));
      if (!cursor.Accept(",")) break;
    }
    // Tiles and memory spaces may follow.
    RETURN_IF_ERROR(cursor.TakeUntil("}", false).status());
    RETURN_IF_ERROR(cursor.Expect("}"));
    std::vector<int> sorted = shape.minor_to_major;
    std::sort(sorted.begin(), sorted.end());
    for (size_t d = 0; d < sorted.size(); ++d) {
      if (sorted[d] != static_cast<int>(d) || sorted.size() != shape.dims.size())
        return cursor.Expected("a layout with each dimension once before here");
    }
    if (std::is_sorted(shape.minor_to_major.rbegin(), shape.minor_to_major.rend()))
      shape.minor_to_major.clear();
  }
  return shape;
}

absl::StatusOr<HloShape> TakeShape(HloCursor& cursor, int depth, int& arrays) {
  if (depth > kDeepestHlo)
    return cursor.Expected(absl::StrCat("tuples at most ", kDeepestHlo, " deep"));
  if (++arrays > kMostHloArrays)
    return cursor.Expected(absl::StrCat("a shape of at most ", kMostHloArrays, " arrays"));
  HloShape shape;
  if (cursor.Accept("(")) {
    while (!cursor.Accept(")")) {
      if (!shape.elements.empty()) RETURN_IF_ERROR(cursor.Expect(","));
      ASSIGN_OR_RETURN(shape.elements.emplace_back(), TakeShape(cursor, depth + 1, arrays));
    }
    return shape;
  }
  HloCursor before = cursor;
  const absl::string_view name = cursor.TakeName();
  const std::optional<HloType> type = ParseHloType(name);
  if (!type.has_value()) return before.Expected("a type, such as f32[2,3]");
  if (*type == HloType::kOpaque && cursor.Peek() != '[') {
    shape.type = *type;
    return shape;
  }
  return TakeArray(cursor, *type);
}

/// Reads one module.
class Parser {
 public:
  explicit Parser(HloModule& module) : module_(module), cursor_(*module.text) {}

  absl::Status Read() {
    if (!cursor_.AcceptWord("HloModule")) return NoModule();
    module_.name = cursor_.TakeName();
    if (module_.name.empty()) return cursor_.Expected("the module's name");
    RETURN_IF_ERROR(ReadAttributes(module_.attributes));
    SkipSources();
    while (!cursor_.AtEnd()) RETURN_IF_ERROR(ReadComputation());
    if (module_.entry < 0)
      return absl::InvalidArgumentError(absl::StrCat(
          "line ", cursor_.line(), ": want a computation that begins with ENTRY, have none"));
    return absl::OkStatus();
  }

 private:
  absl::Status NoModule() {
    const absl::string_view head = cursor_.rest().substr(0, 4096);
    if (absl::StartsWith(head, "\x1f\x8b"))
      return absl::InvalidArgumentError(
          "want HLO text, have a file that gzip compressed; decompress it: gunzip FILE");
    if (absl::c_any_of(head, [](char c) { return c >= 0 && c < '\t'; }))
      return absl::InvalidArgumentError(
          "want HLO text, have a binary file, as an HloProto is; print the module as text: "
          "as_hlo_text() in JAX, XLA_FLAGS=--xla_dump_hlo_as_text for dumps");
    if (absl::StrContains(head, "stablehlo.") || absl::StrContains(head, "mhlo.") ||
        absl::StrContains(head, "func.func") || absl::StartsWith(head, "module")) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", cursor_.line(),
                       ": want HLO text, have StableHLO or another dialect of MLIR; from JAX, "
                       "lowered.compiler_ir(\"hlo\").as_hlo_text() gives HLO"));
    }
    return cursor_.Expected("'HloModule'");
  }

  /// Tables of where instructions come from, a numbered line for each entry.
  void SkipSources() {
    while (cursor_.AcceptWord("FileNames") || cursor_.AcceptWord("FunctionNames") ||
           cursor_.AcceptWord("FileLocations") || cursor_.AcceptWord("StackFrames")) {
      while (IsHloDigit(cursor_.Peek())) cursor_.SkipLine();
    }
  }

  /// ", name=value" as often as it is there.
  absl::Status ReadAttributes(std::vector<HloAttribute>& attributes) {
    while (cursor_.Accept(",")) {
      HloAttribute& attribute = attributes.emplace_back();
      attribute.name = cursor_.TakeName();
      if (attribute.name.empty()) return cursor_.Expected("an attribute's name");
      RETURN_IF_ERROR(cursor_.Expect("="));
      ASSIGN_OR_RETURN(attribute.value, cursor_.TakeUntil(",}", true));
    }
    return absl::OkStatus();
  }

  absl::Status ReadComputation() {
    const bool is_entry = cursor_.AcceptWord("ENTRY");
    const int64_t line = cursor_.line();
    HloComputation computation;
    computation.name = cursor_.TakeName();
    if (computation.name.empty()) return cursor_.Expected("a computation");
    if (cursor_.Peek() == '(') {  // the signature, which the instructions say once more
      ASSIGN_OR_RETURN(const absl::string_view signature, cursor_.TakeUntil("{", false));
      // "-> f32[2]{1,0} {": the layouts of the result have braces, too.
      static_cast<void>(signature);
      RETURN_IF_ERROR(SkipLayouts());
    }
    RETURN_IF_ERROR(cursor_.Expect("{"));
    instructions_.clear();
    while (!cursor_.Accept("}")) RETURN_IF_ERROR(ReadInstruction(computation));
    std::vector<HloAttribute> ignored;  // execution_thread
    RETURN_IF_ERROR(ReadAttributes(ignored));
    if (computation.instructions.empty())
      return absl::InvalidArgumentError(
          absl::StrCat("line ", line, ": computation ", computation.name, " has no instructions"));
    if (computation.root < 0)
      computation.root = static_cast<int32_t>(computation.instructions.size()) - 1;
    RETURN_IF_ERROR(CheckParameters(computation, line));
    const auto number = static_cast<int32_t>(module_.computations.size());
    if (!module_.numbers.emplace(computation.name, number).second)
      return absl::InvalidArgumentError(
          absl::StrCat("line ", line, ": computation ", computation.name, " is defined twice"));
    if (is_entry) {
      if (module_.entry >= 0)
        return absl::InvalidArgumentError(
            absl::StrCat("line ", line, ": want one ENTRY, have a second, ", computation.name));
      module_.entry = number;
    }
    module_.computations.push_back(std::move(computation));
    return absl::OkStatus();
  }

  /// Skips what remains of a signature: "{1,0}, f32[3]{0}) " before "{" and the first instruction.
  absl::Status SkipLayouts() {
    while (true) {
      HloCursor ahead = cursor_;
      RETURN_IF_ERROR(ahead.Expect("{"));
      // A layout has digits first, or is empty for scalars; a body has a name.
      const char next = ahead.Peek();
      if (!IsHloDigit(next) && next != ':' && next != '}') return absl::OkStatus();
      if (next == '}') {
        ahead.Accept("}");
        if (const char after = ahead.Peek(); after != '{' && after != ',') return absl::OkStatus();
      }
      cursor_.Accept("{");
      ASSIGN_OR_RETURN(const absl::string_view layout, cursor_.TakeUntil("}", false));
      static_cast<void>(layout);
      cursor_.Accept("}");
      ASSIGN_OR_RETURN(const absl::string_view rest, cursor_.TakeUntil("{", false));
      static_cast<void>(rest);
    }
  }

  absl::Status ReadInstruction(HloComputation& computation) {
    const bool is_root = cursor_.AcceptWord("ROOT");
    HloInstruction instruction;
    cursor_.SkipBlanks();
    instruction.line = cursor_.line();
    instruction.name = cursor_.TakeName();
    if (instruction.name.empty()) return cursor_.Expected("an instruction or '}'");
    RETURN_IF_ERROR(InInstruction(instruction, cursor_.Expect("=")));
    int arrays = 0;
    absl::StatusOr<HloShape> shape = TakeShape(cursor_, 0, arrays);
    RETURN_IF_ERROR(InInstruction(instruction, shape.status()));
    instruction.shape = *std::move(shape);
    instruction.opcode = cursor_.TakeName();
    if (instruction.opcode.empty())
      return InInstruction(instruction, cursor_.Expected("an opcode"));
    if (!IsHloOpcode(instruction.opcode))
      return absl::InvalidArgumentError(
          absl::StrCat(Where(instruction), ": want an operation of HLO"));
    RETURN_IF_ERROR(InInstruction(instruction, ReadOperands(instruction)));
    RETURN_IF_ERROR(InInstruction(instruction, ReadAttributes(instruction.attributes)));
    const auto number = static_cast<int32_t>(computation.instructions.size());
    if (!instructions_.emplace(instruction.name, number).second)
      return InInstruction(instruction, absl::InvalidArgumentError("its name is defined twice"));
    if (instruction.opcode == "parameter")
      RETURN_IF_ERROR(InInstruction(instruction, AddParameter(instruction, number, computation)));
    if (is_root) {
      if (computation.root >= 0)
        return InInstruction(instruction,
                             absl::InvalidArgumentError("a second ROOT in its computation"));
      computation.root = number;
    }
    computation.instructions.push_back(std::move(instruction));
    return absl::OkStatus();
  }

  absl::Status ReadOperands(HloInstruction& instruction) {
    RETURN_IF_ERROR(cursor_.Expect("("));
    if (instruction.opcode == "constant" || instruction.opcode == "parameter") {
      ASSIGN_OR_RETURN(instruction.argument, cursor_.TakeUntil(")", false));
      return cursor_.Expect(")");
    }
    while (!cursor_.Accept(")")) {
      if (!instruction.operands.empty()) RETURN_IF_ERROR(cursor_.Expect(","));
      cursor_.SkipBlanks();
      absl::string_view name;
      if (cursor_.Peek() != '(') name = cursor_.TakeName();
      if (name.empty() || (cursor_.Peek() != ',' && cursor_.Peek() != ')')) {
        // It was a shape, or its type: a name follows.
        ASSIGN_OR_RETURN(name, NameAfterShape(name));
      }
      const auto at = instructions_.find(name);
      if (at == instructions_.end())
        return absl::InvalidArgumentError(
            absl::StrCat("want operands that are defined before it, have %", name));
      instruction.operands.push_back(at->second);
    }
    return absl::OkStatus();
  }

  /// The operand's name where its shape stands before it; `type` if that has been read.
  absl::StatusOr<absl::string_view> NameAfterShape(absl::string_view type) {
    int arrays = 0;
    if (type.empty()) {
      RETURN_IF_ERROR(TakeShape(cursor_, 0, arrays).status());
    } else {
      const std::optional<HloType> known = ParseHloType(type);
      if (!known.has_value()) return cursor_.Expected(absl::StrCat("',' or ')' after ", type));
      if (cursor_.Peek() == '[') RETURN_IF_ERROR(TakeArray(cursor_, *known).status());
    }
    const absl::string_view name = cursor_.TakeName();
    if (name.empty()) return cursor_.Expected("an operand");
    return name;
  }

  absl::Status AddParameter(const HloInstruction& instruction, int32_t number,
                            HloComputation& computation) {
    int64_t index = 0;
    // As many as instructions could be: numbers with gaps are refused when all are read.
    if (!absl::SimpleAtoi(instruction.argument, &index) || index < 0 || index >= kMostHloArrays)
      return absl::InvalidArgumentError(
          absl::StrCat("want the parameter's number, have '", instruction.argument, "'"));
    std::vector<int32_t>& parameters = computation.parameters;
    if (parameters.size() <= static_cast<size_t>(index))
      parameters.resize(static_cast<size_t>(index) + 1, -1);
    if (parameters[static_cast<size_t>(index)] >= 0)
      return absl::InvalidArgumentError(absl::StrCat("parameter ", index, " is defined twice"));
    parameters[static_cast<size_t>(index)] = number;
    return absl::OkStatus();
  }

  absl::Status CheckParameters(const HloComputation& computation, int64_t line) {
    for (size_t i = 0; i < computation.parameters.size(); ++i) {
      if (computation.parameters[i] < 0)
        return absl::InvalidArgumentError(absl::StrCat("line ", line, ": computation ",
                                                       computation.name, " has no parameter ", i,
                                                       ", but a later one"));
    }
    return absl::OkStatus();
  }

  /// The error with the line and what is known of the instruction.
  absl::Status InInstruction(const HloInstruction& instruction, const absl::Status& status) {
    if (status.ok()) return status;
    absl::string_view message = status.message();
    std::string line = absl::StrCat("line ", instruction.line, ": ");
    if (absl::StartsWith(message, "line ")) {
      const size_t colon = message.find(": ");
      line = std::string(message.substr(0, colon + 2));
      message = message.substr(colon + 2);
    }
    return absl::InvalidArgumentError(absl::StrCat(line, "%", instruction.name,
                                                   instruction.opcode.empty() ? "" : " = ",
                                                   instruction.opcode, ": ", message));
  }

  HloModule& module_;
  HloCursor cursor_;
  absl::flat_hash_map<absl::string_view, int32_t> instructions_;  // of the computation, by name
};

}  // namespace

absl::StatusOr<HloModule> ParseHlo(std::string text) {
  if (text.size() > kMostHloText)
    return absl::InvalidArgumentError(
        absl::StrCat("want HLO text of at most ", kMostHloText, " bytes, have ", text.size()));
  HloModule module;
  module.text = std::make_shared<const std::string>(std::move(text));
  RETURN_IF_ERROR(Parser(module).Read());
  return module;
}

absl::StatusOr<HloShape> ParseHloShape(absl::string_view& text) {
  HloCursor cursor(text);
  int arrays = 0;
  ASSIGN_OR_RETURN(HloShape shape, TakeShape(cursor, 0, arrays));
  text = cursor.rest();
  return shape;
}

}  // namespace coconet
