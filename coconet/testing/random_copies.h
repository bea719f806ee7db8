#pragma once

#include <random>

#include "coconet/schedule/schedule.h"

namespace coconet {

/// A schedule that has no kernels with up to `most` values computed again for some of the
/// operations that take them (Recompute), and some of the copies in kernels, alone or with what
/// takes them.
Schedule WithRandomCopies(const Schedule& schedule, int most, std::mt19937_64& random);

}  // namespace coconet
