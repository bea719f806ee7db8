#pragma once

#include <vector>

#include "coconet/schedule/schedule.h"
#include "jit/config/units.h"

namespace coconet {

/// The order that launches run in: the schedule's own where it has one, else by ConcurrentRanks, or
/// by first node where dependencies leave a choice. Shorter than their list where they wait for
/// each other in a cycle. Launches of an overlap, and of a bucket that `library` does, follow one
/// another.
std::vector<int> OrderOf(const Schedule& s, const Launches& launches, LibraryDoes library,
                         bool concurrent);

}  // namespace coconet
