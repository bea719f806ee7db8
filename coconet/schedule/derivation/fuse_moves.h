#pragma once

#include <cstdint>
#include <vector>

#include "coconet/schedule/schedule.h"

namespace coconet {

/// Groups of computations on tensors that are in no kernel and could be fused into one: they have
/// the same iteration space, are connected by values or by a collective that feeds them, and lie
/// between the same collectives, folds to scalars, products and computations of other iteration
/// spaces, so that no two groups wait for each other. What has more operations than a kernel should
/// have is cut into several groups. Each group is ascending; groups are ordered by first node, and
/// may have one member.
std::vector<std::vector<NodeId>> ComputeGroups(const Schedule& s);

/// The fusions worth trying. A core is a kernel, or a group of one computation.
enum class FuseKind : uint8_t {
  kGroup,           // a group of computations, as a whole
  kPair,            // a ReduceScatter and its AllGather
  kReduceScatters,  // a core and all ReduceScatters that feed it
  kAllReduces,      // a core and all AllReduces that feed it
  kPairs,           // a core and all pairs that feed it
  kGathers,         // a core, all AllGathers that it feeds, and what stores their results
  kSends,           // a core, all sends that it feeds, and what stores their results
  kArrivals,        // a core and all AllToAlls that feed it
  kExchanges,       // a core, all AllToAlls that it feeds, and what stores their results
  kConsumers,       // a core and the groups that its AllGathers or AllToAlls feed
  kFoldSums,        // a core and the AllReduces of its folds
  kAfterFolds,      // a core, the AllReduces of its folds, and the groups that take them
  kPrologue,        // a core and all that feeds it and fits a prologue
  kEpilogue,        // a core and the first product whose tiles it takes; or one, and what sends it
  kAwaited,         // a core and the product that it reduces, if that fits tiles; or the two alone
};
/// The kinds of every program, and those by which kernels compute products tile by tile.
inline constexpr FuseKind kFuseKinds[] = {
    FuseKind::kGroup,     FuseKind::kPair,      FuseKind::kReduceScatters, FuseKind::kAllReduces,
    FuseKind::kPairs,     FuseKind::kGathers,   FuseKind::kSends,          FuseKind::kArrivals,
    FuseKind::kExchanges, FuseKind::kConsumers, FuseKind::kFoldSums,       FuseKind::kAfterFolds,
    FuseKind::kPrologue};
inline constexpr FuseKind kTileFuseKinds[] = {FuseKind::kEpilogue, FuseKind::kAwaited};

/// Every fusion of a kind, ordered by core; Apply may refuse some.
std::vector<Fuse> FuseMoves(const Schedule& s, FuseKind kind);

}  // namespace coconet
