// One rank of the test of GPUs of MPI processes, over the driver of tests: cuda_mpi_test starts it through mpirun, with the name of a check, and how many
// GPUs a process sees, stages and (0: as there are) nodes.

#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "runtime/cuda/cuda_world_over.h"
#include "runtime/cuda/testing/host_driver.h"
#include "runtime/testing/checks.h"
#include "runtime/testing/lane_checks.h"
#include "runtime/testing/mpirun.h"
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

absl::Status LeaveStep(Rank& rank) { return LeaveOthersInAStep(rank, absl::DataLossError("bad page")); }

absl::Status DieInStep(Rank& rank) {
  return RunSteps(rank, 100, [&](int step) {
    if (IsLast(rank) && step == 50) raise(SIGKILL);
  });
}

/// One of the last rank's calls fails while all share memory: its own, the export, or that of the first peer's.
template <int kCall>
absl::Status FailToShare(Rank& rank) {
  if (IsLast(rank)) FailCall(kCall, CUDA_ERROR_UNKNOWN);
  return rank.Allocate(100, true).status();
}

/// What the ranks that have one GPU are told.
absl::Status SayPlace(Rank& rank) {
  const Topology& topology = rank.topology();
  return absl::NotFoundError(absl::StrCat(topology.library, "; ", topology.ranks_per_gpu, " a GPU; ", topology.note));
}

constexpr struct {
  const char* name;
  absl::Status (*body)(Rank&);
} kChecks[] = {{"all", CheckAll}, {"leave-step", LeaveStep}, {"die-step", DieInStep}, {"place", SayPlace},
               {"fail-alloc", FailToShare<1>}, {"fail-export", FailToShare<4>}, {"fail-open", FailToShare<5>}};

absl::Status OneWorld(absl::Status (*check)(Rank&), const WorldShape& shape) {
  const auto body = [&](Rank& rank) { return SayOutcome(rank, check(rank)); };
  return RunCudaMpiWorldOver({.driver = HostDriver()}, ControlOfHostKernels(), shape, 60, true, body);
}

int Run(const char* name, int gpus, const WorldShape& shape) {
  SetHostDevices({.count = gpus});
  for (const auto& check : kChecks) {
    if (std::strcmp(check.name, name) != 0) continue;
    absl::Status status = OneWorld(check.body, shape);
    if (status.ok()) status = OneWorld(check.body, shape);  // a process may have several worlds
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
  return coconet::Run(argv[1], std::atoi(argv[2]), {.stages = std::atoi(argv[3]), .nodes = std::atoi(argv[4])});
}
