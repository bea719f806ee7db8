#include "runtime/cuda/cuda_bind.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "runtime/arguments.h"
#include "runtime/cuda/tensor_maps.h"

namespace coconet {
namespace {

/// The most bytes of scratch memory that are reused for the next plan. Products of full size may
/// need more, which is freed when they are loaded.
constexpr int64_t kMostKeptScratch = int64_t{1} << 20;

/// OK when all blocks of the step, over all ranks that share its multiprocessors, can be resident
/// at once on the multiprocessors that remain when `taken` are in use.
absl::Status CheckResident(const Device& device, const KernelStep& step, CUfunction function,
                           const GpuShare& share, int taken) {
  int per_multiprocessor = 0;
  RETURN_IF_CU(device.driver(), OccupancyMaxActiveBlocksPerMultiprocessor, &per_multiprocessor,
               function, step.threads, static_cast<size_t>(step.shared_bytes));
  const bool apart = share.multiprocessors > 0;
  const int multiprocessors = apart ? share.multiprocessors : device.facts().multiprocessors;
  const int64_t most = int64_t{per_multiprocessor} * std::max(multiprocessors - taken, 0);
  const int64_t want = int64_t{step.blocks} * (apart ? 1 : share.ranks);
  if (want <= most) return absl::OkStatus();
  const std::string where = absl::StrCat(
      apart ? absl::StrCat("the ", multiprocessors, " multiprocessors that a rank has of ") : "",
      "GPU ", device.ordinal());
  return absl::ResourceExhaustedError(absl::StrCat(
      "Bind: ", step.label, ": want at most ", most, " blocks of ", step.threads,
      " threads at once on ", where, ", have ", step.blocks, " of each of ", share.ranks,
      " ranks, which wait for each other",
      taken == 0 ? ""
                 : absl::StrCat("; a concurrent collective takes ", taken, " multiprocessors")));
}

/// Lets launches of the step's kernel have as much dynamic shared memory as the step says, which a
/// kernel has to ask for where it and the arrays of its text exceed 48 KiB. Launches of other plans
/// keep what they may have.
absl::Status AllowSharedMemory(const Device& device, const KernelStep& step, CUfunction function) {
  if (step.shared_bytes == 0) return absl::OkStatus();
  const DriverApi& driver = device.driver();
  const int most = device.facts().shared_bytes_per_block;
  int declared = 0, allowed = 0;
  RETURN_IF_CU(driver, FuncGetAttribute, &declared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
  RETURN_IF_CU(driver, FuncGetAttribute, &allowed, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
               function);
  if (step.shared_bytes <= allowed) return absl::OkStatus();
  const CUresult asked =
      step.shared_bytes > most
          ? CUDA_ERROR_INVALID_VALUE
          : driver.FuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    static_cast<int>(step.shared_bytes));
  if (asked != CUDA_ERROR_INVALID_VALUE) return ToStatus(driver, asked, "cuFuncSetAttribute");
  return absl::ResourceExhaustedError(absl::StrCat(
      "Bind: ", step.label, ": want at most ", most, " bytes of shared memory for a block on GPU ",
      device.ordinal(), ", have ", step.shared_bytes,
      declared == 0 ? "" : absl::StrCat(" beside ", declared, " in arrays of the kernel's text"),
      "; take a variant whose tiles are smaller or have fewer stages"));
}

/// OK when one rank's products can run while the other ranks' kernels wait for it. A block of a
/// product may occupy a whole multiprocessor, and may start only together with a second one of its
/// cluster of multiprocessors, of which a GPU has about eight; with one eighth free, some cluster
/// has two. On multiprocessors of its own a rank's kernels may take all: what they wait for comes
/// before the peers' next products, so they end by themselves.
absl::Status CheckRoomForProducts(const CudaExecutor::Parts& parts, const GpuShare& share) {
  const bool multiplies = absl::c_any_of(
      parts.plan.steps, [](const Step& step) { return std::holds_alternative<GemmStep>(step); });
  if (!multiplies || share.ranks == 1 || share.multiprocessors > 0) return absl::OkStatus();
  const int all = parts.device->facts().multiprocessors, most = all - (all + 7) / 8;
  for (const Step& step : parts.plan.steps) {
    const auto* kernel = std::get_if<KernelStep>(&step);
    if (kernel == nullptr || !Waits(*kernel) || int64_t{kernel->blocks} * (share.ranks - 1) <= most)
      continue;
    return absl::ResourceExhaustedError(
        absl::StrCat("Bind: ", kernel->label, ": want at most ", most,
                     " blocks of all ranks but one on the ", all, " multiprocessors of GPU ",
                     parts.device->ordinal(), ", the rest for matrix products, have ",
                     kernel->blocks, " of each of ", share.ranks, " ranks"));
  }
  return absl::OkStatus();
}

/// The number of multiprocessors to optimise the product for; 0: all of the GPU.
absl::StatusOr<int> MultiprocessorsFor(const GemmStep& step, const Device& device,
                                       const GpuShare& share) {
  const int all = device.facts().multiprocessors, own = share.multiprocessors > 0
                                                            ? share.multiprocessors
                                                            : std::max(all / share.ranks, 1);
  if (step.beside >= own) {
    return absl::ResourceExhaustedError(
        absl::StrCat("Bind: ", step.label, ": want fewer than the rank's ", own,
                     " multiprocessors for concurrent kernels, have ", step.beside));
  }
  return own - step.beside == all ? 0 : own - step.beside;
}

absl::StatusOr<std::vector<std::unique_ptr<Event>>> MakeEvents(const Device& device, int count) {
  std::vector<std::unique_ptr<Event>> events(count);
  for (std::unique_ptr<Event>& event : events) {
    ASSIGN_OR_RETURN(event, Event::Make(device));
  }
  return events;
}

struct CallMaker {
  const Module& module;
  const ArgumentSource& source;
  const CudaExecutor::Parts& parts;
  const GpuShare& share;
  const CudaGemm::OpensLibrary& library;

  char* Own(int buffer) const {
    return static_cast<char*>(const_cast<void*>(source.address(buffer, parts.rank)));
  }
  absl::StatusOr<CudaWork> Make(const KernelStep& step, const Word* params) const {
    ASSIGN_OR_RETURN(void* symbol, module.Symbol(step.symbol));
    const CudaLaunch launch{static_cast<CUfunction>(symbol), params, step.blocks, step.threads,
                            step.shared_bytes};
    RETURN_IF_ERROR(AllowSharedMemory(*parts.device, step, launch.function));
    if (Waits(step))
      RETURN_IF_ERROR(
          CheckResident(*parts.device, step, launch.function, share, TakenBeside(step.lane)));
    if (const KernelStep* awaited = AwaitedBy(parts.plan, step); awaited != nullptr)
      RETURN_IF_ERROR(CheckResidentBeside(step, *awaited));
    return launch;
  }
  /// OK when the blocks of the awaited kernel fit beside this step's, which may start first and
  /// occupy a multiprocessor each.
  absl::Status CheckResidentBeside(const KernelStep& step, const KernelStep& awaited) const {
    ASSIGN_OR_RETURN(void* symbol, module.Symbol(awaited.symbol));
    const int taken = step.blocks * (share.multiprocessors > 0 ? 1 : share.ranks);
    return CheckResident(*parts.device, awaited, static_cast<CUfunction>(symbol), share,
                         TakenBeside(awaited.lane) + taken);
  }
  absl::StatusOr<CudaWork> Make(const CollectiveStep& step, const Word* /*params*/) const {
    const auto size = static_cast<int64_t>(SizeOf(step.dtype));
    if (GoesByStream(step)) {
      StreamCollective collective{.step = step,
                                  .in = Own(step.in) + step.in_offset * size,
                                  .out = Own(step.out) + step.out_offset * size,
                                  .library = parts.stream_libraries[step.lane]};
      const int runs = RunsAhead(parts.plan.steps.size());
      ASSIGN_OR_RETURN(collective.begun, MakeEvents(*parts.device, runs));
      ASSIGN_OR_RETURN(collective.ended, MakeEvents(*parts.device, runs));
      return collective;
    }
    const OperandElements elements = ElementsOf(parts.plan, step);
    return StagedCollective{.step = step,
                            .in = Own(step.in) + step.in_offset * size,
                            .out = Own(step.out) + step.out_offset * size,
                            .in_bytes = elements.in * size,
                            .out_bytes = elements.out * size,
                            .library = parts.libraries[step.lane][static_cast<size_t>(step.group)]};
  }
  absl::StatusOr<CudaWork> Make(const GemmStep& step, const Word* /*params*/) const {
    ASSIGN_OR_RETURN(const int multiprocessors, MultiprocessorsFor(step, *parts.device, share));
    return CudaGemm::Make(
        parts.device, library, step, parts.rank % parts.plan.ranks, multiprocessors,
        {.a = Own(step.a.buffer), .b = Own(step.b.buffer), .c = Own(step.c.buffer)});
  }

  bool GoesByStream(const CollectiveStep& step) const {
    const StreamLibrary* library = parts.stream_libraries[step.lane];
    return library != nullptr && library->Takes(step);
  }
  /// Multiprocessors that collectives of the other lane may hold while they wait for peers that
  /// wait for this lane's blocks.
  int TakenBeside(int lane) const {
    int taken = 0;
    for (const Step& step : parts.plan.steps) {
      const auto* collective = std::get_if<CollectiveStep>(&step);
      if (collective == nullptr || collective->lane == lane || !GoesByStream(*collective)) continue;
      taken = std::max(taken, parts.stream_libraries[collective->lane]->multiprocessors());
    }
    return taken;
  }
};

/// Where each step's words lie: arguments in `parts.params`, tables in one memory, both
/// contiguous in step order.
struct Places {
  std::vector<size_t> params, tables;
};
absl::StatusOr<Places> LayOut(const ArgumentSource& source, CudaExecutor::Parts& parts) {
  Places places;
  LineWords tables;
  for (const Step& step : parts.plan.steps) {
    places.tables.push_back(tables.size());
    const auto* kernel = std::get_if<KernelStep>(&step);
    if (kernel == nullptr) continue;
    for (const std::vector<Arg>& tensor : kernel->tensors)
      AppendWords(source, tensor, nullptr, tables);
  }
  const auto bytes = static_cast<int64_t>(tables.size() * sizeof(Word));
  ASSIGN_OR_RETURN(char* const at, parts.sync->tables.AtLeast(parts.device, bytes));
  RETURN_IF_ERROR(Copy(*parts.device, parts.streams[0], tables.data(), bytes, at));
  for (size_t i = 0; i < parts.plan.steps.size(); ++i) {
    places.params.push_back(parts.params.size());
    const auto* kernel = std::get_if<KernelStep>(&parts.plan.steps[i]);
    if (kernel == nullptr) continue;
    ASSIGN_OR_RETURN(const std::vector<TensorMapWords> maps,
                     EncodeMaps(*parts.device, source, *kernel));
    AppendWords(source, kernel->args, reinterpret_cast<const Word*>(at) + places.tables[i],
                parts.params, maps);
    FillLine(parts.params);
  }
  return places;
}

/// Allocates memory for the products and loads their kernels onto the GPU. Products of one lane run
/// one after the other, so they share a workspace.
absl::Status PrepareProducts(CudaExecutor::Parts& parts) {
  std::array<int64_t, kLanes> workspace_bytes = {};
  int64_t scratch_bytes = 0;
  std::vector<std::pair<CudaGemm*, int>> gemms;  // with their lanes
  for (const CudaCall& call : parts.calls) {
    const auto* gemm = std::get_if<std::unique_ptr<CudaGemm>>(&call.work);
    if (gemm == nullptr) continue;
    gemms.emplace_back(gemm->get(), call.lane);
    workspace_bytes[call.lane] = std::max(workspace_bytes[call.lane], (*gemm)->workspace_bytes());
    scratch_bytes = std::max(scratch_bytes, (*gemm)->scratch_bytes());
  }
  if (scratch_bytes == 0) return absl::OkStatus();
  std::array<char*, kLanes> workspaces = {};
  for (int lane = 0; lane < kLanes; ++lane) {
    ASSIGN_OR_RETURN(workspaces[lane],
                     parts.sync->workspaces[lane].AtLeast(parts.device, workspace_bytes[lane]));
  }
  GrowingMemory passing;
  GrowingMemory& memory = scratch_bytes <= kMostKeptScratch ? parts.sync->scratch : passing;
  ASSIGN_OR_RETURN(char* const scratch, memory.AtLeast(parts.device, scratch_bytes));
  for (const auto& [gemm, lane] : gemms) {
    if (gemm->workspace_bytes() > 0) gemm->UseWorkspace(workspaces[lane]);
    RETURN_IF_ERROR(gemm->Load(scratch, parts.streams[lane]));
  }
  return absl::OkStatus();
}

/// Makes the events between steps of different lanes and at both ends of a run.
absl::Status Order(CudaExecutor::Parts& parts) {
  ASSIGN_OR_RETURN(parts.last, Event::Make(*parts.device));
  if (absl::c_any_of(parts.calls, [](const CudaCall& call) {
        return std::holds_alternative<StreamCollective>(call.work);
      })) {
    ASSIGN_OR_RETURN(parts.run_ends, MakeEvents(*parts.device, RunsAhead(parts.calls.size())));
  }
  if (parts.apart) {
    ASSIGN_OR_RETURN(parts.entered, Event::Make(*parts.device));
    ASSIGN_OR_RETURN(parts.left, Event::Make(*parts.device));
  }
  if (absl::c_any_of(parts.plan.steps, [](const Step& step) { return LaneOf(step) != 0; })) {
    ASSIGN_OR_RETURN(parts.begun, Event::Make(*parts.device));
    ASSIGN_OR_RETURN(parts.joined, Event::Make(*parts.device));
  }
  for (size_t i = 0; i < parts.plan.steps.size(); ++i) {
    for (int before : AfterOf(parts.plan.steps[i])) {
      CudaCall& first = parts.calls[before];
      if (first.lane == parts.calls[i].lane) continue;
      if (first.done == nullptr) {
        ASSIGN_OR_RETURN(first.done, Event::Make(*parts.device));
      }
      parts.calls[i].awaits.push_back(first.done->get());
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ResolveOnDevice(const Module& module, absl::Span<Memory* const> buffers,
                             const GpuShare& share, const CudaGemm::OpensLibrary& library,
                             CudaExecutor::Parts& parts) {
  const auto address = [&](int buffer, int rank) -> const void* {
    const Buffer& b = parts.plan.buffers[buffer];
    if (b.role != BufferRole::kSync) return buffers[buffer]->peer(rank);
    const Memory& memory = b.symmetric ? *parts.sync->shared : *parts.sync->local;
    return static_cast<const char*>(memory.peer(rank)) + parts.sync->layout.offsets[buffer];
  };
  const auto multicast = [&](int buffer) -> const void* {
    return parts.plan.buffers[buffer].role == BufferRole::kSync ? nullptr
                                                                : buffers[buffer]->multicast();
  };
  const ArgumentSource source{.plan = parts.plan,
                              .rank = parts.rank,
                              .node = parts.node,
                              .address = address,
                              .control = parts.sync->control->address(),
                              .multicast = multicast};
  RETURN_IF_ERROR(CheckRoomForProducts(parts, share));
  ASSIGN_OR_RETURN(const Places places, LayOut(source, parts));
  const CallMaker maker{module, source, parts, share, library};
  for (size_t i = 0; i < parts.plan.steps.size(); ++i) {
    const auto make = [&](const auto& step) {
      return maker.Make(step, parts.params.data() + places.params[i]);
    };
    ASSIGN_OR_RETURN(CudaWork work, std::visit(make, parts.plan.steps[i]));
    parts.calls.push_back({.work = std::move(work), .lane = LaneOf(parts.plan.steps[i])});
  }
  RETURN_IF_ERROR(PrepareProducts(parts));
  return Order(parts);
}

}  // namespace coconet
