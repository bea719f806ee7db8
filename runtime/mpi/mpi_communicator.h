#ifndef COCONET_RUNTIME_MPI_MPI_COMMUNICATOR_H_
#define COCONET_RUNTIME_MPI_MPI_COMMUNICATOR_H_

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/mpi/mpi_sender.h"
#include "runtime/rank.h"

namespace coconet {

/// How f16 and bf16, which MPI does not know, are combined: in f32, rounded after each pair, vectorised.
class MpiOps {
 public:
  static absl::StatusOr<std::unique_ptr<MpiOps>> Create();
  ~MpiOps();
  MpiOps(const MpiOps&) = delete;
  MpiOps& operator=(const MpiOps&) = delete;

  MPI_Op Of(DType dtype, ReduceKind kind) const;

 private:
  MpiOps() = default;
  MPI_Op half_[2][3] = {};  // [f16, bf16][kind]
};

/// The library tier between MPI processes of one machine: MPI's own collectives. Uses `comm`, whose ranks are the group's,
/// alone, and does not own it.
class MpiCommunicator final : public MpiSender {
 public:
  /// Waits, with a deadline, until all ranks have come: MPI's own collectives would wait for ever. The argument names
  /// the operation.
  using Gate = std::function<absl::Status(absl::string_view)>;
  /// `limit`: elements in one MPI call, over all ranks; MPI counts with ints.
  MpiCommunicator(MPI_Comm comm, const Members& group, std::unique_ptr<MpiOps> ops, Gate gate, int64_t limit,
                  std::unique_ptr<MpiTraffic> traffic, int rank, const Members& column);

  absl::Status AllReduce(const void* in, void* out, int64_t count, DType dtype, ReduceKind kind) override;
  absl::Status ReduceScatter(const void* in, void* out, int64_t count, DType dtype, ReduceKind kind,
                             int64_t stride) override;
  absl::Status AllGather(const void* in, void* out, int64_t count, DType dtype, int64_t stride) override;
  absl::Status Broadcast(const void* in, void* out, int64_t count, DType dtype, int root) override;
  absl::Status Reduce(const void* in, void* out, int64_t count, DType dtype, ReduceKind kind, int root) override;
  absl::Status AllToAll(const void* in, void* out, int64_t count, DType dtype) override;

 private:
  MPI_Comm comm_;
  int rank_;  // in the group
  int size_;
  std::unique_ptr<MpiOps> ops_;
  Gate gate_;
  int64_t limit_;
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_MPI_MPI_COMMUNICATOR_H_
