#include "runtime/mpi/mpi_world.h"

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "coconet/base/status.h"
#include "runtime/control/board.h"
#include "runtime/host/host_rank.h"
#include "runtime/mpi/mpi_status.h"
#include "runtime/mpi/mpi_transport.h"
#include "runtime/node/wait.h"
#include "runtime/processes/process_world.h"

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

/// Initialises MPI unless it already has been. MPI can be initialised once per process,
/// so it stays up between worlds; it is finalised at exit, provided that all ranks get
/// there within `timeout_s`.
absl::Status BeginMpi(double timeout_s) {
  RETURN_IF_ERROR(OpenMpi());
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

/// Shortens that timeout after a world has failed, when some ranks may never get there.
void HastenEnd(double timeout_s) {
  TheEnding().timeout_s = std::min(TheEnding().timeout_s, timeout_s);
}

constexpr int kHereTag = 23042;  // of the messages of ranks that wait in MeetAll

/// The lowest rank from which no message says within `patience_s` that it waits, too; -1: all
/// others do.
int AbsentRank(MPI_Comm comm, double patience_s) {
  int rank = 0, size = 1;
  if (MPI_Comm_rank(comm, &rank) != MPI_SUCCESS || MPI_Comm_size(comm, &size) != MPI_SUCCESS)
    return -1;
  for (int peer = 0; peer < size; ++peer) {
    MPI_Request request;
    if (peer != rank &&
        MPI_Isend(nullptr, 0, MPI_BYTE, peer, kHereTag, comm, &request) == MPI_SUCCESS)
      MPI_Request_free(&request);
  }
  int absent = -1;
  const auto all_wait = [&] {
    absent = -1;
    for (int peer = 0; peer < size && absent < 0; ++peer) {
      int waits = peer == rank;
      if (!waits) MPI_Iprobe(peer, kHereTag, comm, &waits, MPI_STATUS_IGNORE);
      if (!waits) absent = peer;
    }
    return absent < 0;
  };
  WaitUntil({.spins = 0, .timeout_ns = static_cast<int64_t>(patience_s * 1e9)}, all_wait,
            [] { return false; });
  return absent;
}

/// Collective: waits until all ranks are here; DeadlineExceeded if one does not come. Called before
/// MPI functions that block without a deadline, such as those that make communicators.
absl::Status MeetAll(MPI_Comm comm, double timeout_s, absl::string_view call) {
  if (AllCome(comm, timeout_s)) return absl::OkStatus();
  const int absent = AbsentRank(comm, std::clamp(timeout_s / kGrace, 0.5, kSecondRoundSeconds));
  const std::string whom =
      absent < 0 ? "the other ranks; one" : absl::StrCat("rank ", absent, ", which");
  return absl::DeadlineExceededError(
      absl::StrCat(call, ": waited ", timeout_s, " s for ", whom, " ", kDeadlineAdvice));
}

constexpr double kEndAfterFailureSeconds = 5;  // ranks that fail together end within seconds

}  // namespace

absl::Status RunMpiWorld(const WorldRequest& request, const RankBody& body) {
  return RunOnMpi(request, MakeHostRank, body);
}

absl::Status RunOnMpi(const WorldRequest& request, const MakeRank& make, const RankBody& body) {
  RETURN_IF_ERROR(BeginMpi(request.timeout_s));
  RETURN_IF_ERROR(MeetAll(MPI_COMM_WORLD, request.timeout_s, "RunWorld"));
  ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport, MpiTransport::Over(MPI_COMM_WORLD));
  const absl::StatusOr<std::unique_ptr<ProcessWorld>> world =
      ProcessWorld::Join(std::move(transport), request, make);
  if (!world.ok()) {
    HastenEnd(kEndAfterFailureSeconds);
    return world.status();
  }
  absl::Status status = body((*world)->rank());
  if (!status.ok()) {
    (*world)->Leave(status);
    HastenEnd((*world)->SawDeath() ? 0 : kEndAfterFailureSeconds);
  }
  return status;
}

absl::StatusOr<std::unique_ptr<Membership>> JoinMpi(const void* comm, const WorldRequest& request,
                                                    const MakeRank& make) {
  RETURN_IF_ERROR(WithContext(OpenMpi(), "Join"));
  int initialized = 0, finalized = 0;
  RETURN_IF_MPI(Initialized, &initialized);
  RETURN_IF_MPI(Finalized, &finalized);
  if (!initialized || finalized) {
    return absl::FailedPreconditionError(absl::StrCat(
        "Join: want MPI to be initialised by the program that owns the communicator; it ",
        finalized ? "was finalised" : "is not"));
  }
  MPI_Comm owned = MPI_COMM_NULL;
  std::memcpy(&owned, comm, sizeof owned);
  if (owned == MPI_COMM_NULL)
    return absl::InvalidArgumentError("Join: want a communicator, have MPI_COMM_NULL");
  RETURN_IF_ERROR(MeetAll(owned, request.timeout_s, "Join"));
  ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport, MpiTransport::Over(owned));
  return ProcessWorld::Join(std::move(transport), request, make);
}

}  // namespace coconet
