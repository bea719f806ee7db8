#include "runtime/mpi/mpi_world.h"

#include <mpi.h>

#include <array>
#include <utility>

#include "absl/strings/str_split.h"
#include "coconet/base/status.h"
#include "runtime/host/host_rank.h"
#include "runtime/mpi/collectives/mpi_farewells.h"
#include "runtime/mpi/collectives/mpi_libraries.h"
#include "runtime/mpi/collectives/mpi_status.h"
#include "runtime/mpi/death_watch.h"
#include "runtime/mpi/mpi_exchange.h"
#include "runtime/mpi/mpi_life.h"
#include "runtime/mpi/mpi_place.h"
#include "runtime/mpi/mpi_sharing.h"
#include "runtime/node/cpu.h"

namespace coconet {
namespace {

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
