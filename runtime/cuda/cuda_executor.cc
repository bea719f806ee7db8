#include "runtime/cuda/cuda_executor.h"

#include <algorithm>
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

namespace {

std::vector<StreamWatch::Watched> CollectivesOfStreams(const CudaExecutor::Parts& parts) {
  std::vector<StreamWatch::Watched> all;
  for (size_t step = 0; step < parts.calls.size(); ++step) {
    const auto* collective = std::get_if<StreamCollective>(&parts.calls[step].work);
    if (collective == nullptr) continue;
    all.push_back({static_cast<int>(step), parts.calls[step].lane, collective->begun->get(), collective->ended->get()});
  }
  return all;
}

}  // namespace

CudaExecutor::CudaExecutor(Parts parts)
    : parts_(std::move(parts)), watch_(parts_.device->driver(), CollectivesOfStreams(parts_), parts_.timeout_s) {}

CudaExecutor::~CudaExecutor() {
  // Kernels that still run, after an error, use what goes now.
  for (CUstream stream : parts_.streams) parts_.device->driver().StreamSynchronize(stream);
}

absl::Status CudaExecutor::Run() {
  if (!first_error_.ok()) return first_error_;
  first_error_ = RunSteps();
  if (first_error_.ok()) return first_error_;
  StopOthers(first_error_);
  AbortLibraries(first_error_);
  return first_error_;
}

absl::Status CudaExecutor::RunSteps() {
  const DriverApi& driver = parts_.device->driver();
  watch_.Reset();
  for (size_t step = 0; step < parts_.calls.size(); ++step) {
    const CudaCall& call = parts_.calls[step];
    for (CUevent event : call.awaits) RETURN_IF_CU(driver, StreamWaitEvent, parts_.streams[call.lane], event, 0);
    const absl::Status started = std::visit([&](const auto& work) { return Start(call, work); }, call.work);
    if (!started.ok()) {
      return Stopped() ? GaveUp(static_cast<int>(step)) : WithContext(started, StepName(parts_.plan, static_cast<int>(step), parts_.rank));
    }
    if (call.done != nullptr) RETURN_IF_CU(driver, EventRecord, call.done->get(), parts_.streams[call.lane]);
  }
  for (int lane = 0; lane < kLanes; ++lane) RETURN_IF_ERROR(Await(lane));
  return Stopped() ? GaveUp(-1) : absl::OkStatus();
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

absl::Status CudaExecutor::Start(const CudaCall& call, const StreamCollective& collective) {
  const DriverApi& driver = parts_.device->driver();
  const CUstream stream = parts_.streams[call.lane];
  const auto stopped = [&] {
    WatchOut();
    return Stopped();
  };
  RETURN_IF_CU(driver, EventRecord, collective.begun->get(), stream);
  RETURN_IF_ERROR(collective.library->Enqueue(collective.step, collective.in, collective.out, stream, stopped));
  RETURN_IF_CU(driver, EventRecord, collective.ended->get(), stream);
  watch_.Enqueued();
  return absl::OkStatus();
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
    WatchOut();
    if (Stopped()) AbortLibraries(WhyStopped());
    return false;
  };
  // Without a deadline: kernels have one of their own, and the watch has that of collectives.
  WaitUntil({.spins = 1000, .timeout_ns = std::numeric_limits<int64_t>::max()}, ready, tell);
  return ToStatus(driver, state, "cuStreamQuery");
}

void CudaExecutor::WatchOut() {
  if (Stopped()) return;
  if (parts_.board->Left().ok()) {
    stuck_ = CheckLibraries();
    stuck_.Update(watch_.Look());
    if (stuck_.ok()) return;
    stuck_ = WithContext(stuck_, StepName(parts_.plan, watch_.UnderWay(), parts_.rank));
  }
  OwnSign().Set(1 + static_cast<unsigned>(parts_.rank));
}

absl::Status CudaExecutor::CheckLibraries() const {
  for (const CudaCall& call : parts_.calls) {
    const auto* collective = std::get_if<StreamCollective>(&call.work);
    if (collective != nullptr) RETURN_IF_ERROR(collective->library->Check());
  }
  return absl::OkStatus();
}

absl::Status CudaExecutor::WhyStopped() const {
  return stuck_.ok() ? absl::AbortedError(absl::StrCat("rank ", OwnSign().Load() - 1, " gave up")) : stuck_;
}

absl::Status CudaExecutor::GaveUp(int step) {
  AbortLibraries(WhyStopped());  // else the streams may have no end
  if (!stuck_.ok()) return stuck_;
  HostControl seen{};
  Control control;
  RETURN_IF_ERROR(Copy(*parts_.device, parts_.streams[0], parts_.control->address(), sizeof control, &control));
  seen.failure = control.failure;
  if (control.claimed == 0) seen.failure.step = std::max({step, aborted_step_, 0});  // it was no kernel
  seen.timeout_ns = control.timeout_ns;
  seen.failure.peer = seen.suspect = WorldRank(parts_.node, parts_.rank, parts_.plan.ranks, control.failure.peer);
  const int first = static_cast<int>(OwnSign().Load()) - 1;
  const absl::Status left = parts_.board->Left();
  if (first == parts_.rank) {
    seen.end = left.ok() ? WaitEnd::kDeadline : WaitEnd::kReady;
    return WhyGaveUp(seen, parts_.rank, *parts_.board, parts_.plan);
  }
  return absl::AbortedError(
      absl::StrCat(StepName(parts_.plan, seen.failure.step, parts_.rank), ": rank ", first, " gave up: ", parts_.signs[first]->why()));
}

void CudaExecutor::StopOthers(const absl::Status& why) {
  StopSign& own = OwnSign();
  const bool is_first = own.Load() == 0 || own.Load() == 1 + static_cast<unsigned>(parts_.rank);
  if (is_first) own.SetWhy(why.message());
  own.Set(1 + static_cast<unsigned>(parts_.rank));
  for (int peer = 0; peer < parts_.stopping.size; ++peer) {
    StopSign* theirs = parts_.signs[parts_.stopping.Rank(peer)].get();
    if (theirs != nullptr) theirs->Set(own.Load());
  }
}

void CudaExecutor::AbortLibraries(const absl::Status& why) {
  if (watch_.empty()) return;
  aborted_step_ = std::max(aborted_step_, watch_.UnderWay());
  for (StreamLibrary* library : parts_.stream_libraries) library->Abort(why);
  parts_.board->Leave(parts_.rank, why);
}

}  // namespace coconet
