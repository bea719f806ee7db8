#include "coconet/testing/find_schedule.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "gtest/gtest.h"

namespace coconet {

Schedule FindSchedule(const Graph& program, absl::string_view words) {
  std::string known;
  const std::vector<Schedule> schedules = Derive(program).value();
  for (const Schedule& s : schedules) {
    if (Describe(s) == words) return s;
    absl::StrAppend(&known, "\n  ", Describe(s));
  }
  ADD_FAILURE() << "no schedule " << words << " among" << known;
  return {};
}

}  // namespace coconet
