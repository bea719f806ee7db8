#pragma once

#include <vector>

#include "coconet/schedule/schedule.h"
#include "jit/launches/cut.h"

namespace coconet {

/// The order in which launches run: the schedule's own if it has one, else by ConcurrentRanks, or
/// by first node as far as dependencies leave a choice. Shorter than their list if they wait for
/// each other in a cycle. Launches of an overlap, and of a bucket that `library` does, follow one
/// another.
std::vector<int> OrderOf(const Schedule& s, const Launches& launches, LibraryDoes library,
                         bool concurrent);

}  // namespace coconet
