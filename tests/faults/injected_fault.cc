#include "tests/faults/injected_fault.h"

namespace coconet {

const std::vector<absl::string_view>& FaultKinds() {
  static const auto& kinds = *new std::vector<absl::string_view>{
      "kill_one",  "kill_all",   "stop",  "starve",     "full_disk",      "missing", "damaged",
      "read_only", "other_jobs", "clock", "two_builds", "two_processors", "options",
  };
  return kinds;
}

std::unique_ptr<InjectedFault> DrawFault(absl::string_view kind, const Scene& scene,
                                         std::mt19937_64& random) {
  // Jobs take some seconds from their begin to their last step, some of them less than one.
  const double draw = static_cast<double>(random() % 1000) / 1000, at_s = 3 * draw * draw;
  for (auto* draw : {DrawProcessFault, DrawFileFault, DrawSettingFault}) {
    if (std::unique_ptr<InjectedFault> fault = draw(kind, scene, random)) {
      fault->at_s = at_s;
      return fault;
    }
  }
  return nullptr;
}

}  // namespace coconet
