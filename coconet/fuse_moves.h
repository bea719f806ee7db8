#ifndef COCONET_FUSE_MOVES_H_
#define COCONET_FUSE_MOVES_H_

#include <vector>

#include "coconet/schedule.h"

namespace coconet {

/// Computations (Pointwise, Cast, Update, Output on tensors) in no kernel, in groups that one kernel may want to
/// hold: of one shape, connected by values or by a collective that feeds them, and between the same collectives. Each
/// ascending, ordered by first node; groups of one included.
std::vector<std::vector<NodeId>> ComputeGroups(const Schedule& s);

/// The fusions worth trying, deterministic; Apply may refuse some:
/// - a group of computations, as a whole;
/// - a ReduceScatter and its AllGather;
/// - a kernel (or a computation alone) with all ReduceScatters that feed it, with all AllReduces that feed it, with all
///   AllGathers that it feeds, with all such pairs that feed it, and with the computations behind its AllGathers.
std::vector<Fuse> FuseMoves(const Schedule& s);

}  // namespace coconet

#endif  // COCONET_FUSE_MOVES_H_
