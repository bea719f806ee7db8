#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "autotune/measure/arena.h"
#include "autotune/runner/binaries.h"
#include "autotune/runner/rank_runner.h"
#include "bench/harness/rounds.h"
#include "bench/harness/workload.h"
#include "bench/one_gpu/checks.h"
#include "bench/probe/probe_program.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"
#include "runtime/cuda/cuda_world_over.h"
#include "runtime/cuda/driver/device.h"
#include "runtime/cuda/memory/allocation.h"
#include "runtime/cuda/memory/virtual_memory.h"
#include "runtime/cuda/testing/host_driver.h"

namespace coconet::bench {
namespace {

constexpr int64_t kPage = int64_t{2} << 20;
constexpr int64_t kElements = 1003;

/// Memory of which a kernel finds nothing at its address.
class NoMemory final : public Memory {
 public:
  explicit NoMemory(const Memory& like)
      : Memory(like.rank(), like.bytes(), like.symmetric(), Nowhere(like), like.space()) {}

 private:
  static std::vector<void*> Nowhere(const Memory& like) {
    return std::vector<void*>(static_cast<size_t>(like.rank()) + 1,
                              reinterpret_cast<void*>(uintptr_t{1} << 46));
  }
};

/// Waits for what a nonblocking communicator does.
absl::Status Settle(const NcclApi& nccl, ncclComm_t comm) {
  const double end_s = SecondsNow() + 30;
  while (true) {
    ncclResult_t state = ncclSuccess;
    RETURN_IF_ERROR(ToStatus(nccl, nccl.CommGetAsyncError(comm, &state), "ncclCommGetAsyncError"));
    if (state != ncclInProgress) return ToStatus(nccl, state, "ncclCommGetAsyncError");
    if (SecondsNow() > end_s)
      return absl::DeadlineExceededError("NCCL: a communicator is in progress after 30 s");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// A sum over one rank leaves what there was.
absl::Status SumAlone(const NcclApi& nccl, const std::shared_ptr<Device>& device, ncclComm_t comm) {
  constexpr int kCount = 1000;
  std::vector<float> values(kCount, 2.5f), sums(kCount);
  constexpr int64_t kBytes = kCount * sizeof(float);
  const DriverApi& driver = device->driver();
  CUstream stream = nullptr;
  RETURN_IF_CU(driver, StreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, 0);
  const absl::Cleanup destroy = [&] { driver.StreamDestroy(stream); };
  ASSIGN_OR_RETURN(const std::shared_ptr<Allocation> in, Allocation::Make(device, kBytes));
  ASSIGN_OR_RETURN(const std::shared_ptr<Allocation> out, Allocation::Make(device, kBytes));
  RETURN_IF_ERROR(Copy(*device, stream, values.data(), kBytes, in->address()));
  RETURN_IF_ERROR(
      ToStatusOfBegun(nccl,
                      nccl.AllReduce(in->address(), out->address(), kCount, ncclFloat32, ncclSum,
                                     comm, reinterpret_cast<cudaStream_t>(stream)),
                      "ncclAllReduce"));
  RETURN_IF_ERROR(Settle(nccl, comm));
  RETURN_IF_CU(driver, StreamSynchronize, stream);
  RETURN_IF_ERROR(Copy(*device, stream, out->address(), kBytes, sums.data()));
  return sums == values ? absl::OkStatus() : absl::InternalError("a sum over one rank is wrong");
}

absl::StatusOr<Variant> VariantNamed(Rank& rank, const Choice& choice) {
  ASSIGN_OR_RETURN(const Graph program, BoundWorkload("adam", DType::kF32, {{"N", kElements}}));
  ASSIGN_OR_RETURN(const ConfigSpace space, SpaceOfWorld(rank, SumOrder::kAny));
  return Chooser(program, space).One(choice);
}

absl::StatusOr<std::unique_ptr<Module>> ModuleOf(Rank& rank, const KernelSource& source) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Binaries> binaries,
                   Binaries::Open(rank, {.cache_dir = GetEnv().cache_dir}));
  ASSIGN_OR_RETURN(const auto paths, binaries->Compile({source}, {}));
  RETURN_IF_ERROR(paths[0].status());
  ASSIGN_OR_RETURN(Binaries::Loaded loaded, binaries->Load(*paths[0], source));
  RETURN_IF_ERROR(loaded.status);
  return std::move(loaded.module);
}

}  // namespace

absl::StatusOr<BoundVariant> BindAdam(
    Rank& rank, const Choice& choice, double timeout_s,
    const std::function<void(std::vector<std::unique_ptr<Memory>>& memory)>& replaced) {
  ASSIGN_OR_RETURN(const Variant variant, VariantNamed(rank, choice));
  ASSIGN_OR_RETURN(const Lowered lowered, LowerVariant(variant, TargetOf(rank)));
  BoundVariant bound;
  ASSIGN_OR_RETURN(bound.module, ModuleOf(rank, lowered.kernels));
  for (const Buffer& buffer : lowered.plan.buffers) {
    ASSIGN_OR_RETURN(bound.memory.emplace_back(), rank.Allocate(BytesOf(buffer), buffer.symmetric));
  }
  if (replaced) replaced(bound.memory);
  std::vector<Memory*> buffers;
  for (const std::unique_ptr<Memory>& memory : bound.memory) buffers.push_back(memory.get());
  ASSIGN_OR_RETURN(bound.plan, rank.Bind(lowered.plan, *bound.module, buffers, timeout_s));
  return bound;
}

absl::StatusOr<std::string> CheckNcclOfOne(const OneGpu& gpu) {
  RETURN_IF_ERROR(gpu.nccl.status());
  const NcclApi& nccl = **gpu.nccl;
  ASSIGN_OR_RETURN(const std::shared_ptr<Device> device, Device::Open(gpu.libraries.driver, 0));
  ASSIGN_OR_RETURN(const InContext in, device->Enter());
  ncclUniqueId id;
  RETURN_IF_ERROR(ToStatus(nccl, nccl.GetUniqueId(&id), "ncclGetUniqueId"));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  RETURN_IF_ERROR(ToStatusOfBegun(nccl, nccl.CommInitRankConfig(&comm, 1, id, 0, &config),
                                  "ncclCommInitRankConfig"));
  RETURN_IF_ERROR(Settle(nccl, comm));
  const absl::Status summed = SumAlone(nccl, device, comm);
  const absl::Status aborted = ToStatus(nccl, nccl.CommAbort(comm), "ncclCommAbort");
  RETURN_IF_ERROR(summed);
  RETURN_IF_ERROR(aborted);
  return absl::StrCat("nccl ", nccl.version, ": init, a sum and abort");
}

absl::StatusOr<std::string> CheckMulticastOfOne(const OneGpu& gpu) {
  const DriverApi& driver = gpu.libraries.driver;
  ASSIGN_OR_RETURN(const std::shared_ptr<Device> device, Device::Open(driver, 0));
  ASSIGN_OR_RETURN(const InContext in, device->Enter());
  int supported = 0;
  RETURN_IF_CU(driver, DeviceGetAttribute, &supported, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED,
               device->handle());
  const std::string attribute = absl::StrCat("attribute ", supported);
  if (supported == 0) return absl::StrCat(attribute, ": no multicast objects here");
  const auto refused = [&](absl::string_view call, const absl::Status& why) {
    return absl::StrCat(attribute, "; ", call, " for one device: ", why.message());
  };
  const absl::StatusOr<int64_t> bytes =
      RoundedForMulticast(*device, 1, kPage, CU_MEM_HANDLE_TYPE_NONE);
  if (!bytes.ok()) return refused("cuMulticastGetGranularity", bytes.status());
  const absl::StatusOr<std::shared_ptr<MemoryHandle>> object =
      MemoryHandle::OfMulticast(driver, 1, *bytes, CU_MEM_HANDLE_TYPE_NONE);
  if (!object.ok()) return refused("cuMulticastCreate", object.status());
  const absl::Status added =
      ToStatus(driver, driver.MulticastAddDevice((*object)->get(), device->handle()),
               "cuMulticastAddDevice");
  if (!added.ok()) return refused("cuMulticastAddDevice", added);
  ASSIGN_OR_RETURN(const std::shared_ptr<MemoryHandle> memory,
                   MemoryHandle::OfMemory(*device, *bytes, CU_MEM_HANDLE_TYPE_NONE));
  const absl::Status bound = (*object)->Bind(*device, memory, *bytes);
  if (!bound.ok()) return refused("cuMulticastBindMem", bound);
  const absl::StatusOr<std::shared_ptr<Allocation>> mapped = Map(device, *object, *bytes);
  if (!mapped.ok()) return refused("cuMemMap", mapped.status());
  return absl::StrCat(attribute, ": one device has a multicast address of ", *bytes, " bytes");
}

absl::StatusOr<std::string> CheckFault(const OneGpu& gpu) {
  absl::Status first, again;
  const absl::Status ran = RunCudaWorldOver(
      gpu.libraries, {.ranks = 1, .timeout_s = 30}, [&](Rank& rank) -> absl::Status {
        ASSIGN_OR_RETURN(const BoundVariant bound,
                         BindAdam(rank, {}, 0, [&](std::vector<std::unique_ptr<Memory>>& memory) {
                           if (!gpu.fake) memory[0] = std::make_unique<NoMemory>(*memory[0]);
                         }));
        if (gpu.fake) EndContextAt(1, CUDA_ERROR_ILLEGAL_ADDRESS, 0, "cuLaunchKernelEx");
        first = bound.plan->Run();
        again = bound.plan->Run();
        return first;
      });
  if (gpu.fake) FailCall(0, CUDA_SUCCESS);
  if (first.ok() && again.ok()) RETURN_IF_ERROR(ran);
  if (!absl::IsDataLoss(first) || !absl::StrContains(first.message(), "ILLEGAL_ADDRESS"))
    return absl::InternalError(
        absl::StrCat("want DataLoss of CUDA_ERROR_ILLEGAL_ADDRESS, have ", first.ToString()));
  if (!absl::IsDataLoss(again))
    return absl::InternalError(
        absl::StrCat("want DataLoss of a later step, too, have ", again.ToString()));
  return absl::StrCat("DataLoss: ", first.message());
}

absl::StatusOr<std::string> CheckLateRank(const OneGpu& gpu) {
  constexpr double kDeadline = 1;
  absl::Status waited;
  double seconds = 0;
  RETURN_IF_ERROR(RunCudaWorldOver(
      gpu.libraries, {.ranks = 2, .timeout_s = 30}, [&](Rank& rank) -> absl::Status {
        ASSIGN_OR_RETURN(
            const BoundVariant bound,
            BindAdam(rank, {"fuse(RS, C, AG); slice m v", "generated vec=4"}, kDeadline));
        RETURN_IF_ERROR(bound.plan->Run());
        RETURN_IF_ERROR(rank.exchange().Barrier());
        if (rank.rank() == 0) {
          const double begin_s = SecondsNow();
          waited = bound.plan->Run();
          seconds = SecondsNow() - begin_s;
        }
        return rank.exchange().Barrier();
      }));
  if (!absl::IsDeadlineExceeded(waited))
    return absl::InternalError(absl::StrCat("want DeadlineExceeded, have ", waited.ToString()));
  if (seconds > 10 * kDeadline)
    return absl::InternalError(
        absl::StrCat("want the deadline of ", kDeadline, " s, waited ", seconds));
  return absl::StrCat("after ", seconds, " s of ", kDeadline, ": ", waited.message());
}

}  // namespace coconet::bench
