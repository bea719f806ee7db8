#ifndef COCONET_JIT_LOWER_LOWER_STEPS_H_
#define COCONET_JIT_LOWER_LOWER_STEPS_H_

#include <cstdint>
#include <string>

#include "jit/config/config.h"
#include "jit/config/units.h"
#include "jit/lower/lower.h"
#include "jit/storage/buffers.h"
#include "runtime/plan.h"

namespace coconet {

/// In words, e.g. "fuse(RS, C, AG)", "C", "AR".
std::string LabelOf(const Graph& g, const Unit& unit);

/// The bytes that a step of a library moves between `ranks` ranks.
int64_t LibraryBytes(const CollectiveStep& step, int ranks);

/// How the units communicate: Lowered::protocol.
std::string ProtocolOf(const Units& u, const Config& config);

/// The matrix product of a unit; -1: none.
NodeId ProductOf(const Graph& g, const Unit& unit);

/// Lower of a schedule whose graph has lists: the kernels of one tensor, with a loop over a table
/// of all; library collectives and matrix products once a tensor. FailedPrecondition when tensors
/// of some sizes need another kernel (an extent that is 1 is broadcast), and it must add something
/// up over all.
absl::StatusOr<Lowered> LowerList(const Schedule& schedule, const Config& config,
                                  const Target& target);

}  // namespace coconet

#endif  // COCONET_JIT_LOWER_LOWER_STEPS_H_
