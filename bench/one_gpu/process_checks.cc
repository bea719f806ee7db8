#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "autotune/session/session.h"
#include "bench/one_gpu/checks.h"
#include "coconet/base/status.h"
#include "coconet/workloads/workloads.h"
#include "jit/compile/temp_dir.h"
#include "runtime/cuda/cuda_world_over.h"
#include "runtime/cuda/memory/handle_passing.h"
#include "runtime/cuda/memory/virtual_memory.h"
#include "runtime/nccl/nccl_library.h"
#include "runtime/nccl/testing/host_nccl.h"
#include "runtime/processes/out_of_band_transport.h"
#include "runtime/processes/process_world.h"
#include "runtime/testing/gatherer.h"

namespace coconet::bench {
namespace {

constexpr int kRanks = 2;
constexpr double kDeadlineSeconds = 30;

/// NCCL sees processes of one GPU as ranks of different machines.
void SetNcclHost(int rank) {
  setenv("NCCL_HOSTID", absl::StrCat("coconet-check-", rank).c_str(), 1);
  setenv("NCCL_IB_DISABLE", "1", 1);
  setenv("NCCL_SOCKET_IFNAME", "lo", 1);
}

/// Runs `body` as a rank that joins the others out of band.
absl::Status Join(const CudaLibraries& libraries, Gatherer& gatherer, const RankBody& body) {
  ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport, OutOfBandTransport::Over(gatherer.way()));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<ProcessWorld> world,
      ProcessWorld::Join(std::move(transport), {.timeout_s = kDeadlineSeconds, .pin = false},
                         LaunchedCudaRanksOver(libraries)));
  const absl::Status status = body(world->rank());
  if (!status.ok()) world->Leave(status);
  return status;
}

/// The statuses of processes, each a rank that runs `body`.
std::vector<std::string> OnProcesses(const CudaLibraries& libraries, const RankBody& body) {
  return GatherOnProcesses(kRanks, [&](Gatherer& gatherer, int rank) {
    SetNcclHost(rank);
    return Join(libraries, gatherer, body);
  });
}

/// The statuses of all processes, of which each must be OK.
absl::Status AllOk(const std::vector<std::string>& statuses) {
  for (size_t rank = 0; rank < statuses.size(); ++rank) {
    if (statuses[rank] != "OK")
      return absl::InternalError(absl::StrCat("process ", rank, ": ", statuses[rank]));
  }
  return absl::OkStatus();
}

/// Compiles, verifies against the interpreter and times one variant of Adam.
absl::Status VerifyAdam(Rank& rank, const Choice& choice) {
  ASSIGN_OR_RETURN(const Graph program, MakeWorkload("adam"));
  SessionOptions options;
  options.cache_file = ":none:";
  options.budget_s = 15;
  options.optimize = Optimize::kFast;
  options.choice = choice;
  Session session(rank, options);
  return session.Compile(program, {{"N", 1003}}).status();
}

/// All ranks see what each wrote into the others' memory.
absl::Status ShareByFiles(const DriverApi& driver, Rank& rank) {
  constexpr int64_t kBytes = int64_t{4} << 20;  // a multiple of all granularities
  ASSIGN_OR_RETURN(const std::shared_ptr<Device> device, Device::Open(driver, 0));
  ASSIGN_OR_RETURN(const InContext in, device->Enter());
  FileHandlePassing passing(driver, rank.exchange(), rank.rank(), kDeadlineSeconds / 2);
  absl::StatusOr<std::shared_ptr<MemoryHandle>> mine =
      MemoryHandle::OfMemory(*device, kBytes, passing.exported());
  RETURN_IF_ERROR(rank.exchange().Agree(mine.status()));
  absl::StatusOr<MemoryHandles> handles =
      passing.Pass(GroupOf(rank.mesh(), Group::kStage, rank.rank()), *mine);
  RETURN_IF_ERROR(rank.exchange().Agree(handles.status()));
  std::vector<std::shared_ptr<Allocation>> mapped;
  for (const std::shared_ptr<MemoryHandle>& handle : *handles) {
    absl::StatusOr<std::shared_ptr<Allocation>> one = Map(device, handle, kBytes);
    RETURN_IF_ERROR(rank.exchange().Agree(one.status()));
    mapped.push_back(*std::move(one));
  }
  const auto word = [](int from, int to) { return 1000 * (from + 1) + to; };
  for (int to = 0; to < rank.size(); ++to) {
    const int value = word(rank.rank(), to);
    RETURN_IF_ERROR(Copy(*device, nullptr, &value, sizeof value,
                         static_cast<char*>(mapped[to]->address()) + sizeof value * rank.rank()));
  }
  RETURN_IF_ERROR(rank.exchange().Barrier());
  std::vector<int> seen(rank.size());
  RETURN_IF_ERROR(Copy(*device, nullptr, mapped[rank.rank()]->address(),
                       static_cast<int64_t>(seen.size() * sizeof(int)), seen.data()));
  absl::Status status;
  for (int from = 0; from < rank.size(); ++from) {
    if (seen[from] != word(from, rank.rank()))
      status = absl::InternalError(absl::StrCat("want ", word(from, rank.rank()), " from rank ",
                                                from, ", have ", seen[from]));
  }
  return rank.exchange().Agree(status);
}

/// A rank whose peer leaves in the midst of a collective hears of it before its deadline.
absl::Status LeaveOneAlone(Rank& rank) {
  ASSIGN_OR_RETURN(const BoundVariant bound, BindAdam(rank, {"AR; fuse(C)", "library"}, 0));
  RETURN_IF_ERROR(bound.plan->Run());
  RETURN_IF_ERROR(rank.exchange().Barrier());  // else a peer hears of it while it is in this run
  if (rank.rank() == rank.size() - 1) return absl::CancelledError("leaves on purpose");
  const absl::Status left = bound.plan->Run();
  if (absl::IsAborted(left)) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("want Aborted where a peer has left, have ", left.ToString()));
}

}  // namespace

absl::StatusOr<std::string> CheckIpc(const OneGpu& gpu) {
  RETURN_IF_ERROR(AllOk(OnProcesses(gpu.libraries, [](Rank& rank) {
    return VerifyAdam(rank, {"fuse(RS, C, AG); slice m v", "generated vec=4"});
  })));
  return std::string("2 processes, Adam in one kernel verified against the interpreter");
}

absl::StatusOr<std::string> CheckFileHandles(const OneGpu& gpu) {
  RETURN_IF_ERROR(AllOk(OnProcesses(
      gpu.libraries, [&](Rank& rank) { return ShareByFiles(gpu.libraries.driver, rank); })));
  return std::string("2 processes wrote and read each other's memory");
}

absl::StatusOr<std::string> CheckNcclOfTwo(const OneGpu& gpu) {
  RETURN_IF_ERROR(gpu.nccl.status());
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> folder, TempDir::Make());
  if (gpu.fake) MeetInFolderFromNowOn(folder->path());
  CudaLibraries libraries = gpu.libraries;
  libraries.on_shared_gpus = true;
  libraries.open_libraries = [nccl = *gpu.nccl](const StreamLibraryTerms& terms) {
    return OpenNcclLibrariesOver(nccl, terms);
  };
  std::vector<std::string> statuses = OnProcesses(libraries, [](Rank& rank) -> absl::Status {
    if (!absl::StartsWith(rank.topology().library, "nccl "))
      return absl::InternalError(absl::StrCat("not by NCCL: ", rank.topology().note));
    RETURN_IF_ERROR(VerifyAdam(rank, {"AR; fuse(C)", "library"}));
    return LeaveOneAlone(rank);
  });
  if (absl::StrContains(statuses.back(), "leaves on purpose")) statuses.pop_back();
  RETURN_IF_ERROR(AllOk(statuses));
  return absl::StrCat("nccl ", (*gpu.nccl)->version,
                      ": an AllReduce verified; a rank that is left alone hears of it");
}

}  // namespace coconet::bench
