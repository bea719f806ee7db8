#include "runtime/mpi/mpi_world.h"

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_split.h"
#include "coconet/base/status.h"
#include "runtime/host/host_rank.h"
#include "runtime/mpi/collectives/mpi_farewells.h"
#include "runtime/mpi/collectives/mpi_libraries.h"
#include "runtime/mpi/collectives/mpi_status.h"
#include "runtime/mpi/death_watch.h"
#include "runtime/mpi/mpi_exchange.h"
#include "runtime/mpi/mpi_place.h"
#include "runtime/mpi/mpi_sharing.h"
#include "runtime/node/board.h"
#include "runtime/node/cpu.h"
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

/// Initialises MPI unless it already has been. MPI can be initialised once per process,
/// so it stays up between worlds; it is finalised at exit, provided that all ranks get
/// there within `timeout_s`.
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

/// Shortens that timeout after a world has failed, when some ranks may never get there.
void HastenEnd(double timeout_s) {
  TheEnding().timeout_s = std::min(TheEnding().timeout_s, timeout_s);
}

/// Collective: waits until all processes are here; DeadlineExceeded if one does not come. Called
/// before MPI functions that block without a deadline, such as those that make communicators.
absl::Status MeetAll(double timeout_s) {
  if (AllCome(MPI_COMM_WORLD, timeout_s)) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat("RunWorld: waited ", timeout_s,
                                                  " s for the other ranks; one ", kDeadlineAdvice));
}

constexpr double kEndAfterFailureSeconds = 5;  // ranks that fail together end within seconds

/// "mpi Open MPI v4.1.4"
std::string LibraryName() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) length = 0;
  const std::vector<absl::string_view> parts =
      absl::StrSplit(absl::string_view(text, length), absl::ByAnyChar(",\n"));
  return absl::StrCat("mpi ", parts[0]);
}

/// The threading level that MPI was initialised with, by BeginMpi or by the user.
LibraryThreads ThreadsOfMpi() {
  int provided = MPI_THREAD_SINGLE;
  if (MPI_Query_thread(&provided) != MPI_SUCCESS) return LibraryThreads::kFirst;
  if (provided == MPI_THREAD_MULTIPLE) return LibraryThreads::kAny;
  return provided == MPI_THREAD_SERIALIZED ? LibraryThreads::kOneAtATime : LibraryThreads::kFirst;
}

/// This process's rank and the size of `comm`.
struct Numbers {
  int rank = 0, size = 1;
};
absl::StatusOr<Numbers> NumbersIn(MPI_Comm comm) {
  Numbers numbers;
  RETURN_IF_MPI(Comm_rank, comm, &numbers.rank);
  RETURN_IF_MPI(Comm_size, comm, &numbers.size);
  return numbers;
}

absl::Status RunOnComms(MpiComms& comms, const WorldRequest& request, const MakeRank& make,
                        const RankBody& body) {
  const double timeout_s = request.timeout_s;
  ASSIGN_OR_RETURN(const Numbers numbers, NumbersIn(comms.exchange));
  const int rank = numbers.rank, size = numbers.size;
  auto exchange_here =
      std::make_unique<MpiExchange>(comms.exchange, rank, size, TermsFor(size, 1, timeout_s));
  MpiExchange& exchange = *exchange_here;
  ASSIGN_OR_RETURN(const Place place, FindPlace(comms.traffic, exchange, rank));
  ASSIGN_OR_RETURN(const Mesh mesh, MeshOf(request.shape, place.machines));
  const Members group = SharingMemory(mesh, rank);
  const WaitTerms terms =
      TermsFor(place.local_size, static_cast<int>(place.cores.size()), timeout_s);
  exchange.SetTerms(terms);

  auto sharing = std::make_unique<MpiSharing>(exchange, rank, group);
  // One board per group that shares memory, in the memory of its lowest rank; the memory of the
  // others is unused.
  ASSIGN_OR_RETURN(const std::vector<std::shared_ptr<Region>> boards,
                   sharing->Share(Board::Bytes(size)));
  const MpiFarewells farewells(comms.exchange, rank, size, group);
  Board heard(boards[group.first]->base(), size);
  const DeathWatch watch(heard, place.pids);
  Board board = heard.Telling([&](const absl::Status& why) { farewells.Tell(why); });
  const Hearsay hearsay{.listen = [&farewells, heard]() mutable { farewells.Listen(heard); },
                        .note = [&farewells](int peer) { farewells.Note(peer); }};
  exchange.Watch(board, group, hearsay);
  ASSIGN_OR_RETURN(const std::vector<std::shared_ptr<Region>> staging,
                   sharing->Share(StagingBytes(mesh)));
  auto libraries = MakeLibraries({comms, mesh, rank, timeout_s, terms, board, staging, hearsay});
  const std::vector<int> before = AllowedCores();
  if (request.pin) RunOn({place.core});
  absl::Status status;
  {
    const absl::StatusOr<std::unique_ptr<Rank>> endpoint =
        make({.rank = rank,
              .mesh = mesh,
              .machine_rank = place.local_rank,
              .machine_ranks = place.local_size,
              .cores = place.cores,
              .pin = request.pin,
              .timeout_s = timeout_s,
              .board = board,
              .exchange = std::move(exchange_here),
              .libraries = std::move(libraries),
              .library = LibraryName(),
              .library_threads = ThreadsOfMpi(),
              .sharing = std::move(sharing)});
    status = endpoint.ok() ? body(**endpoint) : endpoint.status();
    if (!status.ok())
      board.Leave(rank, status);  // before the endpoint's destructor, which may wait for peers
  }
  if (request.pin) RunOn(before);
  if (status.ok()) {
    board.Finish(rank);
  } else {
    HastenEnd(watch.SawDeath() ? 0 : kEndAfterFailureSeconds);
  }
  return status;
}

}  // namespace

absl::Status RunMpiWorld(const WorldRequest& request, const RankBody& body) {
  return RunOnMpi(request, MakeHostRank, body);
}

absl::Status RunOnMpi(const WorldRequest& request, const MakeRank& make, const RankBody& body) {
  RETURN_IF_ERROR(BeginMpi(request.timeout_s));
  RETURN_IF_ERROR(MeetAll(request.timeout_s));
  MpiComms comms;
  RETURN_IF_ERROR(DuplicateWorld(comms));
  RETURN_IF_ERROR(RunOnComms(comms, request, make, body));
  Free(comms);
  return absl::OkStatus();
}

}  // namespace coconet
