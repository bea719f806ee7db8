#ifndef COCONET_RUNTIME_MPI_COLLECTIVES_MPI_SPANNING_COMMUNICATOR_H_
#define COCONET_RUNTIME_MPI_COLLECTIVES_MPI_SPANNING_COMMUNICATOR_H_

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "coconet/base/slices.h"
#include "runtime/mesh.h"
#include "runtime/mpi/collectives/mpi_sender.h"

namespace coconet {

/// The library tier between MPI processes on several nodes. A rank reduces its part of the elements
/// of its node's ranks, then of the ranks at its place on the other nodes, in the order of ranks
/// each time; results go back the same way. So each byte crosses a node's link once each way,
/// however many ranks the node has.
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
  /// What the ranks of a call have in common.
  struct Call {
    absl::string_view what;
    int64_t count;
    DType dtype;
    ReduceKind kind = {};
    int64_t element = static_cast<int64_t>(SizeOf(dtype));
  };
  /// Ranks that communicate directly, and which of them this one is.
  struct Line {
    Members members;
    int index;
  };
  /// The elements of a line's rank, by its index.
  using PartOf = absl::FunctionRef<Range(int)>;

  /// The line's ranks reduce `in`, each the part of its own, to `out`, which may be the place of
  /// that part.
  absl::Status ReduceParts(const Call& call, const Line& line, const char* in, PartOf part,
                           char* out);
  /// Each of the line's ranks has its own part of `inout`; then all have all.
  absl::Status GatherParts(const Call& call, const Line& line, char* inout, PartOf part);
  /// Of `count` elements, each rank of the group has its own part reduced in `out`.
  absl::Status ReduceSlices(const Call& call, const char* in, char* out);
  absl::Status GatherSlices(const Call& call, char* inout);
  /// From, or to, rank `root` of the group: each other rank's own part.
  absl::Status ScatterSlices(const Call& call, char* inout, int root);
  absl::Status CollectSlices(const Call& call, char* inout, int root);

  /// The part of `count` elements that rank `index` of the group has: a slice, for its place on
  /// nodes, of which each node has a slice.
  Range SliceOf(int64_t count, int index) const;

  Line group_, local_, across_;
  Streams streams_;  // of the call under way; kept for its memory, as these are
  std::vector<const void*> sources_;
  std::vector<char> blocks_;  // of a ReduceScatter, reduced in the node
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_MPI_COLLECTIVES_MPI_SPANNING_COMMUNICATOR_H_
