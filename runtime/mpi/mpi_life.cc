#include "runtime/mpi/mpi_life.h"

#include <mpi.h>

#include <cstdint>
#include <cstdlib>

#include "coconet/base/status.h"
#include "runtime/host/wait.h"
#include "runtime/mpi/mpi_status.h"

namespace coconet {
namespace {

/// What is left to do at exit.
struct Ending {
  MPI_Comm comm = MPI_COMM_NULL;
  double timeout_s = 0;
};
Ending& TheEnding() {
  static Ending ending;
  return ending;
}

/// MPI_Finalize would wait for ever for a rank that died. Then this process ends without, and the launcher says so.
void EndMpi() {
  int finalized = 0, all_came = 0;
  if (MPI_Finalized(&finalized) != MPI_SUCCESS || finalized) return;
  MPI_Request request;
  if (MPI_Ibarrier(TheEnding().comm, &request) != MPI_SUCCESS) return;
  const WaitTerms terms{.spins = 0, .timeout_ns = static_cast<int64_t>(TheEnding().timeout_s * 1e9)};
  WaitUntil(
      terms, [&] { return MPI_Test(&request, &all_came, MPI_STATUS_IGNORE) != MPI_SUCCESS || all_came; },
      [] { return false; });
  if (all_came) MPI_Finalize();
}

}  // namespace

absl::Status BeginMpi(double timeout_s) {
  TheEnding().timeout_s = timeout_s;
  int initialized = 0, finalized = 0, provided = 0;
  RETURN_IF_MPI(Initialized, &initialized);
  RETURN_IF_MPI(Finalized, &finalized);
  if (finalized) {
    return absl::FailedPreconditionError("RunWorld: MPI was finalized already, and starts only once a process");
  }
  if (initialized) return absl::OkStatus();
  // For lanes that communicate at once. Where less is provided, Bind refuses those.
  RETURN_IF_MPI(Init_thread, nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  RETURN_IF_MPI(Comm_dup, MPI_COMM_WORLD, &TheEnding().comm);
  RETURN_IF_MPI(Comm_set_errhandler, TheEnding().comm, MPI_ERRORS_RETURN);
  std::atexit(EndMpi);
  return absl::OkStatus();
}

}  // namespace coconet
