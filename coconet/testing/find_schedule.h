#pragma once

#include "absl/strings/string_view.h"
#include "coconet/ir/graph.h"
#include "coconet/schedule/schedule.h"

namespace coconet {

/// The first derived schedule of a program that Describe puts in these words; a test failure, which
/// names the others, and an empty schedule if there is none.
Schedule FindSchedule(const Graph& program, absl::string_view words);

}  // namespace coconet
