#pragma once

#include <mpi.h>

#include "runtime/control/wire.h"

namespace coconet {

/// Messages of an MPI communicator, which must have no other user. As
/// thread-safe as MPI was initialised.
class MpiWire final : public Wire {
 public:
  explicit MpiWire(MPI_Comm comm) : comm_(comm) {}
  absl::string_view name() const override { return "mpi"; }
  absl::Status Send(int peer, int tag, const char* data, int64_t bytes, Ticket& ticket) override;
  absl::Status Receive(int peer, int tag, char* data, int64_t bytes, Ticket& ticket) override;
  absl::Status Test(Ticket& ticket, bool& done) override;
  void Cancel(Ticket& ticket) override;

 private:
  MPI_Comm comm_;
};

}  // namespace coconet
