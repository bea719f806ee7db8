#ifndef COCONET_SCHEDULE_FUSE_MOVES_H_
#define COCONET_SCHEDULE_FUSE_MOVES_H_

#include <cstdint>
#include <vector>

#include "coconet/schedule/schedule.h"

namespace coconet {

/// Computations on tensors in no kernel, in groups that one kernel may want to hold: over the same
/// elements, connected by values or by a collective that feeds them, and between the same
/// collectives and folds to scalars. Each ascending, ordered by first node; groups of one included.
std::vector<std::vector<NodeId>> ComputeGroups(const Schedule& s);

/// The fusions worth trying. A core is a kernel, or a computation that is a group alone.
enum class FuseKind : uint8_t {
  kGroup,           // a group of computations, as a whole
  kPair,            // a ReduceScatter and its AllGather
  kReduceScatters,  // a core and all ReduceScatters that feed it
  kAllReduces,      // a core and all AllReduces that feed it
  kPairs,           // a core and all pairs that feed it
  kGathers,         // a core, all AllGathers that it feeds, and what stores their results
  kSends,           // a core, all sends that it feeds, and what stores their results
  kConsumers,       // a core and the groups that its AllGathers feed
  kFoldSums,        // a core and the AllReduces of its folds
  kAfterFolds,      // a core, the AllReduces of its folds, and the groups that take them
};
inline constexpr FuseKind kAllFuseKinds[] = {
    FuseKind::kGroup,    FuseKind::kPair,      FuseKind::kReduceScatters, FuseKind::kAllReduces,
    FuseKind::kPairs,    FuseKind::kGathers,   FuseKind::kSends,          FuseKind::kConsumers,
    FuseKind::kFoldSums, FuseKind::kAfterFolds};

/// Every fusion of a kind, ordered by core; Apply may refuse some.
std::vector<Fuse> FuseMoves(const Schedule& s, FuseKind kind);

}  // namespace coconet

#endif  // COCONET_SCHEDULE_FUSE_MOVES_H_
