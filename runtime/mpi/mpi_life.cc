#include "runtime/mpi/mpi_life.h"

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "coconet/base/status.h"
#include "runtime/mpi/collectives/mpi_status.h"
#include "runtime/node/board.h"
#include "runtime/node/wait.h"

namespace coconet {
namespace {

/// What EndMpi needs at exit.
struct Ending {
  MPI_Comm comm = MPI_COMM_NULL;
  double timeout_s = 0;
};
Ending& TheEnding() {
  static Ending ending;
  return ending;
}

/// True when all processes arrive before the deadline.
bool AllCome(MPI_Comm comm, double timeout_s) {
  MPI_Request request;
  if (MPI_Ibarrier(comm, &request) != MPI_SUCCESS) return false;
  const WaitTerms terms{.spins = 0, .timeout_ns = static_cast<int64_t>(timeout_s * 1e9)};
  int all_came = 0;
  WaitUntil(
      terms,
      [&] { return MPI_Test(&request, &all_came, MPI_STATUS_IGNORE) != MPI_SUCCESS || all_came; },
      [] { return false; });
  return all_came != 0;
}

constexpr double kSecondRoundSeconds = 5;  // all ranks are about to arrive

/// Finalises MPI if all ranks get here. MPI_Finalize would wait forever for a rank that
/// died or gave up; then this process ends without it, and the launcher reports that. Two
/// rounds: a rank that gives up in the first does not take part in the second, so that no
/// late rank finalises alone.
void EndMpi() {
  int finalized = 0;
  if (MPI_Finalized(&finalized) != MPI_SUCCESS || finalized) return;
  const MPI_Comm comm = TheEnding().comm;
  if (AllCome(comm, TheEnding().timeout_s) && AllCome(comm, kSecondRoundSeconds)) MPI_Finalize();
}

}  // namespace

absl::Status BeginMpi(double timeout_s) {
  TheEnding().timeout_s = timeout_s;
  int initialized = 0, finalized = 0, provided = 0;
  RETURN_IF_MPI(Initialized, &initialized);
  RETURN_IF_MPI(Finalized, &finalized);
  if (finalized) {
    return absl::FailedPreconditionError(
        "RunWorld: MPI was finalized already, and starts only once a process");
  }
  if (initialized) return absl::OkStatus();
  // For concurrent collectives on two lanes. Where less is provided, Bind refuses such plans.
  RETURN_IF_MPI(Init_thread, nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  RETURN_IF_MPI(Comm_dup, MPI_COMM_WORLD, &TheEnding().comm);
  RETURN_IF_MPI(Comm_set_errhandler, TheEnding().comm, MPI_ERRORS_RETURN);
  std::atexit(EndMpi);
  return absl::OkStatus();
}

void HastenEnd(double timeout_s) {
  TheEnding().timeout_s = std::min(TheEnding().timeout_s, timeout_s);
}

absl::Status MeetAll(double timeout_s) {
  if (AllCome(MPI_COMM_WORLD, timeout_s)) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat("RunWorld: waited ", timeout_s,
                                                  " s for the other ranks; one ", kDeadlineAdvice));
}

}  // namespace coconet
