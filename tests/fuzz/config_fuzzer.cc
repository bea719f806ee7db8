// libFuzzer's entry: the first byte chooses a program, whether its kernels are fused, and a world;
// the rest is a config's text. One that parses must print and parse back; one that is legal lowers.

#include <cstddef>
#include <string>
#include <vector>

#include "coconet/schedule/derivation/derive.h"
#include "tests/fuzz/fuzz.h"

namespace coconet {
namespace {

/// Lowering takes much longer than the rest.
constexpr uint64_t kOneInLowered = 16;

/// The first, a middle and the last schedule of each program.
const std::vector<Schedule>& Schedules() {
  static const auto& schedules = *new std::vector<Schedule>([] {
    std::vector<Schedule> some;
    for (const Graph& program : FuzzedPrograms()) {
      const std::vector<Schedule> all = Derive(program).value();
      for (size_t at : {size_t{0}, all.size() / 2, all.size() - 1}) some.push_back(all[at]);
    }
    return some;
  }());
  return schedules;
}

}  // namespace
}  // namespace coconet

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace coconet;
  if (size == 0) return 0;
  const absl::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const absl::StatusOr<Config> config = ParseConfig(text);
  if (!config.ok()) {
    Expect(absl::IsInvalidArgument(config.status()), config.status().ToString());
    return 0;
  }
  const absl::StatusOr<Config> again = ParseConfig(Text(*config));
  Expect(again.ok() && *again == *config, "a config that does not parse back");
  const Schedule& schedule = Schedules()[data[0] % Schedules().size()];
  const uint64_t hash = HashOf(text);
  const FuzzedWorld& world = WorldAt(hash >> 16);
  ExpectNoneOfOurs(Validate(*config, schedule, world.space));
  if (hash % kOneInLowered == 0) LowerFuzzed(schedule, *config, world);
  return 0;
}
