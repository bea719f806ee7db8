#pragma once

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "coconet/base/slices.h"
#include "runtime/mesh.h"
#include "runtime/processes/collectives/process_communicator.h"

namespace coconet {

/// Library collectives between processes on several nodes. A rank first reduces its slice over
/// the ranks of its node, then over the ranks at its place on the other nodes, each in rank order;
/// results return the same way. So each byte crosses a node's link once in each direction, however
/// many ranks the node has.
class SpanningCommunicator final : public ProcessCommunicator {
 public:
  /// `group`: kStage or kAcross.
  SpanningCommunicator(const Mesh& mesh, Group group, int rank,
                       std::unique_ptr<PeerTraffic> traffic);

  absl::string_view name() const override { return traffic_->name(); }
  /// Sends the rows in use only, of all calls together.
  absl::Status AllToAlls(absl::Span<const AllToAllCall> calls) override;
  /// On nodes of one rank as one AllReduce of all elements one after the other.
  absl::Status AllReduces(absl::Span<const AllReduceCall> calls, DType dtype,
                          ReduceKind kind) override;

 private:
  /// Ranks that exchange messages directly, and this rank's index among them.
  struct Line {
    Members members;
    int index;
  };
  /// The range of elements that belongs to rank `index` of a line.
  using PartOf = absl::FunctionRef<Range(int)>;

  absl::Status RunInGroup(const Call& call) override;
  absl::Status ReduceScatter(const Call& call);
  absl::Status AllGather(const Call& call);
  /// Sends each other rank of the line the part of `in` that `sent` names, and receives from it the
  /// part of `out` that `received` names.
  absl::Status Trade(const Call& call, const Line& line, const char* in, PartOf sent, char* out,
                     PartOf received);
  /// Fills in `streams_` for such messages; `received`: elements by index in the line.
  void Pair(const Call& call, const Line& line, const char* in, PartOf sent,
            absl::FunctionRef<int64_t(int)> received);
  /// Each rank of the line reduces its part of `in` into `out`, which may be that part of `in`.
  absl::Status ReduceParts(const Call& call, const Line& line, const char* in, PartOf part,
                           char* out);
  /// Each rank of the line contributes its part of `inout`; afterwards all ranks have all parts.
  absl::Status GatherParts(const Call& call, const Line& line, char* inout, PartOf part);
  /// Each rank of the group reduces its slice of the call's elements into its `out`.
  absl::Status ReduceSlices(const Call& call);
  absl::Status GatherSlices(const Call& call);
  /// Scatters from, or collects to, the root: the slice in `out` of each other rank.
  absl::Status ScatterSlices(const Call& call);
  absl::Status CollectSlices(const Call& call);
  /// The slice of rank `index` of the group: `count` elements are cut by place on a node, and each
  /// of these parts by node.
  Range SliceOf(int64_t count, int index) const;

  Line group_, local_, across_;
  Streams streams_;  // scratch, as the following
  std::vector<const void*> sources_;
  std::vector<char> blocks_;  // ReduceScatter's blocks, reduced over the node
};

}  // namespace coconet
