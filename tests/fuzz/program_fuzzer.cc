// libFuzzer's entry: the input is a program's text. One that parses must print and parse back; with
// small sizes its schedules derive, replay, and lower.

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/ir/infer.h"
#include "coconet/ir/op_table.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "tests/fuzz/fuzz.h"

namespace coconet {
namespace {

/// Larger programs are parsed and printed only: the others are as many as fuzzing has time for.
constexpr int kMostNodes = 40;
constexpr int kMostSchedules = 12;
constexpr int kLowered = 3;  // of them

void CheckText(const Graph& program) {
  const std::string text = Print(program);
  const absl::StatusOr<Graph> again = Parse(text);
  Expect(again.ok(), absl::StrCat("what is printed is refused: ", again.status().ToString()));
  Expect(*again == program, "what is printed is another program");
  const Graph canonical = Canonicalize(program).graph;
  Expect(InferTypes(canonical).ok(), "the canonical form has no types");
  Expect(Print(Canonicalize(canonical).graph) == Print(canonical), "canonical twice is another");
}

Sizes SizesOf(const Graph& program, uint64_t hash) {
  Sizes sizes;
  const auto draw = [&](const std::string& symbol, bool is_list) {
    hash = hash * 6364136223846793005u + 1442695040888963407u;
    const auto size = static_cast<int64_t>(hash >> 58);
    if (is_list)
      sizes.insert({symbol, std::vector<int64_t>{size, 3}});
    else
      sizes.insert({symbol, size});
  };
  Graph copy = program;
  for (Node& node : copy.nodes) {
    if (const Declared declared = DeclaredIn(node.op);
        declared.type != nullptr && !declared.type->layout.by.empty())
      draw(declared.type->layout.by, /*is_list=*/hash % 2 == 0);
    const Shape* shape = DeclaredShape(node.op);
    if (shape == nullptr) continue;
    for (const Dim& dim : *shape) {
      for (const std::string& symbol : SymbolsOf(dim)) draw(symbol, /*is_list=*/hash % 8 == 0);
    }
  }
  return sizes;
}

void CheckSchedules(const Graph& program, uint64_t hash) {
  const FuzzedWorld& world = WorldAt(hash >> 8);
  if (!CheckRuns(program, world.target.ranks).ok()) return;
  const bool by_node = world.target.nodes > 1 && world.target.ranks > world.target.nodes;
  const absl::StatusOr<std::vector<Schedule>> schedules =
      Derive(program, {.max_schedules = kMostSchedules, .by_node = by_node});
  ExpectNoneOfOurs(schedules.status());
  if (!schedules.ok()) return;
  Expect(!schedules->empty(), "no schedule");
  for (size_t i = 0; i < schedules->size(); ++i) {
    const Schedule& s = (*schedules)[i];
    Expect(!Describe(s).empty(), "a schedule without words");
    const absl::StatusOr<std::vector<Transformation>> trace = ParseTrace(TraceText(s.trace()));
    Expect(trace.ok() && *trace == s.trace(), "a trace that does not parse back");
    const absl::StatusOr<Schedule> replayed = Replay(program, *trace);
    Expect(replayed.ok() && Print(*replayed) == Print(s), "a trace that does not replay");
    if (i >= kLowered && i + 1 != schedules->size()) continue;
    const std::vector<Config> configs = Configs(s, world.space);
    if (!configs.empty()) LowerFuzzed(s, configs[hash % configs.size()], world);
  }
}

}  // namespace
}  // namespace coconet

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace coconet;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<Graph> program = Parse(text);
  if (!program.ok()) {
    Expect(absl::IsInvalidArgument(program.status()), program.status().ToString());
    ExpectNoneOfOurs(program.status());
    return 0;
  }
  CheckText(*program);
  const uint64_t hash = HashOf(text);
  const absl::StatusOr<Graph> bound = BindSizes(*program, SizesOf(*program, hash));
  ExpectNoneOfOurs(bound.status());
  if (!bound.ok() || bound->size() > kMostNodes) return 0;
  CheckText(*bound);
  CheckSchedules(*bound, hash);
  return 0;
}
