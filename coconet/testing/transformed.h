#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "coconet/schedule/schedule.h"

namespace coconet {

/// The canonical schedule of a program in text form ("coconet 1" is added) after the
/// transformations of a trace; a test failure and an empty schedule when any step fails.
Schedule ScheduleOf(absl::string_view program, absl::string_view trace = "");

/// Its text, without the "coconet 1" line, or the message of the step that failed.
std::string Transformed(absl::string_view program, absl::string_view trace);

}  // namespace coconet
