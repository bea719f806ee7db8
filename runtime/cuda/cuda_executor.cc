#include "runtime/cuda/cuda_executor.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "runtime/control/kernel_control.h"
#include "runtime/node/wait.h"

namespace coconet {

absl::StatusOr<std::unique_ptr<Event>> Event::Make(const Device& device, bool timed) {
  CUevent event = nullptr;
  RETURN_IF_CU(device.driver(), EventCreate, &event,
               timed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING);
  return std::make_unique<Event>(device, event);
}

Event::~Event() {
  if (const absl::StatusOr<InContext> in = device_.Enter(); in.ok())
    device_.driver().EventDestroy(event_);
}

int RunsAhead(size_t calls) {
  constexpr size_t kMost = 8, kMostCalls = 512;  // half of what streams are known to take
  return static_cast<int>(std::clamp<size_t>(kMostCalls / std::max<size_t>(calls, 1), 1, kMost));
}

namespace {

std::vector<CUevent> HandlesOf(const std::vector<std::unique_ptr<Event>>& events) {
  std::vector<CUevent> handles;
  for (const std::unique_ptr<Event>& event : events) handles.push_back(event->get());
  return handles;
}

std::vector<StreamWatch::Watched> CollectivesOfStreams(const CudaExecutor::Parts& parts) {
  std::vector<StreamWatch::Watched> all;
  for (size_t step = 0; step < parts.calls.size(); ++step) {
    const auto* collective = std::get_if<StreamCollective>(&parts.calls[step].work);
    if (collective == nullptr) continue;
    all.push_back({static_cast<int>(step), parts.calls[step].lane, HandlesOf(collective->begun),
                   HandlesOf(collective->ended)});
  }
  return all;
}

}  // namespace

CudaExecutor::CudaExecutor(Parts parts)
    : parts_(std::move(parts)),
      streams_(parts_.streams),
      watch_(parts_.device->driver(), CollectivesOfStreams(parts_), parts_.timeout_s) {}

CudaExecutor::~CudaExecutor() {
  // After an error, kernels that still run use memory that is freed now.
  if (in_flight_ || own_in_flight_) Wait().IgnoreError();
  const absl::StatusOr<InContext> in = parts_.device->Enter();
  if (!first_error_.ok() || !in.ok()) parts_.sync->reusable = false;
  if (!in.ok()) return;
  for (CUstream stream : parts_.streams) driver().StreamSynchronize(stream);
}

absl::Status CudaExecutor::Settled(const absl::Status& status) {
  if (status.ok() || !first_error_.ok()) return first_error_;
  first_error_ = CauseOf(driver(), status);
  if (absl::IsDataLoss(first_error_))
    first_error_ = WithContext(first_error_, absl::StrCat("GPU ", parts_.device->ordinal()));
  StopOthers(first_error_);
  AbortLibraries(first_error_);
  // In a library collective by way of the host no stop word ends the others' waits.
  const bool lost = absl::IsDataLoss(first_error_) && HasLibraryCollectives();
  if (!watch_.empty() || lost) parts_.board->Leave(parts_.rank, first_error_);
  return first_error_;
}

bool CudaExecutor::HasLibraryCollectives() const {
  return absl::c_any_of(parts_.plan.steps, [](const Step& step) {
    return std::holds_alternative<CollectiveStep>(step);
  });
}

absl::Status CudaExecutor::SettledIfLost(const absl::Status& status) {
  return absl::IsDataLoss(status) ? Settled(status) : status;
}

absl::StatusOr<InContext> CudaExecutor::Enter() {
  absl::StatusOr<InContext> in = parts_.device->Enter();
  if (!in.ok()) return SettledIfLost(in.status());
  return in;
}

absl::Status CudaExecutor::RunSteps(int64_t steps) {
  return RunOwn(steps, [this] { return EnqueueOwn(); });
}

absl::Status CudaExecutor::RunOwn(int64_t times, const std::function<absl::Status()>& launch) {
  RETURN_IF_ERROR(first_error_);
  ASSIGN_OR_RETURN(const InContext in, Enter());
  absl::Status status;
  for (int64_t i = 0; i < times && status.ok(); ++i) status = launch();
  if (status.ok() && times > 0) status = AwaitAll();
  return Settled(status);
}

absl::Status CudaExecutor::EnqueueOwn() {
  if (!marks_.empty()) return EnqueueStep(stream());
  constexpr int64_t kDirectRuns = 8;    // a plan that runs seldom needs no graph
  constexpr size_t kReplayedCalls = 3;  // fewer take less of the host than the launch of a graph
  if (replay_ == nullptr && direct_runs_ == kDirectRuns && parts_.calls.size() >= kReplayedCalls &&
      CheckStreamsDoAll(/*captured=*/true).ok()) {
    // Where the driver makes no graph, calls go on one by one, and tell of what is wrong.
    absl::StatusOr<std::unique_ptr<CudaGraph>> graph = MakeGraph(1);
    if (graph.ok()) replay_ = *std::move(graph);
  }
  if (replay_ != nullptr) return replay_->Launch(stream());
  ++direct_runs_;
  return EnqueueStep(stream());
}

absl::Status CudaExecutor::Enqueue(void* stream) {
  const auto at = static_cast<CUstream>(stream);
  if (!parts_.apart || at == this->stream())
    return EnqueueIn(at, [this, at] { return EnqueueStep(at); });
  return EnqueueChecked(at, [this, at](bool captured) { return EnqueueApart(at, captured); });
}

absl::Status CudaExecutor::EnqueueIn(CUstream stream, const std::function<absl::Status()>& launch) {
  return EnqueueChecked(stream, [&](bool captured) -> absl::Status {
    RETURN_IF_ERROR(launch());
    return NoteEnd(stream, captured);
  });
}

absl::Status CudaExecutor::EnqueueChecked(
    CUstream stream, const std::function<absl::Status(bool captured)>& enqueue) {
  RETURN_IF_ERROR(first_error_);
  ASSIGN_OR_RETURN(const InContext in, Enter());
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  RETURN_IF_ERROR(SettledIfLost(
      ToStatus(driver(), driver().StreamIsCapturing(stream, &capture), "cuStreamIsCapturing")));
  const bool captured = capture != CU_STREAM_CAPTURE_STATUS_NONE;
  RETURN_IF_ERROR(CheckStreamsDoAll(captured));
  return Settled(enqueue(captured));
}

absl::Status CudaExecutor::NoteEnd(CUstream stream, bool captured) {
  if (captured) return absl::OkStatus();  // the caller waits for the graph
  if (stream == this->stream()) {
    own_in_flight_ = true;  // Wait asks the stream itself, which lives as long as the rank
    return absl::OkStatus();
  }
  RETURN_IF_CU(driver(), EventRecord, parts_.last->get(), stream);
  in_flight_ = true;
  return absl::OkStatus();
}

absl::Status CudaExecutor::Wait() {
  RETURN_IF_ERROR(first_error_);
  ASSIGN_OR_RETURN(const InContext in, Enter());
  absl::Status status;
  if (in_flight_)
    status = Await("cuEventQuery", [this] { return driver().EventQuery(parts_.last->get()); });
  if (status.ok() && own_in_flight_) status = Await(stream());
  in_flight_ = own_in_flight_ = false;
  if (status.ok() && Stopped()) status = GaveUp(-1);
  return Settled(status);
}

absl::StatusOr<std::unique_ptr<BoundPlan>> CudaExecutor::Capture(int64_t steps) {
  RETURN_IF_ERROR(first_error_);
  RETURN_IF_ERROR(CheckStreamsDoAll(/*captured=*/true));
  ASSIGN_OR_RETURN(const InContext in, Enter());
  absl::StatusOr<std::unique_ptr<CudaGraph>> graph = MakeGraph(steps);
  if (!graph.ok()) return SettledIfLost(graph.status());
  return std::unique_ptr<BoundPlan>(*std::move(graph));
}

absl::StatusOr<std::unique_ptr<CudaGraph>> CudaExecutor::MakeGraph(int64_t steps) {
  return CudaGraph::Make(*this, [this, steps] { return CaptureRuns(steps); });
}

absl::Status CudaExecutor::CaptureRuns(int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) RETURN_IF_ERROR(EnqueueStep(parts_.streams[0]));
  return absl::OkStatus();
}

absl::Status CudaExecutor::CheckStreamsDoAll(bool captured) const {
  for (size_t step = 0; step < parts_.calls.size(); ++step) {
    const CudaWork& work = parts_.calls[step].work;
    const bool staged = std::holds_alternative<StagedCollective>(work),
               of_library = std::holds_alternative<StreamCollective>(work);
    if (!staged && !(of_library && captured)) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        StepName(parts_.plan, static_cast<int>(step), parts_.rank),
        staged ? ": is copied by way of the host, which a stream cannot do; call RunSteps"
               : ": is a library collective, which has no deadline in a graph; call RunSteps"));
  }
  return absl::OkStatus();
}

absl::Status CudaExecutor::EnqueueStep(CUstream stream) {
  streams_ = parts_.streams;
  streams_[0] = stream;
  if (!watch_.empty()) RETURN_IF_ERROR(MakeRoom(stream));
  if (parts_.begun != nullptr) {
    RETURN_IF_CU(driver(), EventRecord, parts_.begun->get(), streams_[0]);
    RETURN_IF_CU(driver(), StreamWaitEvent, streams_[1], parts_.begun->get(), 0);
  }
  RETURN_IF_ERROR(StartCalls());
  if (parts_.joined != nullptr) {
    RETURN_IF_CU(driver(), EventRecord, parts_.joined->get(), streams_[1]);
    RETURN_IF_CU(driver(), StreamWaitEvent, streams_[0], parts_.joined->get(), 0);
  }
  if (watch_.empty()) return absl::OkStatus();
  const auto slot = static_cast<size_t>(runs_++) % parts_.run_ends.size();
  RETURN_IF_CU(driver(), EventRecord, parts_.run_ends[slot]->get(), streams_[0]);
  return absl::OkStatus();
}

absl::Status CudaExecutor::MakeRoom(CUstream stream) {
  const auto most = static_cast<int64_t>(parts_.run_ends.size());
  const auto end_of = [&](int64_t run) { return parts_.run_ends[run % most]->get(); };
  if (runs_ >= most) {
    RETURN_IF_ERROR(Await("cuEventQuery",
                          [this, event = end_of(runs_)] { return driver().EventQuery(event); }));
    if (Stopped()) return GaveUp(-1);
  }
  watch_.BeginRun();
  // Collectives of one communicator must come in one order. A caller's stream may be another one
  // than that of the run before, even at the same address.
  const bool own = stream == parts_.streams[0];
  if (runs_ > 0 && !(own && last_in_own_))
    RETURN_IF_CU(driver(), StreamWaitEvent, stream, end_of(runs_ - 1), 0);
  last_in_own_ = own;
  return absl::OkStatus();
}

absl::Status CudaExecutor::EnqueueApart(CUstream stream, bool captured) {
  const CUstream own = parts_.streams[0];
  // An event that was recorded in a capture cannot be queried, so Wait has one of its own.
  const Event& left = captured ? *parts_.left : *parts_.last;
  RETURN_IF_CU(driver(), EventRecord, parts_.entered->get(), stream);
  RETURN_IF_CU(driver(), StreamWaitEvent, own, parts_.entered->get(), 0);
  RETURN_IF_ERROR(EnqueueStep(own));
  RETURN_IF_CU(driver(), EventRecord, left.get(), own);
  in_flight_ = in_flight_ || !captured;
  RETURN_IF_CU(driver(), StreamWaitEvent, stream, left.get(), 0);
  return absl::OkStatus();
}

absl::Status CudaExecutor::StartCalls() {
  for (size_t step = 0; step < parts_.calls.size(); ++step) {
    const CudaCall& call = parts_.calls[step];
    for (CUevent event : call.awaits)
      RETURN_IF_CU(driver(), StreamWaitEvent, streams_[call.lane], event, 0);
    if (!marks_.empty())
      RETURN_IF_CU(driver(), EventRecord, marks_[step].begun->get(), streams_[call.lane]);
    const absl::Status started =
        std::visit([&](const auto& work) { return Start(call, work); }, call.work);
    if (!started.ok()) {
      return Stopped() && !absl::IsDataLoss(started)
                 ? GaveUp(static_cast<int>(step))
                 : WithContext(started, StepName(parts_.plan, static_cast<int>(step), parts_.rank));
    }
    if (!marks_.empty())
      RETURN_IF_CU(driver(), EventRecord, marks_[step].ended->get(), streams_[call.lane]);
    if (call.done != nullptr)
      RETURN_IF_CU(driver(), EventRecord, call.done->get(), streams_[call.lane]);
  }
  return absl::OkStatus();
}

absl::Status CudaExecutor::AwaitAll() {
  RETURN_IF_ERROR(Await(stream()));  // lane 0 ends after lane 1
  return Stopped() ? GaveUp(-1) : absl::OkStatus();
}

absl::Status CudaExecutor::Start(const CudaCall& call, const CudaLaunch& launch) {
  CUlaunchConfig config{};
  config.gridDimX = static_cast<unsigned>(launch.blocks);
  config.blockDimX = static_cast<unsigned>(launch.threads);
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = static_cast<unsigned>(launch.shared_bytes);
  config.hStream = streams_[call.lane];
  void* params[] = {const_cast<Word*>(launch.params)};
  return ToStatus(parts_.device->driver(),
                  parts_.device->driver().LaunchKernelEx(&config, launch.function, params, nullptr),
                  "cuLaunchKernelEx");
}

absl::Status CudaExecutor::Start(const CudaCall& call, const StreamCollective& collective) {
  const DriverApi& driver = parts_.device->driver();
  const CUstream stream = streams_[call.lane];
  const auto stopped = [&] {
    WatchOut();
    return Stopped();
  };
  const size_t slot = watch_.slot();
  RETURN_IF_CU(driver, EventRecord, collective.begun[slot]->get(), stream);
  RETURN_IF_ERROR(
      collective.library->Enqueue(collective.step, collective.in, collective.out, stream, stopped));
  RETURN_IF_CU(driver, EventRecord, collective.ended[slot]->get(), stream);
  watch_.Enqueued();
  return absl::OkStatus();
}

absl::Status CudaExecutor::Start(const CudaCall& call, const StagedCollective& collective) {
  const CUstream stream = streams_[call.lane];
  RETURN_IF_ERROR(Await(stream));
  if (Stopped()) return absl::AbortedError("stopped");
  std::vector<char> in(collective.in_bytes), out(collective.out_bytes);
  RETURN_IF_ERROR(Copy(*parts_.device, stream, collective.in, collective.in_bytes, in.data()));
  // Keeps what lies between the blocks of `out`.
  RETURN_IF_ERROR(Copy(*parts_.device, stream, collective.out, collective.out_bytes, out.data()));
  const bool in_place = collective.in == collective.out;
  RETURN_IF_ERROR(
      collective.library->Run(collective.step, in_place ? out.data() : in.data(), out.data()));
  return Copy(*parts_.device, stream, out.data(), collective.out_bytes, collective.out);
}

absl::Status CudaExecutor::Start(const CudaCall& call, const std::unique_ptr<CudaGemm>& gemm) {
  return gemm->Start(streams_[call.lane]);
}

absl::Status CudaExecutor::Await(absl::string_view call, const std::function<CUresult()>& query) {
  CUresult state = CUDA_ERROR_NOT_READY;
  const auto ready = [&] { return (state = query()) != CUDA_ERROR_NOT_READY; };
  const auto tell = [&] {
    WatchOut();
    if (Stopped()) AbortLibraries(WhyStopped());
    return false;
  };
  // No deadline: kernels have one of their own, and the watch has one for collectives. No spins on
  // a simulated GPU, which runs its threads within each query.
  WaitUntil({.spins = parts_.device->facts().simulated() ? 0u : 1000u,
             .timeout_ns = std::numeric_limits<int64_t>::max()},
            ready, tell);
  if (state == CUDA_SUCCESS) return absl::OkStatus();
  return WithContext(ToStatus(driver(), state, call), StepsName());
}

std::string CudaExecutor::StepsName() const {
  const auto steps = static_cast<int>(parts_.plan.steps.size());
  const std::string last = StepName(parts_.plan, steps - 1, parts_.rank);
  return steps <= 1 ? last : absl::StrCat("one of ", steps, " steps up to ", last);
}

absl::Status CudaExecutor::Await(CUstream stream) {
  return Await("cuStreamQuery", [this, stream] { return driver().StreamQuery(stream); });
}

void CudaExecutor::WatchOut() {
  if (Stopped()) return;
  // Steps are enqueued: a peer's later calls say nothing about this one.
  for (int peer = 0; peer < parts_.board->ranks(); ++peer) {
    if (peer != parts_.rank) parts_.board->Diverged(parts_.rank, peer, /*is_behind_counts=*/false);
  }
  if (parts_.board->Left().ok()) {
    stuck_ = CheckLibraries();
    stuck_.Update(watch_.Look());
    if (stuck_.ok()) return;
    const int step = watch_.UnderWay();
    stuck_ =
        absl::Status(stuck_.code(), absl::StrCat(StepName(parts_.plan, step, parts_.rank), ": ",
                                                 stuck_.message(), WhoHasFinished(step)));
  }
  OwnSign().Set(1 + static_cast<unsigned>(parts_.rank));
}

std::string CudaExecutor::WhoHasFinished(int step) const {
  const Plan& plan = parts_.plan;
  const auto* collective = step < 0 ? nullptr : std::get_if<CollectiveStep>(&plan.steps[step]);
  if (collective == nullptr) return "";
  const Mesh mesh{.stages = plan.stages, .nodes = plan.nodes, .ranks = plan.ranks / plan.nodes};
  const Members members = collective->kind == CollectiveStep::Kind::kSend
                              ? Column(mesh, parts_.rank)
                              : GroupOf(mesh, collective->group, parts_.rank);
  for (int i = 0; i < members.size; ++i) {
    if (!parts_.board->IsHere(members.Rank(i)))
      return absl::StrCat("; rank ", members.Rank(i), " has finished");
  }
  return "";
}

absl::Status CudaExecutor::CheckLibraries() const {
  for (const CudaCall& call : parts_.calls) {
    const auto* collective = std::get_if<StreamCollective>(&call.work);
    if (collective != nullptr) RETURN_IF_ERROR(collective->library->Check());
  }
  return absl::OkStatus();
}

absl::Status CudaExecutor::WhyStopped() const {
  return stuck_.ok() ? absl::AbortedError(absl::StrCat("rank ", OwnSign().Load() - 1, " gave up"))
                     : stuck_;
}

absl::Status CudaExecutor::GaveUp(int step) {
  AbortLibraries(WhyStopped());  // else the streams may never end
  if (!stuck_.ok()) return stuck_;
  HostControl seen{};
  Control control;
  RETURN_IF_ERROR(WithContext(Copy(*parts_.device, parts_.streams[0],
                                   parts_.sync->control->address(), sizeof control, &control),
                              StepName(parts_.plan, std::max(step, 0), parts_.rank)));
  seen.failure = control.failure;
  if (control.claimed == 0)
    seen.failure.step = std::max({step, aborted_step_, 0});  // no kernel failed
  seen.timeout_ns = control.timeout_ns;
  seen.failure.peer = seen.suspect =
      WorldRank(parts_.node, parts_.rank, parts_.plan.ranks, control.failure.peer);
  const int first = static_cast<int>(OwnSign().Load()) - 1;
  const absl::Status left = parts_.board->Left();
  if (first == parts_.rank) {
    seen.end = left.ok() ? WaitEnd::kDeadline : WaitEnd::kReady;
    return WhyGaveUp(seen, parts_.rank, *parts_.board, parts_.plan);
  }
  return absl::AbortedError(absl::StrCat(StepName(parts_.plan, seen.failure.step, parts_.rank),
                                         ": rank ", first,
                                         " gave up: ", parts_.sync->signs[first]->why()));
}

void CudaExecutor::StopOthers(const absl::Status& why) {
  StopSign& own = OwnSign();
  const bool is_first = own.Load() == 0 || own.Load() == 1 + static_cast<unsigned>(parts_.rank);
  if (is_first) own.SetWhy(why.message());
  own.Set(1 + static_cast<unsigned>(parts_.rank));
  for (int peer = 0; peer < parts_.stopping.size; ++peer) {
    StopSign* theirs = parts_.sync->signs[parts_.stopping.Rank(peer)].get();
    if (theirs != nullptr) theirs->Set(own.Load());
  }
}

void CudaExecutor::AbortLibraries(const absl::Status& why) {
  if (watch_.empty()) return;
  aborted_step_ = std::max(aborted_step_, watch_.UnderWay());
  for (StreamLibrary* library : parts_.stream_libraries) library->Abort(why);
}

absl::StatusOr<std::vector<StepSpan>> CudaExecutor::Trace() {
  RETURN_IF_ERROR(first_error_);
  ASSIGN_OR_RETURN(const InContext in, Enter());
  absl::StatusOr<std::vector<StepSpan>> spans = TraceRun();
  if (!spans.ok()) return SettledIfLost(spans.status());
  return spans;
}

absl::StatusOr<std::vector<StepSpan>> CudaExecutor::TraceRun() {
  const Device& device = *parts_.device;
  ASSIGN_OR_RETURN(const std::unique_ptr<Event> start, Event::Make(device, /*timed=*/true));
  std::vector<Marks> marks(parts_.calls.size());
  for (Marks& mark : marks) {
    ASSIGN_OR_RETURN(mark.begun, Event::Make(device, /*timed=*/true));
    ASSIGN_OR_RETURN(mark.ended, Event::Make(device, /*timed=*/true));
  }
  marks_ = std::move(marks);
  const absl::Cleanup forget = [this] { marks_.clear(); };
  RETURN_IF_CU(driver(), EventRecord, start->get(), parts_.streams[0]);
  RETURN_IF_ERROR(RunSteps(1));
  std::vector<StepSpan> spans;
  for (size_t step = 0; step < marks_.size(); ++step) {
    float begin_ms = 0, end_ms = 0;
    RETURN_IF_CU(driver(), EventElapsedTime, &begin_ms, start->get(), marks_[step].begun->get());
    RETURN_IF_CU(driver(), EventElapsedTime, &end_ms, start->get(), marks_[step].ended->get());
    const std::string label =
        std::visit([](const auto& s) { return s.label; }, parts_.plan.steps[step]);
    spans.push_back({label, parts_.calls[step].lane, 1e3 * begin_ms, 1e3 * end_ms});
  }
  return spans;
}

absl::StatusOr<std::unique_ptr<CudaGraph>> CudaGraph::Make(
    CudaExecutor& executor, const std::function<absl::Status()>& enqueue) {
  const DriverApi& driver = executor.driver();
  // Thread-local: other ranks' threads may make any driver call meanwhile.
  RETURN_IF_CU(driver, StreamBeginCapture, executor.stream(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  absl::Status status = enqueue();
  CUgraph graph = nullptr;
  status.Update(
      ToStatus(driver, driver.StreamEndCapture(executor.stream(), &graph), "cuStreamEndCapture"));
  CUgraphExec made = nullptr;  // in the graph, too, lane 1 comes first
  if (status.ok())
    status = ToStatus(driver,
                      driver.GraphInstantiateWithFlags(
                          &made, graph, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY),
                      "cuGraphInstantiateWithFlags");
  if (graph != nullptr) driver.GraphDestroy(graph);
  RETURN_IF_ERROR(status);
  return std::unique_ptr<CudaGraph>(new CudaGraph(executor, made));
}

CudaGraph::~CudaGraph() {
  const absl::StatusOr<InContext> in = executor_.device().Enter();
  if (!in.ok()) return;
  executor_.driver().StreamSynchronize(executor_.stream());
  executor_.driver().GraphExecDestroy(graph_);
}

absl::Status CudaGraph::RunSteps(int64_t steps) {
  return executor_.RunOwn(steps, [this] { return Launch(executor_.stream()); });
}

absl::Status CudaGraph::Enqueue(void* stream) {
  const auto at = static_cast<CUstream>(stream);
  return executor_.EnqueueIn(at, [&] { return Launch(at); });
}

absl::Status CudaGraph::Launch(CUstream stream) {
  return ToStatus(executor_.driver(), executor_.driver().GraphLaunch(graph_, stream),
                  "cuGraphLaunch");
}

}  // namespace coconet
