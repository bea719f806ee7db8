#ifndef COCONET_AUTOTUNE_SEARCH_WORTHWHILE_H_
#define COCONET_AUTOTUNE_SEARCH_WORTHWHILE_H_

#include <vector>

#include "coconet/schedule/schedule.h"

namespace coconet {

/// Returns the schedules of one bound program without those that its sizes make pointless, in the
/// same order. `schedules` begin with the program as written. Pointless are
/// - slices of a matrix, or of more dimensions, that leave half of the ranks without elements, over
/// a
///   dimension that the program itself does not slice in this way;
/// - slices over `flat` that equal those over a dimension, since all extents before it are 1, where
///   there is the same schedule with slices over that dimension.
std::vector<Schedule> Worthwhile(const std::vector<Schedule>& schedules, int ranks);

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_SEARCH_WORTHWHILE_H_
