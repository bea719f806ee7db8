#include "runtime/cuda/cuda_executor.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "runtime/host/control.h"
#include "runtime/host/library_call.h"
#include "runtime/host/wait.h"

namespace coconet {

absl::StatusOr<std::unique_ptr<Event>> Event::Make(const Device& device) {
  CUevent event = nullptr;
  RETURN_IF_CU(device.driver(), EventCreate, &event, CU_EVENT_DISABLE_TIMING);
  return std::make_unique<Event>(device, event);
}

CudaExecutor::~CudaExecutor() {
  // Kernels that still run, after an error, use what goes now.
  for (CUstream stream : parts_.streams) parts_.device->driver().StreamSynchronize(stream);
}

absl::Status CudaExecutor::Run() {
  if (!first_error_.ok()) return first_error_;
  first_error_ = RunSteps();
  if (!first_error_.ok()) StopOthers(first_error_);
  return first_error_;
}

absl::Status CudaExecutor::RunSteps() {
  const DriverApi& driver = parts_.device->driver();
  for (size_t step = 0; step < parts_.calls.size(); ++step) {
    const CudaCall& call = parts_.calls[step];
    for (CUevent event : call.awaits) RETURN_IF_CU(driver, StreamWaitEvent, parts_.streams[call.lane], event, 0);
    const absl::Status started = std::visit([&](const auto& work) { return Start(call, work); }, call.work);
    if (!started.ok()) return Stopped() ? GaveUp() : WithContext(started, StepName(parts_.plan, static_cast<int>(step), parts_.rank));
    if (call.done != nullptr) RETURN_IF_CU(driver, EventRecord, call.done->get(), parts_.streams[call.lane]);
  }
  for (int lane = 0; lane < kLanes; ++lane) RETURN_IF_ERROR(Await(lane));
  return Stopped() ? GaveUp() : absl::OkStatus();
}

absl::Status CudaExecutor::Start(const CudaCall& call, const CudaLaunch& launch) {
  CUlaunchConfig config{};
  config.gridDimX = static_cast<unsigned>(launch.blocks);
  config.blockDimX = static_cast<unsigned>(launch.threads);
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.hStream = parts_.streams[call.lane];
  void* params[] = {const_cast<Word*>(launch.params)};
  return ToStatus(parts_.device->driver(), parts_.device->driver().LaunchKernelEx(&config, launch.function, params, nullptr), "cuLaunchKernelEx");
}

absl::Status CudaExecutor::Start(const CudaCall& call, const StagedCollective& collective) {
  RETURN_IF_ERROR(Await(call.lane));
  if (Stopped()) return absl::AbortedError("stopped");
  const CUstream stream = parts_.streams[call.lane];
  std::vector<char> in(collective.in_bytes), out(collective.out_bytes);
  RETURN_IF_ERROR(Copy(*parts_.device, stream, collective.in, collective.in_bytes, in.data()));
  RETURN_IF_ERROR(Copy(*parts_.device, stream, collective.out, collective.out_bytes, out.data()));  // what lies between blocks stays
  const bool in_place = collective.in == collective.out;
  RETURN_IF_ERROR(Communicate(*collective.library, collective.step, in_place ? out.data() : in.data(), out.data()));
  return Copy(*parts_.device, stream, out.data(), collective.out_bytes, collective.out);
}

absl::Status CudaExecutor::Start(const CudaCall& call, const std::unique_ptr<CudaGemm>& gemm) { return gemm->Start(parts_.streams[call.lane]); }

absl::Status CudaExecutor::Await(int lane) {
  const DriverApi& driver = parts_.device->driver();
  CUresult state = CUDA_ERROR_NOT_READY;
  const auto ready = [&] { return (state = driver.StreamQuery(parts_.streams[lane])) != CUDA_ERROR_NOT_READY; };
  const auto tell = [&] {
    if (!parts_.board->Left().ok()) OwnSign().word->Set(1 + static_cast<unsigned>(parts_.rank));
    return false;
  };
  // Without a deadline: kernels have one of their own.
  WaitUntil({.spins = 1000, .timeout_ns = std::numeric_limits<int64_t>::max()}, ready, tell);
  return ToStatus(driver, state, "cuStreamQuery");
}

absl::Status CudaExecutor::GaveUp() const {
  HostControl seen{};
  Control control;
  RETURN_IF_ERROR(Copy(*parts_.device, parts_.streams[0], parts_.control->address(), sizeof control, &control));
  seen.failure = control.failure;
  seen.timeout_ns = control.timeout_ns;
  seen.failure.peer = seen.suspect = WorldRank(parts_.node, parts_.rank, parts_.plan.ranks, control.failure.peer);
  const int first = static_cast<int>(OwnSign().word->Load()) - 1;
  const absl::Status left = parts_.board->Left();
  if (first == parts_.rank) {
    seen.end = left.ok() ? WaitEnd::kDeadline : WaitEnd::kReady;
    return WhyGaveUp(seen, parts_.rank, *parts_.board, parts_.plan);
  }
  return absl::AbortedError(
      absl::StrCat(StepName(parts_.plan, control.failure.step, parts_.rank), ": rank ", first, " gave up: ", parts_.signs[first]->why));
}

void CudaExecutor::StopOthers(const absl::Status& why) {
  StopSign& own = OwnSign();
  const bool is_first = own.word->Load() == 0 || own.word->Load() == 1 + static_cast<unsigned>(parts_.rank);
  if (is_first) own.why = std::string(why.message());
  own.word->Set(1 + static_cast<unsigned>(parts_.rank));
  for (int peer = 0; peer < parts_.stopping.size; ++peer) {
    StopSign* theirs = parts_.signs[parts_.stopping.Rank(peer)].get();
    if (theirs != nullptr) theirs->word->Set(own.word->Load());
  }
}

}  // namespace coconet
