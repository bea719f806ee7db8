#include "runtime/mpi/mpi_world.h"

#include <mpi.h>

#include <array>

#include "absl/strings/str_split.h"
#include "coconet/base/status.h"
#include "runtime/host/cpu.h"
#include "runtime/host/host_rank.h"
#include "runtime/mpi/mpi_communicator.h"
#include "runtime/mpi/mpi_exchange.h"
#include "runtime/mpi/mpi_life.h"
#include "runtime/mpi/mpi_place.h"
#include "runtime/mpi/mpi_sharing.h"
#include "runtime/mpi/mpi_status.h"

namespace coconet {
namespace {

constexpr int64_t kElementsACall = int64_t{1} << 30;  // MPI counts with ints

/// "mpi Open MPI v4.1.4"
std::string LibraryName() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) length = 0;
  const std::vector<absl::string_view> parts = absl::StrSplit(absl::string_view(text, length), absl::ByAnyChar(",\n"));
  return absl::StrCat("mpi ", parts[0]);
}

/// A communicator of its own for each user, so that their messages never meet.
class OwnComm {
 public:
  static absl::StatusOr<OwnComm> Dup() {
    OwnComm own;
    RETURN_IF_MPI(Comm_dup, MPI_COMM_WORLD, &own.comm_);
    RETURN_IF_MPI(Comm_set_errhandler, own.comm_, MPI_ERRORS_RETURN);
    return own;
  }
  MPI_Comm get() const { return comm_; }
  /// Collective; not after a failure, when the peers may not come.
  void Free() { MPI_Comm_free(&comm_); }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

/// The gate of a lane's library between processes.
class Gate {
 public:
  Gate(Board board, Exchange& exchange, int rank, int lane, const WaitTerms& terms, bool one_node)
      : board_(board), exchange_(exchange), rank_(rank), lane_(lane), terms_(terms), one_node_(one_node) {}

  absl::Status operator()(absl::string_view what) {
    if (!one_node_) return exchange_.Barrier();
    RETURN_IF_ERROR(CheckAllHere(board_, rank_, what));
    board_.arrivals(rank_, lane_).store(++calls_, std::memory_order_release);
    for (int peer = 0; peer < board_.ranks(); ++peer) {
      RETURN_IF_ERROR(AwaitPeer(board_, terms_, rank_, peer, board_.arrivals(peer, lane_), calls_, what));
    }
    return absl::OkStatus();
  }

 private:
  Board board_;
  Exchange& exchange_;
  int rank_, lane_;
  WaitTerms terms_;
  bool one_node_;
  unsigned calls_ = 0;
};

/// What MPI was started for, by us or by the user.
LibraryThreads ThreadsOfMpi() {
  int provided = MPI_THREAD_SINGLE;
  if (MPI_Query_thread(&provided) != MPI_SUCCESS) return LibraryThreads::kFirst;
  if (provided == MPI_THREAD_MULTIPLE) return LibraryThreads::kAny;
  return provided == MPI_THREAD_SERIALIZED ? LibraryThreads::kOneAtATime : LibraryThreads::kFirst;
}

absl::Status RunOnComms(MPI_Comm exchange_comm, const std::array<OwnComm, kLanes>& library_comms, double timeout_s,
                        bool pin, const std::function<absl::Status(Rank&)>& body) {
  int rank = 0, size = 1;
  RETURN_IF_MPI(Comm_rank, exchange_comm, &rank);
  RETURN_IF_MPI(Comm_size, exchange_comm, &size);
  auto exchange_here = std::make_unique<MpiExchange>(exchange_comm, rank, size, TermsFor(size, 1, timeout_s));
  MpiExchange& exchange = *exchange_here;
  ASSIGN_OR_RETURN(const Place place, FindPlace(library_comms[0].get(), exchange, rank));
  const int cores = static_cast<int>(place.cores.size()), nodes = place.node_count();
  const WaitTerms terms = TermsFor(place.local_size, cores, timeout_s);
  exchange.SetTerms(terms);

  auto sharing = std::make_unique<MpiSharing>(exchange, rank, place.nodes);
  // One board a node, in the memory of its lowest rank; the others' share is idle.
  ASSIGN_OR_RETURN(const std::vector<std::shared_ptr<Region>> boards, sharing->Share(Board::Bytes(size)));
  Board board(boards[place.node]->base(), size);
  exchange.Watch(board);
  std::array<std::unique_ptr<Communicator>, kLanes> libraries;
  for (int lane = 0; lane < kLanes; ++lane) {
    ASSIGN_OR_RETURN(std::unique_ptr<MpiOps> ops, MpiOps::Create());
    libraries[lane] = std::make_unique<MpiCommunicator>(library_comms[lane].get(), rank, size, std::move(ops),
                                                        Gate(board, exchange, rank, lane, terms, nodes == 1),
                                                        kElementsACall);
  }
  const std::vector<int> before = AllowedCores();
  if (pin) RunOn({place.core});
  absl::Status status;
  {
    HostRank endpoint({.rank = rank,
                       .size = size,
                       .local_rank = place.local_rank,
                       .topology = {.device = CpuName(),
                                    .library = LibraryName(),
                                    .nodes = nodes,
                                    .ranks_per_node = place.local_size,
                                    .cores = cores},
                       .cores = place.cores,
                       .pin = pin,
                       .timeout_s = timeout_s,
                       .exchange = std::move(exchange_here),
                       .libraries = std::move(libraries),
                       .library_threads = ThreadsOfMpi(),
                       .sharing = std::move(sharing),
                       .board = board});
    status = body(endpoint);
  }
  if (pin) RunOn(before);
  if (status.ok()) {
    board.Finish(rank);
  } else {
    board.Leave(rank, status);
  }
  return status;
}

}  // namespace

absl::Status RunMpiWorld(double timeout_s, bool pin, const std::function<absl::Status(Rank&)>& body) {
  RETURN_IF_ERROR(BeginMpi(timeout_s));
  ASSIGN_OR_RETURN(OwnComm exchange, OwnComm::Dup());
  std::array<OwnComm, kLanes> libraries;
  for (OwnComm& library : libraries) {
    ASSIGN_OR_RETURN(library, OwnComm::Dup());
  }
  RETURN_IF_ERROR(RunOnComms(exchange.get(), libraries, timeout_s, pin, body));
  for (OwnComm& library : libraries) library.Free();
  exchange.Free();
  return absl::OkStatus();
}

}  // namespace coconet
