// libFuzzer's entry: the first byte chooses a program and a world, the rest is a schedule's trace.
// One that parses must print and parse back; one that replays lowers.

#include <cstddef>
#include <string>
#include <vector>

#include "coconet/language/text.h"
#include "coconet/schedule/describe.h"
#include "tests/fuzz/fuzz.h"

/// Lowering takes much longer than replaying.
constexpr uint64_t kOneInLowered = 16;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace coconet;
  if (size == 0) return 0;
  const absl::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const absl::StatusOr<std::vector<Transformation>> trace = ParseTrace(text);
  if (!trace.ok()) {
    Expect(absl::IsInvalidArgument(trace.status()), trace.status().ToString());
    return 0;
  }
  const absl::StatusOr<std::vector<Transformation>> again = ParseTrace(TraceText(*trace));
  Expect(again.ok() && *again == *trace, "a trace that does not parse back");
  const Graph& program = FuzzedPrograms()[data[0] % FuzzedPrograms().size()];
  const absl::StatusOr<Schedule> schedule = Replay(program, *trace);
  ExpectNoneOfOurs(schedule.status());
  if (!schedule.ok()) return 0;
  Expect(schedule->trace() == *trace, "another trace than was replayed");
  Expect(!Print(*schedule).empty() && !Describe(*schedule).empty(), "a schedule without words");
  const uint64_t hash = HashOf(text);
  if (hash % kOneInLowered != 0) return 0;
  const FuzzedWorld& world = WorldAt(hash >> 16);
  const std::vector<Config> configs = Configs(*schedule, world.space);
  if (!configs.empty()) LowerFuzzed(*schedule, configs[(hash >> 24) % configs.size()], world);
  return 0;
}
