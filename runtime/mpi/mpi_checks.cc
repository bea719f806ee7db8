// One rank of the tests of MPI processes. mpi_test and the cluster's test start it through mpirun
// with the name of a check and, for worlds of several stages or nodes, the numbers of stages and of
// nodes (0: one per machine).

#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "runtime/join.h"
#include "runtime/testing/all_reduce_checks.h"
#include "runtime/testing/all_to_all_checks.h"
#include "runtime/testing/checks.h"
#include "runtime/testing/lane_checks.h"
#include "runtime/testing/mpirun.h"
#include "runtime/testing/send_checks.h"
#include "runtime/world.h"

namespace coconet {
namespace {

absl::Status CheckAll(Rank& rank) {
  RETURN_IF_ERROR(CheckExchange(rank));
  RETURN_IF_ERROR(CheckCollectives(rank));
  RETURN_IF_ERROR(CheckLargeCollectives(rank));
  RETURN_IF_ERROR(CheckCollectiveSteps(rank));
  RETURN_IF_ERROR(CheckAllToAlls(rank));
  RETURN_IF_ERROR(CheckAllReduces(rank));
  RETURN_IF_ERROR(CheckMemory(rank));
  RETURN_IF_ERROR(CheckPlans(rank));
  RETURN_IF_ERROR(CheckSendsInKernels(rank));
  RETURN_IF_ERROR(CheckMatrixProducts(rank));
  RETURN_IF_ERROR(CheckOrderOfLanes(rank));
  int threads = MPI_THREAD_SINGLE;
  MPI_Query_thread(&threads);
  // With less, plans with collectives on lane 1 are refused.
  if (threads == MPI_THREAD_MULTIPLE) RETURN_IF_ERROR(CheckStepsBesideOthers(rank));
  if (rank.size() == 1) return absl::OkStatus();
  RETURN_IF_ERROR(CheckBindErrors(rank));
  return CheckDeadline(rank, 0.2);
}

/// The mesh of a cluster of two nodes with two ranks each.
absl::Status CheckTwoNodes(Rank& rank) {
  const Mesh& mesh = rank.mesh();
  if (rank.topology().nodes == 2 && rank.topology().ranks_per_node == 2) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("have ", mesh.stages, " stages of ", mesh.nodes, " nodes of ", mesh.ranks));
}

constexpr unsigned kSleepSeconds = 4;  // the deadline is 1 s, and ranks may start a second apart

/// One element, to the previous pipeline stage.
const CollectiveStep kSendBack{
    .kind = CollectiveStep::Kind::kSend, .dtype = DType::kF32, .count = 1, .shift = -1};

bool IsLast(const Rank& rank) { return rank.rank() == rank.size() - 1; }

/// The last rank returns an error while the others wait for it in the exchange.
absl::Status LeaveExchange(Rank& rank) {
  return IsLast(rank) ? absl::DataLossError("bad page") : rank.exchange().Barrier();
}

absl::Status LeaveLibrary(Rank& rank) {
  float x = 1;
  if (IsLast(rank)) return absl::DataLossError("bad page");
  return rank.library().AllReduce(&x, &x, 1, DType::kF32, ReduceKind::kSum);
}

/// The others' sends to and from the last rank fail.
absl::Status LeaveSend(Rank& rank) {
  float x = 1, y = 0;
  if (IsLast(rank)) return absl::DataLossError("bad page");
  while (true) RETURN_IF_ERROR(rank.library().Run(kSendBack, &x, &y));
}

absl::Status LeaveLanes(Rank& rank) {
  return LeaveOthersInBothLanes(rank, absl::DataLossError("bad page"));
}

absl::Status LeaveStep(Rank& rank) {
  return LeaveOthersInAStep(rank, absl::DataLossError("bad page"));
}

/// The last rank dies while the others wait for it.
absl::Status DieOutsideExchange(Rank& rank) {
  RETURN_IF_ERROR(rank.exchange().Barrier());
  if (IsLast(rank)) raise(SIGKILL);
  return rank.exchange().Barrier();
}

absl::Status DieOutsideLibrary(Rank& rank) {
  float x = 1;
  for (int i = 0; i < 10; ++i) {
    if (IsLast(rank) && i == 5) raise(SIGKILL);
    RETURN_IF_ERROR(rank.library().AllReduce(&x, &x, 1, DType::kF32, ReduceKind::kSum));
  }
  return absl::OkStatus();
}

/// The last rank dies inside a large collective, while all others are in it.
absl::Status DieInsideLibrary(Rank& rank) {
  std::vector<float> x(size_t{4} << 20), y(x.size());
  RETURN_IF_ERROR(rank.library().AllReduce(x.data(), y.data(), 1, DType::kF32, ReduceKind::kSum));
  if (IsLast(rank)) {
    std::thread([] {
      usleep(20000);
      raise(SIGKILL);
    }).detach();
  }
  while (true) {
    RETURN_IF_ERROR(rank.library().AllReduce(x.data(), y.data(), static_cast<int64_t>(x.size()),
                                             DType::kF32, ReduceKind::kSum));
  }
}

absl::Status DieOutsideSend(Rank& rank) {
  float x = 1, y = 0;
  RETURN_IF_ERROR(rank.exchange().Barrier());
  if (IsLast(rank)) raise(SIGKILL);
  while (true) RETURN_IF_ERROR(rank.library().Run(kSendBack, &x, &y));
}

absl::Status DieInStep(Rank& rank) {
  return RunSteps(rank, 100, [&](int i) {
    if (IsLast(rank) && i == 50) raise(SIGKILL);
  });
}

/// The last rank arrives long after the deadline.
absl::Status SleepOutsideExchange(Rank& rank) {
  if (IsLast(rank)) sleep(kSleepSeconds);
  return rank.exchange().Barrier();
}

absl::Status SleepOutsideLibrary(Rank& rank) {
  float x = 1;
  if (IsLast(rank)) sleep(kSleepSeconds);
  return rank.library().AllReduce(&x, &x, 1, DType::kF32, ReduceKind::kSum);
}

absl::Status SleepOutsideSend(Rank& rank) {
  float x = 1, y = 0;
  if (IsLast(rank)) sleep(kSleepSeconds);
  while (true) RETURN_IF_ERROR(rank.library().Run(kSendBack, &x, &y));
}

/// The last rank leaves, or dies, while kernels of the previous pipeline stage wait for it.
absl::Status LeaveSendStep(Rank& rank) {
  return RunSendSteps(rank, 100, 0, [&](int i) {
    return IsLast(rank) && i == 50 ? absl::DataLossError("bad page") : absl::OkStatus();
  });
}

absl::Status DieInSendStep(Rank& rank) {
  return RunSendSteps(rank, 100, 0, [&](int i) {
    if (IsLast(rank) && i == 50) raise(SIGKILL);
    return absl::OkStatus();
  });
}

/// Prints its process id and holds shared memory until it is killed.
absl::Status Hold(Rank& rank) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Memory> memory, rank.Allocate(int64_t{8} << 20, true));
  std::printf("holding %d\n", getpid());
  std::fflush(stdout);
  while (true) pause();
}

struct Check {
  const char* name;
  absl::Status (*body)(Rank&);
  double timeout_s;
};
constexpr Check kChecks[] = {
    {"all", CheckAll, 60},
    {"collectives", CheckCollectives, 60},
    {"all-collectives", CheckAllCollectives, 60},
    {"two-nodes", CheckTwoNodes, 60},
    {"lanes", CheckCollectivesOnBothLanes, 60},
    {"leave-exchange", LeaveExchange, 60},
    {"leave-library", LeaveLibrary, 60},
    {"leave-send", LeaveSend, 60},
    {"leave-step", LeaveStep, 60},
    {"leave-lanes", LeaveLanes, 60},
    {"leave-send-step", LeaveSendStep, 60},
    {"die-exchange", DieOutsideExchange, 60},
    {"die-library", DieOutsideLibrary, 60},
    {"die-in-library", DieInsideLibrary, 60},
    {"die-send", DieOutsideSend, 60},
    {"die-step", DieInStep, 60},
    {"die-send-step", DieInSendStep, 60},
    {"sleep-exchange", SleepOutsideExchange, 1},
    {"sleep-library", SleepOutsideLibrary, 1},
    {"sleep-send", SleepOutsideSend, 1},
    {"hold", Hold, 60},
};

/// With the prefix "own-" this program initialises and finalises MPI itself, as a
/// user's program may.
int Run(const char* name, int stages, int nodes) {
  constexpr char kOwn[] = "own-";
  const bool own = std::strncmp(name, kOwn, std::strlen(kOwn)) == 0;
  if (own) MPI_Init(nullptr, nullptr);
  const char* base = own ? name + std::strlen(kOwn) : name;
  for (const Check& check : kChecks) {
    if (std::strcmp(check.name, base) != 0) continue;
    const auto body = [&](Rank& rank) { return SayOutcome(rank, check.body(rank)); };
    const WorldOptions options{.stages = stages, .nodes = nodes, .timeout_s = check.timeout_s};
    absl::Status status = RunWorld(options, body);
    if (status.ok()) status = RunWorld(options, body);  // a second world in one process
    if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
    if (own) MPI_Finalize();
    return status.ok() ? 0 : 1;
  }
  std::fprintf(stderr, "no check \"%s\"\n", name);
  return 2;
}

absl::Status JoinAndRun(MPI_Comm comm, const WorldOptions& world, absl::Status (*check)(Rank&)) {
  ASSIGN_OR_RETURN(std::unique_ptr<Membership> member, Join({.world = world, .mpi_comm = &comm}));
  absl::Status status = SayOutcome(member->rank(), check(member->rank()));
  if (!status.ok()) member->Leave(status);
  return status;
}

absl::Status CheckJoined(Rank& rank) {
  for (absl::Status (*check)(Rank&) : {CheckExchange, CheckMemory, CheckPlans})
    RETURN_IF_ERROR(check(rank));
  return absl::OkStatus();
}

/// Joins worlds that the launcher knows nothing of: of all ranks in the opposite order, and of each
/// parity, with a world of all ranks beside it.
int RunJoined(int stages, int nodes) {
  int provided = 0, rank = 0, size = 1;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm reversed, parity;
  MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &reversed);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &parity);
  absl::Status status = JoinAndRun(
      reversed, {.stages = stages, .nodes = nodes, .timeout_s = 60, .pin = false}, CheckJoined);
  {
    const MPI_Comm world = MPI_COMM_WORLD;
    const absl::StatusOr<std::unique_ptr<Membership>> all =
        Join({.world = {.timeout_s = 60, .pin = false}, .mpi_comm = &world});
    status.Update(all.status());
    status.Update(JoinAndRun(parity, {.timeout_s = 60, .pin = false}, CheckJoined));
    if (all.ok()) status.Update((*all)->rank().exchange().Barrier());
  }
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  MPI_Comm_free(&parity);
  MPI_Comm_free(&reversed);
  MPI_Finalize();
  return status.ok() ? 0 : 1;
}

/// The last rank never joins.
int JoinWithoutTheLast() {
  int provided = 0, rank = 0, size = 1;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == size - 1) {
    sleep(kSleepSeconds);
  } else {
    const MPI_Comm world = MPI_COMM_WORLD;
    const absl::Status status =
        Join({.world = {.timeout_s = 0.5, .pin = false}, .mpi_comm = &world}).status();
    std::printf("%d: %s\n", rank, std::string(status.message()).c_str());
    std::fflush(stdout);
  }
  std::_Exit(0);
}

}  // namespace
}  // namespace coconet

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  if (std::strcmp(argv[1], "join") == 0)
    return coconet::RunJoined(argc > 2 ? std::atoi(argv[2]) : 1, argc > 3 ? std::atoi(argv[3]) : 0);
  if (std::strcmp(argv[1], "join-alone") == 0) return coconet::JoinWithoutTheLast();
  return coconet::Run(argv[1], argc > 2 ? std::atoi(argv[2]) : 1,
                      argc > 3 ? std::atoi(argv[3]) : 0);
}
