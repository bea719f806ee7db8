#ifndef COCONET_RUNTIME_MPI_COLLECTIVES_MPI_SENDER_H_
#define COCONET_RUNTIME_MPI_COLLECTIVES_MPI_SENDER_H_

#include <memory>

#include "runtime/mesh.h"
#include "runtime/mpi/collectives/mpi_traffic.h"
#include "runtime/rank.h"

namespace coconet {

/// The sends between pipeline stages, on one node or several, that all libraries between MPI
/// processes share.
class MpiSender : public Communicator {
 public:
  absl::Status Send(const void* in, void* out, int64_t count, DType dtype, int shift) override;

 protected:
  /// `column`: the ranks at `rank`'s place in all pipeline stages.
  MpiSender(std::unique_ptr<MpiTraffic> traffic, int rank, const Members& column)
      : traffic_(std::move(traffic)), world_rank_(rank), column_(column) {}

  std::unique_ptr<MpiTraffic> traffic_;
  int world_rank_;

 private:
  Members column_;
  Streams streams_;  // scratch of a send
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_MPI_COLLECTIVES_MPI_SENDER_H_
