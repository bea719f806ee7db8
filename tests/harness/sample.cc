#include "tests/harness/sample.h"

#include <functional>
#include <string>

#include "absl/flags/flag.h"
#include "tests/harness/test_data.h"

ABSL_FLAG(uint64_t, one_in, 0,
          "of how many schedules, kernels or faults, by the test, one is tried; 0: as many as take "
          "minutes; 1: all");

namespace coconet {

uint64_t OneInFlag(uint64_t usual) {
  const uint64_t given = absl::GetFlag(FLAGS_one_in);
  return given > 0 ? given : usual;
}

bool TakesName(uint64_t one_in, uint64_t seed, absl::string_view name) {
  return Mix(seed, std::hash<std::string>()(std::string(name))) % one_in == 0;
}

}  // namespace coconet
