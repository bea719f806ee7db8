#ifndef COCONET_RUNTIME_MPI_COLLECTIVES_MPI_SPANNING_COMMUNICATOR_H_
#define COCONET_RUNTIME_MPI_COLLECTIVES_MPI_SPANNING_COMMUNICATOR_H_

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "coconet/base/slices.h"
#include "runtime/mesh.h"
#include "runtime/mpi/collectives/mpi_sender.h"

namespace coconet {

/// Library collectives between MPI processes on several nodes. A rank first reduces its slice over
/// the ranks of its node, then over the ranks at its place on the other nodes, each in rank order;
/// results return the same way. So each byte crosses a node's link once in each direction, however
/// many ranks the node has.
class MpiSpanningCommunicator final : public MpiSender {
 public:
  /// `group`: kStage or kAcross.
  MpiSpanningCommunicator(const Mesh& mesh, Group group, int rank,
                          std::unique_ptr<MpiTraffic> traffic);

  absl::string_view name() const override { return "mpi"; }
  absl::Status AllReduce(const void* in, void* out, int64_t count, DType dtype,
                         ReduceKind kind) override;
  absl::Status ReduceScatter(const void* in, void* out, int64_t count, DType dtype, ReduceKind kind,
                             int64_t stride) override;
  absl::Status AllGather(const void* in, void* out, int64_t count, DType dtype,
                         int64_t stride) override;
  absl::Status Broadcast(const void* in, void* out, int64_t count, DType dtype, int root) override;
  absl::Status Reduce(const void* in, void* out, int64_t count, DType dtype, ReduceKind kind,
                      int root) override;
  absl::Status AllToAll(const void* in, void* out, int64_t count, DType dtype) override;

 private:
  /// The arguments of a collective that all its ranks share.
  struct Call {
    absl::string_view what;
    int64_t count;
    DType dtype;
    ReduceKind kind = {};
    int64_t element = static_cast<int64_t>(SizeOf(dtype));
  };
  /// Ranks that exchange messages directly, and this rank's index among them.
  struct Line {
    Members members;
    int index;
  };
  /// The range of elements that belongs to rank `index` of a line.
  using PartOf = absl::FunctionRef<Range(int)>;

  /// Each rank of the line reduces its part of `in` into `out`, which may be that part of `in`.
  absl::Status ReduceParts(const Call& call, const Line& line, const char* in, PartOf part,
                           char* out);
  /// Each rank of the line contributes its part of `inout`; afterwards all ranks have all parts.
  absl::Status GatherParts(const Call& call, const Line& line, char* inout, PartOf part);
  /// Each rank of the group reduces its slice of `count` elements into `out`.
  absl::Status ReduceSlices(const Call& call, const char* in, char* out);
  absl::Status GatherSlices(const Call& call, char* inout);
  /// Scatters from, or collects to, rank `root` of the group: the slice of each other rank.
  absl::Status ScatterSlices(const Call& call, char* inout, int root);
  absl::Status CollectSlices(const Call& call, char* inout, int root);

  /// The slice of rank `index` of the group: `count` elements are cut by place on a node, and each
  /// of these parts by node.
  Range SliceOf(int64_t count, int index) const;

  Line group_, local_, across_;
  Streams streams_;  // scratch, as the following
  std::vector<const void*> sources_;
  std::vector<char> blocks_;  // ReduceScatter's blocks, reduced over the node
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_MPI_COLLECTIVES_MPI_SPANNING_COMMUNICATOR_H_
