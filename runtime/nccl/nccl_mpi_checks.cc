// One rank of the test of NCCL's collectives between MPI processes, over a fake driver and a fake
// NCCL. nccl_mpi_test starts it through mpirun with the name of a check, the numbers of stages and
// of nodes (0: one per machine), and a folder in which the processes meet.

#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "runtime/cuda/cuda_world_over.h"
#include "runtime/cuda/testing/host_driver.h"
#include "runtime/mpi/mpi_world.h"
#include "runtime/nccl/nccl_library.h"
#include "runtime/nccl/testing/host_nccl.h"
#include "runtime/nccl/testing/library_sum.h"
#include "runtime/testing/checks.h"
#include "runtime/testing/lane_checks.h"
#include "runtime/testing/mpirun.h"

namespace coconet {
namespace {

absl::Status CheckUsed(const Rank& rank) {
  const Topology& topology = rank.topology();
  return topology.staged ? absl::NotFoundError(absl::StrCat(topology.library, "; ", topology.note))
                         : absl::OkStatus();
}

absl::Status CheckAll(Rank& rank) {
  RETURN_IF_ERROR(CheckUsed(rank));
  const int before = NcclCollectives();
  RETURN_IF_ERROR(CheckCollectiveSteps(rank));
  RETURN_IF_ERROR(CheckPlans(rank));
  RETURN_IF_ERROR(CheckOrderOfLanes(rank));
  return rank.size() == 1 || NcclCollectives() > before
             ? absl::OkStatus()
             : absl::InternalError("no collective was NCCL's");
}

/// The last rank leaves by `leave` while the others are in a collective.
template <class Leave>
absl::Status LoseOne(Rank& rank, Leave leave) {
  RETURN_IF_ERROR(CheckUsed(rank));
  ASSIGN_OR_RETURN(const BoundSum bound, BindLibrarySum(rank, 0, 0));
  for (int step = 0; step < 3; ++step) RETURN_IF_ERROR(bound.plan->Run());
  if (rank.rank() == rank.size() - 1) return leave();
  return bound.plan->Run();
}

absl::Status Die(Rank& rank) {
  return LoseOne(rank, [] {
    raise(SIGKILL);
    return absl::OkStatus();
  });
}

absl::Status Leave(Rank& rank) {
  return LoseOne(rank, [] { return absl::DataLossError("bad page"); });
}

/// One call fails in one process when the world begins: all ranks do without NCCL.
absl::Status SayWithout(Rank& rank) {
  RETURN_IF_ERROR(CheckCollectiveSteps(rank));
  return absl::NotFoundError(absl::StrCat(rank.topology().library, "; ", rank.topology().note));
}

absl::Status CheckMemoryByWindows(Rank& rank) {
  if (!absl::StrContains(rank.topology().note, "memory by windows of nccl"))
    return absl::NotFoundError(rank.topology().note);
  RETURN_IF_ERROR(CheckMemory(rank));
  RETURN_IF_ERROR(CheckPlans(rank));
  return CheckCollectiveSteps(rank);
}

constexpr struct {
  const char* name;
  absl::Status (*body)(Rank&);
} kChecks[] = {{"all", CheckAll},
               {"die", Die},
               {"leave", Leave},
               {"without", SayWithout},
               {"windows", CheckMemoryByWindows}};

int Run(const char* name, const WorldShape& shape, const std::string& folder) {
  SetHostDevices({.count = 8, .opens_memory = std::strcmp(name, "windows") != 0});
  MeetInFolderFromNowOn(folder);
  if (std::strcmp(name, "without") == 0)
    SetNcclFaults({.failing_call = 2});  // in each process; the first failing rank is named
  const auto open = [](const StreamLibraryTerms& terms) {
    return OpenNcclLibrariesOver(&HostNccl(), terms);
  };
  for (const auto& check : kChecks) {
    if (std::strcmp(check.name, name) != 0) continue;
    const auto body = [&](Rank& rank) { return SayOutcome(rank, check.body(rank)); };
    const absl::Status status = RunOnMpi(
        {.shape = shape},
        LaunchedCudaRanksOver(
            {.driver = HostDriver(), .open_libraries = open, .control = ControlOfHostKernels()}),
        body);
    if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return status.ok() ? 0 : 1;
  }
  std::fprintf(stderr, "no check \"%s\"\n", name);
  return 2;
}

}  // namespace
}  // namespace coconet

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  return coconet::Run(argv[1], {.stages = std::atoi(argv[2]), .nodes = std::atoi(argv[3])},
                      argv[4]);
}
