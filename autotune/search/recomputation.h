#pragma once

#include <cstdint>

#include "autotune/search/variants.h"
#include "coconet/schedule/schedule.h"
#include "jit/config/config.h"
#include "jit/config/target.h"

namespace coconet {

/// A schedule without overlaps, buckets and order, of a program without lists, whose plan with
/// `config` needs at most `limit` bytes per rank (MemoryOf). Values that live across the peak of
/// memory are computed again (Recompute) for their users after the peak, until the limit is met or
/// no further value pays. Values with the most bytes times launches between their readers, less
/// what copies of them keep alive, come first. A pure function of its arguments; the schedule
/// itself if it is within the limit, or does not lower.
Schedule WithLessMemory(const Schedule& schedule, const Config& config, const Target& target,
                        int64_t limit);

/// For a set of variants that all need more than `limit` bytes per rank: the variants of its few
/// smallest schedules, WithLessMemory, that are then within the limit, or else the smallest. Empty
/// if no value can be computed again. A pure function of its arguments.
VariantSet WithinMemory(const VariantSet& set, const ConfigSpace& space, const Target& target,
                        int64_t limit, const Admits& admits);

}  // namespace coconet
