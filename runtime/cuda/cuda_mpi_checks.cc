// One rank of the test of GPU worlds of MPI processes, over a fake driver. cuda_mpi_test starts it
// through mpirun with the name of a check, the number of GPUs that a process sees, the numbers of
// stages and of nodes (0: one per machine), and the kind of link between the GPUs.

#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "runtime/cuda/cuda_world_over.h"
#include "runtime/cuda/testing/host_driver.h"
#include "runtime/cuda/testing/host_virtual.h"
#include "runtime/mpi/mpi_world.h"
#include "runtime/testing/checks.h"
#include "runtime/testing/lane_checks.h"
#include "runtime/testing/mpirun.h"
#include "runtime/testing/multicast_checks.h"
#include "runtime/testing/send_checks.h"

namespace coconet {
namespace {

absl::Status CheckAll(Rank& rank) {
  RETURN_IF_ERROR(CheckExchange(rank));
  RETURN_IF_ERROR(CheckCollectiveSteps(rank));
  RETURN_IF_ERROR(CheckMemory(rank));
  RETURN_IF_ERROR(CheckPlans(rank));
  RETURN_IF_ERROR(CheckSendsInKernels(rank));
  RETURN_IF_ERROR(CheckOrderOfLanes(rank));
  if (rank.size() == 1) return absl::OkStatus();
  RETURN_IF_ERROR(CheckBindErrors(rank));
  return CheckDeadline(rank, 0.2);
}

bool IsLast(const Rank& rank) { return rank.rank() == rank.size() - 1; }

absl::Status LeaveStep(Rank& rank) {
  return LeaveOthersInAStep(rank, absl::DataLossError("bad page"));
}

absl::Status DieInStep(Rank& rank) {
  return RunSteps(rank, 100, [&](int step) {
    if (IsLast(rank) && step == 50) raise(SIGKILL);
  });
}

/// One call of the last rank fails while all ranks share memory: the allocation, the export, or the
/// import of the first peer's memory.
template <int kCall>
absl::Status FailToShare(Rank& rank) {
  if (IsLast(rank)) FailCall(kCall, CUDA_ERROR_UNKNOWN);
  return rank.Allocate(100, true).status();
}

/// Memory of a GPU that the driver has allocated for a caller.
class Block {
 public:
  explicit Block(size_t bytes) { HostDriver().MemAlloc(&base_, bytes); }
  ~Block() { HostDriver().MemFree(base_); }
  char* At(int64_t offset) const { return reinterpret_cast<char*>(base_) + offset; }

 private:
  CUdeviceptr base_ = 0;
};

/// Peers read and write memory that a caller has, inside a block; where one rank's cannot be
/// shared, no rank's is.
absl::Status CheckAdopted(Rank& rank) {
  constexpr int64_t kBlock = int64_t{2} << 20;
  const int64_t offset = 64 * (1 + rank.rank()), bytes = 1000 + rank.rank();
  const Block block(2 * kBlock), small(4096);
  const Members node = SharingMemory(rank.mesh(), rank.rank());
  ASSIGN_OR_RETURN(const std::unique_ptr<Memory> memory,
                   rank.Adopt(block.At(offset), bytes, /*symmetric=*/true));
  if (memory->own() != block.At(offset) || memory->bytes() != bytes || !memory->symmetric())
    return absl::InternalError("not the caller's memory");
  block.At(offset)[0] = static_cast<char>('a' + rank.rank());
  RETURN_IF_ERROR(rank.exchange().Barrier());
  for (int i = 0; i < node.size; ++i) {
    auto* theirs = static_cast<char*>(memory->peer(node.Rank(i)));
    if (theirs[0] != 'a' + node.Rank(i))
      return absl::InternalError(absl::StrCat("not the memory of rank ", node.Rank(i)));
    theirs[1 + rank.rank()] = static_cast<char>('A' + rank.rank());
  }
  RETURN_IF_ERROR(rank.exchange().Barrier());
  for (int i = 0; i < node.size; ++i) {
    if (block.At(offset)[1 + node.Rank(i)] != 'A' + node.Rank(i))
      return absl::InternalError(absl::StrCat("rank ", node.Rank(i), " did not write"));
  }
  if (rank.size() == 1) return absl::OkStatus();
  const absl::Status none =
      rank.Adopt(IsLast(rank) ? small.At(0) : block.At(0), 64, /*symmetric=*/true).status();
  if (!absl::IsUnimplemented(none) ||
      !absl::StrContains(none.message(),
                         absl::StrCat("rank ", rank.size() - 1, ": peers reach it")))
    return absl::InternalError(absl::StrCat("want Unimplemented, have ", none.ToString()));
  return absl::OkStatus();
}

absl::Status CheckAllWithMulticast(Rank& rank) {
  if (!rank.topology().multicast)
    return absl::NotFoundError(absl::StrCat("no multicast; ", rank.topology().note));
  RETURN_IF_ERROR(CheckMulticast(rank));
  RETURN_IF_ERROR(CheckMemory(rank));
  RETURN_IF_ERROR(CheckPlans(rank));
  return SeeHostVirtual().wrong == 0 ? absl::OkStatus()
                                     : absl::InternalError("taken down in a wrong order");
}

/// Each call of the last rank that multicast memory needs fails in turn: then no rank has multicast
/// memory, and every note says why.
absl::Status FailMulticast(Rank& rank) {
  std::set<std::string> calls;
  for (int call = 1, again = 1; again > 0; ++call) {
    if (IsLast(rank)) FailCall(call, CUDA_ERROR_UNKNOWN);
    ASSIGN_OR_RETURN(const std::unique_ptr<Memory> memory, rank.Allocate(100, true));
    const std::string failed = FailedCall();
    FailCall(0, CUDA_SUCCESS);
    ASSIGN_OR_RETURN(const std::vector<std::string> all, rank.exchange().AllGather(failed));
    again = all.back().empty() ? 0 : 1;
    const bool told = absl::StrContains(
        rank.topology().note,
        absl::StrCat("memory without multicast: rank ", rank.size() - 1, ": ", all.back()));
    if (memory->multicast() != nullptr && again == 1)
      return absl::InternalError(absl::StrCat("an address, though there is no ", all.back()));
    if (again == 1 && !told)
      return absl::InternalError(absl::StrCat(all.back(), " is not in: ", rank.topology().note));
    calls.insert(all.back());
  }
  for (const char* want :
       {"cuMemExportToShareableHandle", "cuMemImportFromShareableHandle", "cuMulticastBindMem"}) {
    if (calls.count(want) == 0) return absl::InternalError(absl::StrCat(want, " did not fail"));
  }
  return CheckAllWithMulticast(rank);
}

/// Prints the topology of ranks that share one GPU.
absl::Status SayPlace(Rank& rank) {
  const Topology& topology = rank.topology();
  return absl::NotFoundError(
      absl::StrCat(topology.library, "; ", topology.ranks_per_gpu, " per GPU; ", topology.note));
}

constexpr struct {
  const char* name;
  absl::Status (*body)(Rank&);
} kChecks[] = {{"all", CheckAll},
               {"leave-step", LeaveStep},
               {"die-step", DieInStep},
               {"adopted", CheckAdopted},
               {"place", SayPlace},
               {"multicast", CheckAllWithMulticast},
               {"fail-multicast", FailMulticast},
               {"fail-alloc", FailToShare<1>},
               {"fail-export", FailToShare<4>},
               {"fail-open", FailToShare<5>}};

absl::Status OneWorld(absl::Status (*check)(Rank&), const WorldShape& shape) {
  const auto body = [&](Rank& rank) { return SayOutcome(rank, check(rank)); };
  return RunOnMpi(
      {.shape = shape},
      LaunchedCudaRanksOver({.driver = HostDriver(), .control = ControlOfHostKernels()}), body);
}

/// `switched`: how the GPUs are connected. "no": without a switch. Else with one, where memory
/// handles pass between processes as "files", as "fabric" handles, or not at all: "alone".
int Run(const char* name, int gpus, const WorldShape& shape, const std::string& switched) {
  SetHostDevices({.count = gpus,
                  .multicast = switched != "no",
                  .files_pass = switched == "files",
                  .fabric = switched == "fabric"});
  for (const auto& check : kChecks) {
    if (std::strcmp(check.name, name) != 0) continue;
    absl::Status status = OneWorld(check.body, shape);
    if (status.ok()) status = OneWorld(check.body, shape);  // a second world in one process
    if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return status.ok() ? 0 : 1;
  }
  std::fprintf(stderr, "no check \"%s\"\n", name);
  return 2;
}

}  // namespace
}  // namespace coconet

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  return coconet::Run(argv[1], std::atoi(argv[2]),
                      {.stages = std::atoi(argv[3]), .nodes = std::atoi(argv[4])}, argv[5]);
}
