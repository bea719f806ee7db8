#ifndef COCONET_AUTOTUNE_SEARCH_WORTHWHILE_H_
#define COCONET_AUTOTUNE_SEARCH_WORTHWHILE_H_

#include <vector>

#include "coconet/schedule/schedule.h"

namespace coconet {

/// `schedules` of one program, the program as written first, whose sizes are known, without those
/// that sizes make pointless:
/// - slices of a matrix, or more dimensions, that leave half of the ranks without any elements,
/// over a dimension that the program itself does not slice so;
/// - slices over `flat` that are those over a dimension, all before it being 1, where the same
/// schedule with that dimension is there, too. The rest in their order.
std::vector<Schedule> Worthwhile(const std::vector<Schedule>& schedules, int ranks);

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_SEARCH_WORTHWHILE_H_
