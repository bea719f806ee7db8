// libFuzzer's entry: the first byte chooses a program, the rest is a file of lines for gpu_probe. A
// line that is read must be read again from its fields; a variant that it names must be legal.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autotune/search/choice.h"
#include "bench/probe/probe_lines.h"
#include "coconet/schedule/describe.h"
#include "tests/fuzz/fuzz.h"

namespace coconet {
namespace {

constexpr size_t kMostChosen = 8;  // lines of an input; each may take a derivation's time

struct FuzzedChooser {
  const FuzzedWorld& world;
  Chooser chooser;
};

/// One per program and world, which keeps the derived schedules.
FuzzedChooser& ChooserOf(size_t program, uint64_t hash) {
  static auto& choosers = *new std::map<std::pair<size_t, const FuzzedWorld*>, FuzzedChooser>;
  const FuzzedWorld& world = WorldAt(hash);
  const auto at = choosers.find({program, &world});
  if (at != choosers.end()) return at->second;
  FuzzedChooser made{world, Chooser(FuzzedPrograms()[program], world.space)};
  return choosers.emplace(std::pair(program, &world), std::move(made)).first->second;
}

void CheckParsesBack(const bench::ProbeLine& line) {
  const std::string text =
      absl::StrCat(line.program, " | ", line.sizes, " | ", line.schedule, " | ", line.config);
  const absl::StatusOr<std::vector<bench::ProbeLine>> again = bench::ParseProbeLines(text);
  Expect(again.ok() && again->size() == 1, "a line that does not parse back");
  const bench::ProbeLine& back = again->front();
  Expect(back.error.ok() && back.program == line.program && back.sizes == line.sizes &&
             back.schedule == line.schedule && back.config == line.config,
         "a line that parses back as another one");
}

}  // namespace
}  // namespace coconet

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace coconet;
  if (size == 0) return 0;
  const absl::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const absl::StatusOr<std::vector<bench::ProbeLine>> lines = bench::ParseProbeLines(text);
  if (!lines.ok()) {
    Expect(absl::IsInvalidArgument(lines.status()), lines.status().ToString());
    return 0;
  }
  FuzzedChooser& of = ChooserOf(data[0] % FuzzedPrograms().size(), HashOf(text) >> 16);
  size_t chosen = 0;
  for (const bench::ProbeLine& line : *lines) {
    if (!line.error.ok()) {
      Expect(absl::IsInvalidArgument(line.error), line.error.ToString());
      continue;
    }
    CheckParsesBack(line);
    ExpectNoneOfOurs(bench::ParseWords(line.sizes).status());
    if (++chosen > kMostChosen) continue;
    const absl::StatusOr<Variant> variant = of.chooser.One(line.choice());
    ExpectNoneOfOurs(variant.status());
    if (!variant.ok() || variant->apart != nullptr) continue;
    Expect(Validate(variant->config, variant->schedule, of.world.space).ok(), "an illegal config");
    Expect(!Describe(variant->schedule).empty(), "a schedule without words");
  }
  return 0;
}
