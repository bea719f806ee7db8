#include "runtime/mpi/mpi_place.h"

#include <unistd.h>

#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "coconet/base/status.h"
#include "runtime/mpi/collectives/mpi_status.h"
#include "runtime/node/cpu.h"

namespace coconet {
namespace {

absl::StatusOr<int> LowestRankOnMachine(MPI_Comm comm, int rank) {
  MPI_Comm node;
  RETURN_IF_MPI(Comm_split_type, comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
  int lowest = rank;
  const absl::Status status = ToStatus(MPI_Bcast(&lowest, 1, MPI_INT, 0, node), "MPI_Bcast");
  MPI_Comm_free(&node);
  RETURN_IF_ERROR(status);
  return lowest;
}

std::vector<int> ParseNumbers(absl::string_view text) {
  std::vector<int> numbers;
  for (absl::string_view word : absl::StrSplit(text, ',')) {
    numbers.push_back(0);
    CC_CHECK(absl::SimpleAtoi(word, &numbers.back()));
  }
  return numbers;
}

}  // namespace

absl::StatusOr<Place> FindPlace(MPI_Comm comm, Exchange& exchange, int rank) {
  Place place;
  ASSIGN_OR_RETURN(const int machine, LowestRankOnMachine(comm, rank));
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   exchange.AllGather(absl::StrCat(machine, ",", getpid(), ":",
                                                   absl::StrJoin(AllowedCores(), ","))));
  std::vector<std::vector<int>> masks;
  for (size_t peer = 0; peer < all.size(); ++peer) {
    const std::pair<std::string, std::string> fields = absl::StrSplit(all[peer], ':');
    const std::vector<int> who = ParseNumbers(fields.first);
    place.machines.push_back(who[0]);
    place.pids.push_back(who[0] == machine && static_cast<int>(peer) != rank ? who[1] : 0);
    if (who[0] != machine) continue;
    if (static_cast<int>(peer) == rank) place.local_rank = static_cast<int>(masks.size());
    masks.push_back(ParseNumbers(fields.second));
  }
  place.local_size = static_cast<int>(masks.size());
  const std::vector<int> own = OwnCores(masks);
  place.core = own[place.local_rank];
  place.cores = CoresOfNode(masks, own);
  return place;
}

std::vector<int> OwnCores(const std::vector<std::vector<int>>& masks) {
  std::vector<int> own;
  for (const std::vector<int>& mask : masks) {
    own.push_back(*absl::c_min_element(mask, [&](int a, int b) {
      return std::pair(absl::c_count(own, a), a) < std::pair(absl::c_count(own, b), b);
    }));
  }
  return own;
}

std::vector<int> CoresOfNode(const std::vector<std::vector<int>>& masks,
                             const std::vector<int>& own) {
  std::vector<int> cores;
  const auto add = [&](int core) {
    if (!absl::c_linear_search(cores, core)) cores.push_back(core);
  };
  absl::c_for_each(own, add);
  for (const std::vector<int>& mask : masks) absl::c_for_each(mask, add);
  return cores;
}

}  // namespace coconet
