#include "runtime/testing/temporary_checks.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/node/lanes.h"

namespace coconet {
namespace {

/// By step: the steps that are surely done before it begins.
std::vector<std::vector<bool>> DoneBefore(const Plan& plan) {
  const size_t steps = plan.steps.size();
  std::vector<std::vector<bool>> done(steps, std::vector<bool>(steps));
  int last[kLanes] = {-1, -1};
  for (size_t step = 0; step < steps; ++step) {
    std::vector<int> before = AfterOf(plan.steps[step]);
    int& of_lane = last[LaneOf(plan.steps[step])];
    if (of_lane >= 0) before.push_back(of_lane);
    for (int earlier : before) {
      done[step][earlier] = true;
      for (size_t i = 0; i < steps; ++i) done[step][i] = done[step][i] || done[earlier][i];
    }
    of_lane = static_cast<int>(step);
  }
  // What a library does together is not done one after the other.
  for (const std::vector<LaneOrder::Entry>& lane : OrderOf(plan).of) {
    for (size_t first = 0; first < lane.size(); ++first) {
      const size_t together = std::max<size_t>(StepsTogether(plan, lane, first), 1);
      for (size_t i = first; i < first + together; ++i) {
        for (size_t k = first; k < i; ++k) done[lane[i].step][lane[k].step] = false;
      }
      first += together - 1;
    }
  }
  return done;
}

}  // namespace

std::string WhyOverlapping(const Plan& plan, const TemporaryPlaces& places, int stage_rank) {
  const std::vector<std::vector<bool>> done = DoneBefore(plan);
  std::vector<std::set<int>> uses(plan.buffers.size());  // steps
  for (int step = 0; step < std::ssize(plan.steps); ++step) {
    Step used = plan.steps[step];
    ForBuffers(used, [&](int& buffer) { uses[buffer].insert(step); });
  }
  const auto all_before = [&](int a, int b) {
    for (int first : uses[a]) {
      for (int second : uses[b]) {
        if (!done[second][first]) return false;
      }
    }
    return true;
  };
  const auto end = [&](int b) {
    return places.offsets[b] +
           plan.buffers[b].On(stage_rank) * static_cast<int64_t>(SizeOf(plan.buffers[b].dtype));
  };
  for (int a = 0; a < std::ssize(plan.buffers); ++a) {
    for (int b = 0; b < a; ++b) {
      if (places.offsets[a] < 0 || places.offsets[b] < 0 ||
          plan.buffers[a].symmetric != plan.buffers[b].symmetric ||
          std::max(places.offsets[a], places.offsets[b]) >= std::min(end(a), end(b)))
        continue;
      if (!all_before(a, b) && !all_before(b, a)) {
        return absl::StrCat(plan.buffers[b].name, " at ", places.offsets[b], " and ",
                            plan.buffers[a].name, " at ", places.offsets[a],
                            " share memory and live at the same time\n", Print(plan));
      }
    }
  }
  return "";
}

}  // namespace coconet
