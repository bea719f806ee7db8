#include "runtime/mpi/mpi_world.h"

#include <mpi.h>

#include <algorithm>
#include <cstdlib>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "coconet/base/status.h"
#include "runtime/host/cpu.h"
#include "runtime/host/host_rank.h"
#include "runtime/mpi/mpi_communicator.h"
#include "runtime/mpi/mpi_exchange.h"
#include "runtime/mpi/mpi_sharing.h"
#include "runtime/mpi/mpi_status.h"

namespace coconet {
namespace {

constexpr int64_t kElementsACall = int64_t{1} << 30;  // MPI counts with ints

/// MPI can be initialised once a process, so it stays up between worlds, and ends with the process.
struct Life {
  MPI_Comm closing = MPI_COMM_NULL;
  double timeout_s = 0;

  static Life& Get() {
    static Life life;
    return life;
  }

  absl::Status Begin(double timeout) {
    timeout_s = timeout;
    int initialized = 0, finalized = 0, provided = 0;
    RETURN_IF_MPI(Initialized, &initialized);
    RETURN_IF_MPI(Finalized, &finalized);
    if (finalized) return absl::FailedPreconditionError("RunWorld: MPI was finalized already; it starts once a process");
    if (initialized) return absl::OkStatus();
    RETURN_IF_MPI(Init_thread, nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
    RETURN_IF_MPI(Comm_dup, MPI_COMM_WORLD, &closing);
    RETURN_IF_MPI(Comm_set_errhandler, closing, MPI_ERRORS_RETURN);
    std::atexit([] { Get().End(); });
    return absl::OkStatus();
  }

  /// MPI_Finalize would wait for ever for a rank that died. Then this process ends without, and the launcher says so.
  void End() {
    int finalized = 0, all_came = 0;
    if (MPI_Finalized(&finalized) != MPI_SUCCESS || finalized) return;
    MPI_Request request;
    if (MPI_Ibarrier(closing, &request) != MPI_SUCCESS) return;
    const WaitTerms terms{.spins = 0, .timeout_ns = static_cast<int64_t>(timeout_s * 1e9)};
    const WaitEnd end = WaitUntil(
        terms, [&] { return MPI_Test(&request, &all_came, MPI_STATUS_IGNORE) != MPI_SUCCESS || all_came; },
        [] { return false; });
    if (end == WaitEnd::kReady && all_came) MPI_Finalize();
  }
};

/// The ranks, as MPI and the system place them.
struct Place {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  std::vector<int> nodes = {};  // by rank: the lowest rank on its node
  std::vector<int> cores = {};  // that the ranks of this node may run on; the first ones are those ranks' own
  int core = 0;                 // this rank's own

  int local_size() const { return static_cast<int>(absl::c_count(nodes, nodes[rank])); }
  int node_count() const {
    int count = 0;
    for (int r = 0; r < size; ++r) count += nodes[r] == r;
    return count;
  }
};

absl::StatusOr<int> LowestRankOnNode(MPI_Comm comm, int rank) {
  MPI_Comm node;
  RETURN_IF_MPI(Comm_split_type, comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
  int lowest = rank;
  const absl::Status status = ToStatus(MPI_Bcast(&lowest, 1, MPI_INT, 0, node), "MPI_Bcast");
  MPI_Comm_free(&node);
  RETURN_IF_ERROR(status);
  return lowest;
}

/// Gives each rank of a node, in order, the core that fewest before it have: launchers may have confined each to a core of
/// its own, or none at all. `masks`: by local rank. Returns a core a rank.
std::vector<int> OwnCores(const std::vector<std::vector<int>>& masks) {
  std::vector<int> own;
  for (const std::vector<int>& mask : masks) {
    own.push_back(*std::min_element(mask.begin(), mask.end(), [&](int a, int b) {
      return std::pair(absl::c_count(own, a), a) < std::pair(absl::c_count(own, b), b);
    }));
  }
  return own;
}

std::vector<int> CoresOfNode(const std::vector<std::vector<int>>& masks, const std::vector<int>& own) {
  std::vector<int> cores;
  const auto add = [&](int core) {
    if (!absl::c_linear_search(cores, core)) cores.push_back(core);
  };
  absl::c_for_each(own, add);
  for (const std::vector<int>& mask : masks) absl::c_for_each(mask, add);
  return cores;
}

absl::StatusOr<Place> FindPlace(MPI_Comm comm, Exchange& exchange, int rank, int size) {
  Place place{.rank = rank, .size = size};
  ASSIGN_OR_RETURN(const int node, LowestRankOnNode(comm, rank));
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   exchange.AllGather(absl::StrCat(node, ":", absl::StrJoin(AllowedCores(), ","))));
  std::vector<std::vector<int>> masks;
  for (int r = 0; r < size; ++r) {
    const std::pair<std::string, std::string> fields = absl::StrSplit(all[r], ':');
    int theirs = 0;
    CC_CHECK(absl::SimpleAtoi(fields.first, &theirs));
    place.nodes.push_back(theirs);
    if (theirs != node) continue;
    if (r == rank) place.local_rank = static_cast<int>(masks.size());
    masks.emplace_back();
    for (absl::string_view number : absl::StrSplit(fields.second, ',')) {
      masks.back().emplace_back();
      CC_CHECK(absl::SimpleAtoi(number, &masks.back().back()));
    }
  }
  const std::vector<int> own = OwnCores(masks);
  place.core = own[place.local_rank];
  place.cores = CoresOfNode(masks, own);
  return place;
}

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

absl::Status RunOnComms(MPI_Comm exchange_comm, MPI_Comm library_comm, double timeout_s, bool pin,
                        const std::function<absl::Status(Rank&)>& body) {
  int rank = 0, size = 1;
  RETURN_IF_MPI(Comm_rank, exchange_comm, &rank);
  RETURN_IF_MPI(Comm_size, exchange_comm, &size);
  auto exchange_here = std::make_unique<MpiExchange>(exchange_comm, rank, size, TermsFor(size, 1, timeout_s));
  MpiExchange& exchange = *exchange_here;
  ASSIGN_OR_RETURN(const Place place, FindPlace(library_comm, exchange, rank, size));
  const int cores = static_cast<int>(place.cores.size());
  const WaitTerms terms = TermsFor(place.local_size(), cores, timeout_s);
  exchange.SetTerms(terms);

  auto sharing = std::make_unique<MpiSharing>(exchange, rank, place.nodes);
  // One board a node, in the memory of its lowest rank; the others' share is idle.
  ASSIGN_OR_RETURN(const std::vector<std::shared_ptr<Region>> boards, sharing->Share(Board::Bytes(size)));
  Board board(boards[place.nodes[rank]]->base(), size);
  exchange.Watch(board);
  auto gate = [=, &exchange, arrivals = 0u](absl::string_view what) mutable -> absl::Status {
    if (place.node_count() > 1) return exchange.Barrier();
    RETURN_IF_ERROR(CheckAllHere(board, rank, what));
    board.arrivals(rank).store(++arrivals, std::memory_order_release);
    for (int peer = 0; peer < size; ++peer) {
      RETURN_IF_ERROR(AwaitPeer(board, terms, rank, peer, board.arrivals(peer), arrivals, what));
    }
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(std::unique_ptr<MpiOps> ops, MpiOps::Create());
  const std::vector<int> before = AllowedCores();
  if (pin) RunOn({place.core});
  absl::Status status;
  {
    HostRank endpoint({.rank = rank,
                       .size = size,
                       .local_rank = place.local_rank,
                       .topology = {.device = CpuName(),
                                    .library = LibraryName(),
                                    .nodes = place.node_count(),
                                    .ranks_per_node = place.local_size(),
                                    .cores = cores},
                       .cores = place.cores,
                       .pin = pin,
                       .timeout_s = timeout_s,
                       .exchange = std::move(exchange_here),
                       .library = std::make_unique<MpiCommunicator>(library_comm, rank, size, std::move(ops),
                                                                    std::move(gate), kElementsACall),
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
  RETURN_IF_ERROR(Life::Get().Begin(timeout_s));
  ASSIGN_OR_RETURN(OwnComm exchange, OwnComm::Dup());
  ASSIGN_OR_RETURN(OwnComm library, OwnComm::Dup());
  RETURN_IF_ERROR(RunOnComms(exchange.get(), library.get(), timeout_s, pin, body));
  library.Free();
  exchange.Free();
  return absl::OkStatus();
}

}  // namespace coconet
