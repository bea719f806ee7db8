#pragma once

#include "coconet/base/dtype.h"
#include "coconet/ir/op_row.h"

namespace coconet {

// The operations between ranks, and those that know of ranks.

/// (): the rank's number in its pipeline stage, a local scalar.
struct RankNumber {
  DType dtype{};
  bool operator==(const RankNumber&) const = default;
};
template <>
inline constexpr OpRow kRow<RankNumber> = {.spelling = {"rank", 0},
                                           .role = Role::kConstant,
                                           .before = {Of<&RankNumber::dtype>(Written::kDType)}};

/// (local) -> replicated, over all ranks or across nodes.
struct AllReduce {
  ReduceKind kind{};
  Span span{};
  bool operator==(const AllReduce&) const = default;
};
template <>
inline constexpr OpRow kRow<AllReduce> = {.spelling = {"all_reduce", 1},
                                          .role = Role::kCollective,
                                          .before = {Of<&AllReduce::kind>(Written::kReduceKind)},
                                          .after = {Of<&AllReduce::span>(Written::kSpan)}};

/// (local) -> sliced(dim) or owned
struct ReduceScatter {
  ReduceKind kind{};
  Cut to;
  Span span{};
  bool operator==(const ReduceScatter&) const = default;
};
template <>
inline constexpr OpRow kRow<ReduceScatter> = {
    .spelling = {"reduce_scatter", 1},
    .role = Role::kCollective,
    .before = {Of<&ReduceScatter::kind>(Written::kReduceKind)},
    .after = {Of<&ReduceScatter::to>(Written::kCut), Of<&ReduceScatter::span>(Written::kSpan)}};

/// (sliced or owned) -> replicated
struct AllGather {
  Span span{};
  bool operator==(const AllGather&) const = default;
};
template <>
inline constexpr OpRow kRow<AllGather> = {.spelling = {"all_gather", 1},
                                          .role = Role::kCollective,
                                          .after = {Of<&AllGather::span>(Written::kSpan)}};

/// (replicated) -> sliced(dim) or owned: each rank's own part, nothing moves.
struct Shard {
  Cut to;
  bool operator==(const Shard&) const = default;
};
template <>
inline constexpr OpRow kRow<Shard> = {
    .spelling = {"shard", 1}, .role = Role::kShard, .after = {Of<&Shard::to>(Written::kCut)}};

/// (local) -> replicated: the values of rank `root`.
struct Broadcast {
  int root = 0;
  bool operator==(const Broadcast&) const = default;
};
template <>
inline constexpr OpRow kRow<Broadcast> = {.spelling = {"broadcast", 1},
                                          .role = Role::kTransfer,
                                          .after = {Of<&Broadcast::root>(Written::kRank)}};

/// (local) -> local: on rank `root`, 0 elsewhere.
struct ReduceTo {
  ReduceKind kind{};
  int root = 0;
  bool operator==(const ReduceTo&) const = default;
};
template <>
inline constexpr OpRow kRow<ReduceTo> = {.spelling = {"reduce", 1},
                                         .role = Role::kTransfer,
                                         .before = {Of<&ReduceTo::kind>(Written::kReduceKind)},
                                         .after = {Of<&ReduceTo::root>(Written::kRank)}};

/// (sliced or owned) -> sliced(dim) or owned
struct AllToAll {
  Cut to;
  bool operator==(const AllToAll&) const = default;
};
template <>
inline constexpr OpRow kRow<AllToAll> = {.spelling = {"all_to_all", 1},
                                         .role = Role::kCollective,
                                         .after = {Of<&AllToAll::to>(Written::kCut)}};

/// (a): the value of the previous (`shift` is 1) or next (-1) pipeline stage; 0 if there is none.
struct Send {
  int shift = 1;
  bool operator==(const Send&) const = default;
};
template <>
inline constexpr OpRow kRow<Send> = {
    .spelling = {"send", 1}, .role = Role::kSend, .after = {Of<&Send::shift>(Written::kShift)}};

}  // namespace coconet
