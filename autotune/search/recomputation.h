#pragma once

#include <cstdint>

#include "autotune/search/variants.h"
#include "coconet/schedule/schedule.h"
#include "jit/config/config.h"
#include "jit/config/target.h"

namespace coconet {

/// A schedule without overlaps, buckets and order, of a program without lists, in which values that
/// live across the peak of memory are computed again for what takes them after it (Recompute),
/// until its plan with `config` needs `limit` bytes a rank at most (MemoryOf) or none is left that
/// pays. Values with the most bytes times launches between their readers, less what copies of them
/// keep alive, come first. A pure function of its arguments; the schedule itself where it is within
/// the limit, or does not lower.
Schedule WithLessMemory(const Schedule& schedule, const Config& config, const Target& target,
                        int64_t limit);

/// For a set of variants which all need more than `limit` bytes a rank: the variants of its few
/// smallest schedules, WithLessMemory, those that are then within the limit, else the smallest.
/// Empty where nothing can be computed again. A pure function of its arguments.
VariantSet WithinMemory(const VariantSet& set, const ConfigSpace& space, const Target& target,
                        int64_t limit, const Admits& admits);

}  // namespace coconet
