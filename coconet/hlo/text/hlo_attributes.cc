#include "coconet/hlo/text/hlo_attributes.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// A list of devices has at most so many of them.
constexpr int64_t kMostDevices = 1 << 20;

/// Reads an attribute's text from its front.
class Reader {
 public:
  explicit Reader(absl::string_view text) : text_(text) {}

  void SkipBlanks() {
    while (true) {
      text_ = absl::StripLeadingAsciiWhitespace(text_);
      if (!absl::StartsWith(text_, "/*")) return;
      const size_t end = text_.find("*/");
      text_.remove_prefix(end == absl::string_view::npos ? text_.size() : end + 2);
    }
  }
  bool Accept(absl::string_view token) {
    SkipBlanks();
    return absl::ConsumePrefix(&text_, token);
  }
  bool AtEnd() {
    SkipBlanks();
    return text_.empty();
  }
  bool Integer(int64_t& value) {
    SkipBlanks();
    size_t end = 0;
    if (end < text_.size() && text_[end] == '-') ++end;
    while (end < text_.size() && absl::ascii_isdigit(static_cast<unsigned char>(text_[end]))) ++end;
    if (!absl::SimpleAtoi(text_.substr(0, end), &value)) return false;
    text_.remove_prefix(end);
    return true;
  }
  /// "open 1, 2 close".
  bool Integers(absl::string_view open, absl::string_view close, std::vector<int64_t>& values) {
    if (!Accept(open)) return false;
    while (!Accept(close)) {
      if (!values.empty() && !Accept(",")) return false;
      if (!Integer(values.emplace_back())) return false;
    }
    return true;
  }
  /// A word up to a blank or one of `ends`.
  absl::string_view Word(absl::string_view ends) {
    SkipBlanks();
    size_t end = 0;
    while (end < text_.size() && !absl::StrContains(ends, text_[end]) &&
           !absl::ascii_isspace(static_cast<unsigned char>(text_[end])))
      ++end;
    const absl::string_view word = text_.substr(0, end);
    text_.remove_prefix(end);
    return word;
  }

 private:
  absl::string_view text_;
};

absl::Status Wrong(const HloInstruction& instruction, absl::string_view name,
                   absl::string_view want) {
  const absl::string_view* text = instruction.Find(name);
  constexpr size_t kShown = 60;
  return absl::InvalidArgumentError(
      absl::StrCat(Where(instruction), ": want ", name, "=", want, ", have ",
                   text == nullptr ? "none" : absl::StrCat("'", text->substr(0, kShown), "'")));
}

/// Fills in groups of `size` devices, which count through a mesh of these extents, the dimensions
/// in the order `order`, the first one slowest. False where the numbers do not fit together.
bool CountThroughMesh(absl::Span<const int64_t> mesh, absl::Span<const int64_t> order, int64_t size,
                      std::vector<std::vector<int64_t>>& groups) {
  std::vector<int64_t> sorted(order.begin(), order.end());
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i)) return false;
  }
  if (order.size() != mesh.size() || mesh.empty()) return false;
  int64_t devices = 1;
  for (int64_t extent : mesh) {
    if (extent < 1 || extent > kMostDevices) return false;
    devices *= extent;
    if (devices > kMostDevices) return false;
  }
  if (size < 1 || devices % size != 0) return false;
  std::vector<int64_t> strides(mesh.size(), 1);  // of the mesh, row major
  for (size_t i = mesh.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * mesh[i];
  std::vector<int64_t> index(mesh.size(), 0);  // in the order of `order`
  groups.assign(static_cast<size_t>(devices / size), {});
  for (int64_t i = 0; i < devices; ++i) {
    int64_t device = 0;
    for (size_t d = 0; d < order.size(); ++d)
      device += index[d] * strides[static_cast<size_t>(order[d])];
    groups[static_cast<size_t>(i / size)].push_back(device);
    for (size_t d = order.size(); d-- > 0;) {
      if (++index[d] < mesh[static_cast<size_t>(order[d])]) break;
      index[d] = 0;
    }
  }
  return true;
}

/// "[2,4]<=[4,2]T(1,0)".
bool ReadIota(Reader& reader, std::vector<std::vector<int64_t>>& groups) {
  std::vector<int64_t> shape, mesh, order;
  if (!reader.Integers("[", "]", shape) || !reader.Accept("<=") || !reader.Integers("[", "]", mesh))
    return false;
  if (reader.Accept("T")) {
    if (!reader.Integers("(", ")", order)) return false;
  } else {
    order.resize(mesh.size());
    std::iota(order.begin(), order.end(), 0);
  }
  if (shape.size() != 2 || !CountThroughMesh(mesh, order, shape[1], groups)) return false;
  return shape[0] == static_cast<int64_t>(groups.size());
}

/// "'x'".
bool ReadAxis(Reader& reader, absl::string_view& name) {
  if (!reader.Accept("'")) return false;
  name = reader.Word("'");
  return reader.Accept("'");
}

/// "mesh['x'=2,'y'=4] {'y'}": groups along axes of a mesh.
bool ReadAxes(Reader& reader, std::vector<std::vector<int64_t>>& groups) {
  std::vector<absl::string_view> axes;
  std::vector<int64_t> mesh, order, last;
  int64_t size = 1;
  if (!reader.Accept("mesh[")) return false;
  while (mesh.empty() || reader.Accept(",")) {
    if (!ReadAxis(reader, axes.emplace_back()) || !reader.Accept("=") ||
        !reader.Integer(mesh.emplace_back()))
      return false;
  }
  if (!reader.Accept("]") || !reader.Accept("{")) return false;
  while (last.empty() || reader.Accept(",")) {
    absl::string_view axis;
    if (!ReadAxis(reader, axis)) return false;
    const auto at = std::find(axes.begin(), axes.end(), axis);
    if (at == axes.end()) return false;
    last.push_back(at - axes.begin());
    const int64_t extent = mesh[static_cast<size_t>(last.back())];
    if (extent < 1 || extent > kMostDevices / size) return false;
    size *= extent;
  }
  if (!reader.Accept("}")) return false;
  for (int64_t d = 0; d < static_cast<int64_t>(mesh.size()); ++d) {
    if (std::find(last.begin(), last.end(), d) == last.end()) order.push_back(d);
  }
  order.insert(order.end(), last.begin(), last.end());
  return CountThroughMesh(mesh, order, size, groups);
}

/// "{{0,1},{2,3}}".
bool ReadGroups(Reader& reader, std::vector<std::vector<int64_t>>& groups) {
  if (!reader.Accept("{")) return false;
  while (!reader.Accept("}")) {
    if (!groups.empty() && !reader.Accept(",")) return false;
    if (!reader.Integers("{", "}", groups.emplace_back())) return false;
  }
  return true;
}

bool AllDifferent(const std::vector<std::vector<int64_t>>& groups) {
  std::vector<int64_t> all;
  for (const std::vector<int64_t>& group : groups) {
    if (group.empty()) return false;
    all.insert(all.end(), group.begin(), group.end());
  }
  std::sort(all.begin(), all.end());
  return (all.empty() || (all.front() >= 0 && all.back() < kMostDevices)) &&
         std::adjacent_find(all.begin(), all.end()) == all.end();
}

}  // namespace

absl::StatusOr<absl::string_view> AttributeText(const HloInstruction& instruction,
                                                absl::string_view name) {
  const absl::string_view* text = instruction.Find(name);
  if (text == nullptr) return Wrong(instruction, name, "a value");
  return *text;
}

absl::StatusOr<std::vector<int64_t>> IntegersOf(const HloInstruction& instruction,
                                                absl::string_view name) {
  std::vector<int64_t> values;
  if (const absl::string_view* text = instruction.Find(name)) {
    Reader reader(*text);
    if (!reader.Integers("{", "}", values) || !reader.AtEnd())
      return Wrong(instruction, name, "{integers}");
  }
  return values;
}

absl::StatusOr<int64_t> IntegerOf(const HloInstruction& instruction, absl::string_view name,
                                  const int64_t* missing) {
  const absl::string_view* text = instruction.Find(name);
  if (text == nullptr && missing != nullptr) return *missing;
  int64_t value = 0;
  if (text == nullptr || !absl::SimpleAtoi(*text, &value))
    return Wrong(instruction, name, "an integer");
  return value;
}

absl::StatusOr<bool> FlagOf(const HloInstruction& instruction, absl::string_view name) {
  const absl::string_view* text = instruction.Find(name);
  if (text == nullptr || *text == "false") return false;
  if (*text == "true") return true;
  return Wrong(instruction, name, "true or false");
}

absl::StatusOr<std::vector<HloRange>> SliceOf(const HloInstruction& instruction) {
  ASSIGN_OR_RETURN(const absl::string_view text, AttributeText(instruction, "slice"));
  Reader reader(text);
  std::vector<HloRange> ranges;
  bool ok = reader.Accept("{");
  while (ok && !reader.Accept("}")) {
    if (!ranges.empty()) ok = reader.Accept(",");
    HloRange& range = ranges.emplace_back();
    ok = ok && reader.Accept("[") && reader.Integer(range.begin) && reader.Accept(":") &&
         reader.Integer(range.end) && (!reader.Accept(":") || reader.Integer(range.step)) &&
         reader.Accept("]");
  }
  if (!ok || !reader.AtEnd()) return Wrong(instruction, "slice", "{[begin:end], ...}");
  return ranges;
}

absl::StatusOr<std::vector<HloPadding>> PaddingOf(const HloInstruction& instruction) {
  ASSIGN_OR_RETURN(const absl::string_view text, AttributeText(instruction, "padding"));
  std::vector<HloPadding> paddings;
  Reader reader(text);
  bool ok = true;
  while (ok && !reader.AtEnd()) {
    if (!paddings.empty()) ok = reader.Accept("x");
    HloPadding& padding = paddings.emplace_back();
    ok = ok && reader.Integer(padding.before) && reader.Accept("_") &&
         reader.Integer(padding.after) && (!reader.Accept("_") || reader.Integer(padding.between));
    ok = ok && padding.between >= 0;
  }
  if (!ok) return Wrong(instruction, "padding", "before_after_between x ...");
  return paddings;
}

absl::StatusOr<std::vector<HloWindowDim>> WindowOf(const HloInstruction& instruction) {
  std::vector<HloWindowDim> window;
  const absl::string_view* text = instruction.Find("window");
  if (text == nullptr) return window;
  Reader reader(*text);
  bool ok = reader.Accept("{");
  while (ok && !reader.Accept("}")) {
    const absl::string_view key = reader.Word("=");
    ok = reader.Accept("=");
    for (size_t d = 0; ok && (d == 0 || reader.Accept("x")); ++d) {
      if (d == window.size()) window.emplace_back();
      HloWindowDim& dim = window[d];
      if (key == "pad") {
        ok = reader.Integer(dim.padding.before) && reader.Accept("_") &&
             reader.Integer(dim.padding.after);
        continue;
      }
      int64_t number = 0;
      ok = reader.Integer(number) && number >= (key == "rhs_reversal" ? 0 : 1);
      if (key == "size")
        dim.size = number;
      else if (key == "stride")
        dim.stride = number;
      else if (key == "lhs_dilate")
        dim.padding.between = number - 1;
      else if (key == "rhs_dilate")
        dim.dilation = number;
      else if (key == "rhs_reversal")
        dim.is_reversed = number != 0;
      else
        ok = false;
    }
  }
  if (!ok || !reader.AtEnd())
    return Wrong(instruction, "window", "{size=3x3 stride=1x1 pad=0_0x0_0 ...}");
  return window;
}

absl::StatusOr<std::vector<std::pair<int64_t, int64_t>>> PairsOf(
    const HloInstruction& instruction) {
  ASSIGN_OR_RETURN(const absl::string_view text, AttributeText(instruction, "source_target_pairs"));
  Reader reader(text);
  std::vector<std::vector<int64_t>> groups;
  std::vector<std::pair<int64_t, int64_t>> pairs;
  bool ok = ReadGroups(reader, groups) && reader.AtEnd();
  for (const std::vector<int64_t>& group : groups) {
    ok = ok && group.size() == 2 && group[0] >= 0 && group[1] >= 0 && group[0] < kMostDevices &&
         group[1] < kMostDevices;
    if (ok) pairs.emplace_back(group[0], group[1]);
  }
  if (!ok) return Wrong(instruction, "source_target_pairs", "{{source,target}, ...}");
  return pairs;
}

absl::StatusOr<std::vector<std::vector<int64_t>>> GroupsOf(const HloInstruction& instruction) {
  const absl::string_view* text = instruction.Find("replica_groups");
  std::vector<std::vector<int64_t>> groups;
  if (text == nullptr) return groups;
  Reader reader(*text);
  const bool ok = absl::StartsWith(*text, "[")      ? ReadIota(reader, groups)
                  : absl::StartsWith(*text, "mesh") ? ReadAxes(reader, groups)
                                                    : ReadGroups(reader, groups);
  if (!ok || !reader.AtEnd() || !AllDifferent(groups)) {
    return Wrong(instruction, "replica_groups",
                 "groups of different devices, {{0,1},{2,3}}, [2,2]<=[4] or mesh['x'=2,'y'=2] "
                 "{'y'}");
  }
  return groups;
}

absl::StatusOr<std::vector<absl::string_view>> ComputationsOf(const HloInstruction& instruction,
                                                              absl::string_view name) {
  ASSIGN_OR_RETURN(absl::string_view text, AttributeText(instruction, name));
  std::vector<absl::string_view> names;
  if (absl::ConsumePrefix(&text, "{")) absl::ConsumeSuffix(&text, "}");
  for (absl::string_view each : absl::StrSplit(text, ','))
    names.push_back(absl::StripPrefix(absl::StripAsciiWhitespace(each), "%"));
  return names;
}

absl::StatusOr<std::vector<HloAlias>> AliasesOf(const HloModule& module) {
  const absl::string_view* text = module.Find("input_output_alias");
  std::vector<HloAlias> aliases;
  if (text == nullptr) return aliases;
  Reader reader(*text);
  bool ok = reader.Accept("{");
  while (ok && !reader.Accept("}")) {
    if (!aliases.empty()) ok = reader.Accept(",");
    HloAlias& alias = aliases.emplace_back();
    ok = ok && reader.Integers("{", "}", alias.output) && reader.Accept(":") &&
         reader.Accept("(") && reader.Integer(alias.parameter) && reader.Accept(",") &&
         reader.Integers("{", "}", alias.of_parameter);
    if (ok && reader.Accept(",")) static_cast<void>(reader.Word(")"));
    ok = ok && reader.Accept(")");
  }
  if (!ok || !reader.AtEnd())
    return absl::InvalidArgumentError(
        "HloModule: want input_output_alias={ {output}: (parameter, {index}, kind), ... }");
  return aliases;
}

absl::StatusOr<std::vector<int64_t>> DonorsOf(const HloModule& module) {
  const absl::string_view* text = module.Find("buffer_donor");
  std::vector<int64_t> donors;
  if (text == nullptr) return donors;
  Reader reader(*text);
  bool ok = reader.Accept("{"), is_first = true;
  while (ok && !reader.Accept("}")) {
    int64_t parameter = 0;
    std::vector<int64_t> part;
    ok = (is_first || reader.Accept(",")) && reader.Accept("(") && reader.Integer(parameter) &&
         reader.Accept(",") && reader.Integers("{", "}", part) && reader.Accept(")");
    is_first = false;
    if (ok && part.empty()) donors.push_back(parameter);
  }
  if (!ok || !reader.AtEnd())
    return absl::InvalidArgumentError("HloModule: want buffer_donor={ (parameter, {index}), ... }");
  return donors;
}

bool IsElided(const HloInstruction& constant) {
  return constant.opcode == "constant" && absl::StrContains(constant.argument, "...");
}

absl::StatusOr<std::vector<absl::string_view>> LiteralOf(const HloInstruction& constant) {
  std::vector<absl::string_view> numbers;
  Reader reader(constant.argument);
  while (!reader.AtEnd()) {
    if (reader.Accept("{") || reader.Accept("}") || reader.Accept(",")) continue;
    numbers.push_back(reader.Word("{},"));
    if (numbers.back() == "...")
      return absl::InvalidArgumentError(absl::StrCat(
          Where(constant), ": its numbers were left out when the module was printed; print it by ",
          "as_hlo_text(print_large_constants=True), to_string with HloPrintOptions of ",
          "print_large_constants, or a dump with XLA_FLAGS=--xla_dump_large_constants=true"));
    if (numbers.back().empty())
      return absl::InvalidArgumentError(absl::StrCat(Where(constant), ": want a literal"));
  }
  if (static_cast<int64_t>(numbers.size()) != constant.shape.elements_count())
    return absl::InvalidArgumentError(absl::StrCat(Where(constant), ": want a literal of ",
                                                   constant.shape.elements_count(),
                                                   " numbers, have ", numbers.size()));
  return numbers;
}

}  // namespace coconet
