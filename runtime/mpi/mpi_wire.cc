#include "runtime/mpi/mpi_wire.h"

#include <cstring>

#include "coconet/base/status.h"
#include "runtime/mpi/mpi_status.h"

namespace coconet {
namespace {

static_assert(sizeof(MPI_Request) <= sizeof(Wire::Ticket::handle));

void Store(const MPI_Request& request, Wire::Ticket& ticket) {
  ticket.handle = 0;
  if (request != MPI_REQUEST_NULL) std::memcpy(&ticket.handle, &request, sizeof request);
}

}  // namespace

absl::Status MpiWire::Send(int peer, int tag, const char* data, int64_t bytes, Ticket& ticket) {
  MPI_Request request;
  RETURN_IF_MPI(Isend, data, static_cast<int>(bytes), MPI_BYTE, peer, tag, comm_, &request);
  Store(request, ticket);
  return absl::OkStatus();
}

absl::Status MpiWire::Receive(int peer, int tag, char* data, int64_t bytes, Ticket& ticket) {
  MPI_Request request;
  RETURN_IF_MPI(Irecv, data, static_cast<int>(bytes), MPI_BYTE, peer, tag, comm_, &request);
  Store(request, ticket);
  return absl::OkStatus();
}

absl::Status MpiWire::Test(Ticket& ticket, bool& done) {
  done = true;
  if (ticket.handle == 0) return absl::OkStatus();
  MPI_Request request;
  std::memcpy(&request, &ticket.handle, sizeof request);
  int complete = 0;
  RETURN_IF_MPI(Test, &request, &complete, MPI_STATUS_IGNORE);
  done = complete != 0;
  Store(request, ticket);
  return absl::OkStatus();
}

void MpiWire::Cancel(Ticket& ticket) {
  bool done = false;
  if (!Test(ticket, done).ok() || done) return;
  MPI_Request request;
  std::memcpy(&request, &ticket.handle, sizeof request);
  // A receive that is cancelled, or else has found its message, is complete.
  if (MPI_Cancel(&request) == MPI_SUCCESS) MPI_Wait(&request, MPI_STATUS_IGNORE);
  ticket.handle = 0;
}

}  // namespace coconet
