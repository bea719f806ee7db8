#include "bench/machine_code/facts.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <regex>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/dtype.h"

namespace coconet::bench {
namespace {

constexpr absl::string_view kKernelFile = "kernel.cc";

/// The number N of "constexpr int NAME = N" in `text`; 0 if there is none.
int ConstantIn(absl::string_view text, absl::string_view name) {
  const std::string begin = absl::StrCat("constexpr int ", name, " = ");
  const size_t at = text.find(begin);
  int number = 0;
  if (at != absl::string_view::npos)
    std::from_chars(text.data() + at + begin.size(), text.data() + text.size(), number);
  return number;
}

bool IsPackLine(absl::string_view line) {
  if (absl::StrContains(line, "InFlight<V")) return true;  // finishes what Lanes<V> begins
  const size_t at = line.find("Lanes<");
  return at != absl::string_view::npos && at + 6 < line.size() &&
         absl::ascii_isupper(line[at + 6]) && absl::StrContains(line, "{}");
}
bool IsSingleLine(absl::string_view line) { return absl::StrContains(line, "Lanes<1>{}"); }

LoopKind KindOf(const Instruction& i, const SourceTexts& texts) {
  LoopKind kind = LoopKind::kOther;
  for (const SourceLine& line : i.source) {
    if (IsPackLine(texts.At(line))) return LoopKind::kPacks;
    if (IsSingleLine(texts.At(line))) kind = LoopKind::kSingle;
  }
  return kind;
}

/// The kernel's line that the instruction comes from: `whole`, that which the loop over packs is
/// in, else the innermost.
SourceLine KernelLine(const Instruction& i, const SourceTexts& texts, bool whole) {
  bool within = !whole || KindOf(i, texts) == LoopKind::kOther;
  for (const SourceLine& line : i.source) {
    const absl::string_view text = texts.At(line);
    within = within || IsPackLine(text) || IsSingleLine(text);
    if (within && line.file == kKernelFile) return line;
  }
  return {};
}

/// The functions that the instruction comes through, up to the kernel.
std::string PlaceOf(const Instruction& i, const SourceTexts& texts) {
  std::string place;
  for (const SourceLine& line : i.source) {
    if (line.file == kKernelFile) break;
    absl::StrAppend(&place, place.empty() ? "" : " < ", texts.FunctionAt(line));
  }
  return absl::StrCat(place, ": ", texts.At(KernelLine(i, texts, /*whole=*/false)));
}

/// A pointer that a line of the kernel's text accesses: bytes of an element, and how many ranks'
/// memories. 0 bytes: not told.
struct Pointed {
  int bytes = 0, ranks = 1;
};
int BytesOf(absl::string_view type) {
  const std::optional<DType> dtype = type == "boolean" ? DType::kBool : ParseDType(type);
  return dtype.has_value() ? static_cast<int>(SizeOf(*dtype)) : 0;
}
/// The type that "own2" or "b1" points to, from its declaration, "bf16* b1[kRanks];", in the
/// kernel's text.
Pointed PointedBy(absl::string_view name, absl::string_view kernel) {
  const std::regex declared(absl::StrCat(R"((\w+)\* (?:const )?)", name, R"((\[kRanks\])?(?!\w))"));
  for (std::cregex_iterator at(kernel.begin(), kernel.end(), declared), end; at != end; ++at) {
    const int bytes = BytesOf(at->str(1));
    if (bytes > 0) return {bytes, at->length(2) > 0 ? ConstantIn(kernel, "kRanks") : 1};
  }
  return {};
}
/// The only pointer that a line names; 0 bytes for none or several.
Pointed OnlyPointer(absl::string_view line, absl::string_view kernel) {
  static const auto& named = *new std::regex(R"((own\d+)|p\.(b\d+))");
  std::cregex_iterator at(line.begin(), line.end(), named), end;
  if (std::distance(at, end) != 1) return {};
  return PointedBy(at->str(1) + at->str(2), kernel);
}

/// The bytes that the lines store for an element; 0 if one of them does not tell.
int StoredPerElement(const std::vector<std::string>& lines, absl::string_view kernel) {
  int stored = 0;
  for (const std::string& line : lines) {
    if (!absl::StrContains(line, "Store")) continue;
    const Pointed pointed = OnlyPointer(line, kernel);
    if (pointed.bytes == 0) return 0;
    stored += pointed.bytes * std::max(pointed.ranks, 1);
  }
  return stored;
}

/// How many elements a turn handles: kV, or a multiple if the compiler has unrolled the loop. Told
/// by the bytes that the main path stores, or by the kernel's constants if its text does not tell
/// how many bytes it stores for an element.
int ElementsOf(const MachineFunction& function, const std::vector<int>& path,
               const SourceTexts& texts, absl::string_view kernel) {
  const int pack = ConstantIn(kernel, "kV");
  int stored = 0, of_element = 0;
  for (int index : path) {
    const Instruction& i = function.instructions[index];
    const Access access = AccessOf(i);
    if (access.space != Space::kGlobal || !access.stores) continue;
    stored += access.bytes;
    if (of_element == 0)
      of_element = StoredPerElement(texts.BodyOf(KernelLine(i, texts, /*whole=*/true)), kernel);
  }
  if (of_element == 0 || pack == 0) return pack * std::max(ConstantIn(kernel, "kU"), 1);
  const int packs = (stored + of_element * pack / 2) / (of_element * pack);
  return pack * std::max(packs, 1);
}

/// `kind` of the loop is the least of its accesses: one with packs goes over packs.
void Count(const Instruction& i, const SourceTexts& texts, LoopFacts& facts) {
  ++facts.instructions;
  facts.calls += i.name() == "CALL";
  facts.branches += i.target >= 0 && !i.guard.empty();
  facts.special += i.name() == "MUFU" || i.name() == "FCHK";
  facts.drains += IsDrain(i);
  facts.publishes += IsPublish(i);
  const Access access = AccessOf(i);
  facts.local += access.space == Space::kLocal;
  if (access.space != Space::kGlobal) return;
  ++facts.accesses[i.opcode];
  const LoopKind kind = KindOf(i, texts);
  if (facts.source.empty() || kind < facts.kind) {
    facts.kind = std::min(facts.kind, kind);
    facts.source = std::string(texts.At(KernelLine(i, texts, /*whole=*/true)));
  }
  if (IsNarrow(access)) ++facts.narrow[{i.opcode, PlaceOf(i, texts)}];
}

}  // namespace

absl::string_view Name(LoopKind kind) {
  constexpr absl::string_view kNames[] = {"packs", "single", "other"};
  return kNames[static_cast<size_t>(kind)];
}

std::vector<LoopFacts> FactsOf(const MachineFunction& function, const SourceTexts& texts,
                               absl::string_view kernel) {
  const FlowGraph flow = FlowOf(function);
  std::vector<LoopFacts> all;
  for (size_t k = 0; k < flow.loops.size(); ++k) {
    const int loop = static_cast<int>(k);
    LoopFacts facts;
    facts.has_inner = flow.loops[k].has_inner;
    facts.address = function.instructions[flow.blocks[flow.loops[k].head].begin].address;
    for (int block : flow.loops[k].blocks) {
      for (int at = flow.blocks[block].begin; at < flow.blocks[block].end; ++at) {
        const Instruction& i = function.instructions[at];
        const bool copies = i.name() == "UBLKCP";
        facts.copies_in_bulk = facts.copies_in_bulk || copies;
        facts.loads_in_bulk = facts.loads_in_bulk || (copies && AccessOf(i).loads);
        if (flow.blocks[block].loop == loop) Count(i, texts, facts);
      }
    }
    if (facts.accesses.empty() && facts.local == 0 && facts.drains == 0) continue;
    const std::vector<int> path = MainPath(function, flow, loop);
    facts.main = static_cast<int>(path.size());
    facts.in_flight = LoadedBeforeUse(function, path);
    if (facts.kind == LoopKind::kPacks) facts.elements = ElementsOf(function, path, texts, kernel);
    all.push_back(std::move(facts));
  }
  absl::c_stable_sort(all,
                      [](const LoopFacts& a, const LoopFacts& b) { return a.address < b.address; });
  return all;
}

}  // namespace coconet::bench
