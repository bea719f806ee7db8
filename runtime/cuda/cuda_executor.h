#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "runtime/arguments.h"
#include "runtime/control/board.h"
#include "runtime/cuda/cuda_sync.h"
#include "runtime/cuda/driver/stop_sign.h"
#include "runtime/cuda/driver/stream_library.h"
#include "runtime/cuda/driver/stream_watch.h"
#include "runtime/cuda/gemm/cuda_gemm.h"
#include "runtime/cuda/memory/allocation.h"
#include "runtime/kernel_abi.h"
#include "runtime/mesh.h"
#include "runtime/node/plan_layout.h"
#include "runtime/rank.h"

namespace coconet {

/// A driver event, which orders streams.
class Event {
 public:
  /// `timed`: records the time at which it is reached.
  static absl::StatusOr<std::unique_ptr<Event>> Make(const Device& device, bool timed = false);
  explicit Event(const Device& device, CUevent event) : device_(device), event_(event) {}
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  CUevent get() const { return event_; }

 private:
  const Device& device_;
  CUevent event_;
};

/// A step of a plan with all its names resolved: a kernel launch.
struct CudaLaunch {
  CUfunction function;
  const Word* params;
  int blocks, threads;
  int64_t shared_bytes;  // dynamic, of a block
};
/// A library collective that runs in a stream.
struct StreamCollective {
  CollectiveStep step;
  const char* in;
  char* out;
  StreamLibrary* library;
  /// Recorded before and after it; by run, modulo the most runs in flight.
  std::vector<std::unique_ptr<Event>> begun = {}, ended = {};
};
/// A library collective by way of the host: between ranks that share a GPU, or if the stream
/// library does not take it.
struct StagedCollective {
  CollectiveStep step;
  char* in;
  char* out;
  int64_t in_bytes, out_bytes;
  Communicator* library;  // on host memory
};
using CudaWork =
    std::variant<CudaLaunch, StreamCollective, StagedCollective, std::unique_ptr<CudaGemm>>;
struct CudaCall {
  CudaWork work;
  int lane = 0;
  std::vector<CUevent> awaits = {};       // events of the other lane
  std::unique_ptr<Event> done = nullptr;  // null: no step of the other lane awaits it
};

/// The number of runs of a plan with stream collectives that are enqueued before the first of them
/// has ended: enough to hide the host's work for a run, and few enough that no call waits in the
/// driver for room in a stream, since no deadline ends such a wait. `calls`: calls per run.
int RunsAhead(size_t calls);

class CudaGraph;

/// A bound plan on a GPU. Each lane is a stream. If the plan has several launches, its runs become
/// a graph of the driver after some runs, if possible.
class CudaExecutor final : public BoundPlan {
 public:
  struct Parts {
    Plan plan;
    int rank = 0;           // world rank
    Members node = {};      // the ranks whose memory kernels address
    Members stopping = {};  // the ranks that give up together
    Board* board = nullptr;
    std::shared_ptr<Device> device;
    std::array<CUstream, kLanes> streams = {};
    /// Only `streams` run on the rank's multiprocessors, so that lane 0 is never a caller's stream.
    bool apart = false;
    /// By lane and group; on host memory.
    std::array<std::array<Communicator*, kGroups>, kLanes> libraries = {};
    std::array<StreamLibrary*, kLanes> stream_libraries = {};  // all null, or none
    double timeout_s = 60;
    std::shared_ptr<CudaSync> sync = nullptr;
    /// Between lanes 0 and 1, at the begin and the end of a run; null if lane 1 has no steps.
    std::unique_ptr<Event> begun = nullptr, joined = nullptr;
    /// If `apart`: between a caller's stream and lane 0, at the begin and the end of a run. `left`
    /// is of runs that are captured only; others record `last` there.
    std::unique_ptr<Event> entered = nullptr, left = nullptr;
    /// Recorded after the last run that Enqueue put in, or behind, a stream of the caller's.
    std::unique_ptr<Event> last = nullptr;
    /// Recorded after a run with stream collectives; by run, modulo the most runs in flight.
    std::vector<std::unique_ptr<Event>> run_ends = {};
    std::vector<CudaCall> calls = {};  // one per step
    LineWords params = {};             // argument blocks that launches point into
  };
  explicit CudaExecutor(Parts parts);
  ~CudaExecutor() override;

  absl::Status Run() override { return RunSteps(1); }
  absl::Status RunSteps(int64_t steps) override;
  absl::Status Enqueue(void* stream) override;
  absl::Status Wait() override;
  absl::StatusOr<std::unique_ptr<BoundPlan>> Capture(int64_t steps) override;
  absl::Status CheckSyncGuards() const override {
    return coconet::CheckSyncGuards(parts_.plan, *parts_.sync);
  }
  absl::StatusOr<std::vector<StepSpan>> Trace() override;

  const Device& device() const { return *parts_.device; }
  const DriverApi& driver() const { return device().driver(); }
  /// The stream of lane 0.
  CUstream stream() const { return parts_.streams[0]; }
  /// Calls `launch`, which enqueues runs of this plan in `stream`, and records what Wait waits for.
  absl::Status EnqueueIn(CUstream stream, const std::function<absl::Status()>& launch);
  /// Calls `launch`, which enqueues runs of this plan in the rank's own streams, `times` times, and
  /// waits for them.
  absl::Status RunOwn(int64_t times, const std::function<absl::Status()>& launch);

 private:
  /// Enqueues one run, with `stream` as lane 0.
  absl::Status EnqueueStep(CUstream stream);
  /// The same in the rank's own streams, ordered after and before the caller's work in `stream`.
  absl::Status EnqueueApart(CUstream stream, bool captured);
  /// Calls `enqueue` with whether `stream` is being captured.
  absl::Status EnqueueChecked(CUstream stream,
                              const std::function<absl::Status(bool captured)>& enqueue);
  /// Notes for Wait that runs given to Enqueue end here in `stream`.
  absl::Status NoteEnd(CUstream stream, bool captured);
  /// Enqueues one run in the rank's own streams: as a graph, once it has run some times.
  absl::Status EnqueueOwn();
  absl::StatusOr<std::unique_ptr<CudaGraph>> MakeGraph(int64_t steps);
  absl::Status StartCalls();
  /// Makes the device current for the calling thread.
  absl::StatusOr<InContext> Enter();
  absl::Status AwaitAll();
  absl::Status CaptureRuns(int64_t steps);
  absl::StatusOr<std::vector<StepSpan>> TraceRun();
  absl::Status CheckStreamsDoAll(bool captured) const;
  /// Waits until one more run with stream collectives may be in flight; lets `stream` continue at
  /// the end of the run before.
  absl::Status MakeRoom(CUstream stream);
  /// Keeps the first error and stops the other ranks.
  absl::Status Settled(const absl::Status& status);
  bool HasLibraryCollectives() const;
  /// The same for an error after which the GPU runs nothing more; else returns `status`.
  absl::Status SettledIfLost(const absl::Status& status);
  absl::Status Start(const CudaCall& call, const CudaLaunch& launch);
  absl::Status Start(const CudaCall& call, const StreamCollective& collective);
  absl::Status Start(const CudaCall& call, const StagedCollective& collective);
  absl::Status Start(const CudaCall& call, const std::unique_ptr<CudaGemm>& gemm);
  /// Polls `query`, a driver call, until it no longer returns "not ready"; meanwhile makes sure
  /// that it will.
  absl::Status Await(absl::string_view call, const std::function<CUresult()>& query);
  /// Waits until `stream` has no work left.
  absl::Status Await(CUstream stream);
  /// Names the failed step of a run that has been enqueued.
  std::string StepsName() const;
  /// Stops this rank when a rank has left the world, or when a library collective fails or exceeds
  /// its deadline.
  void WatchOut();
  absl::Status CheckLibraries() const;
  /// While no rank has left: "; rank 2 has finished" if that rank takes part in `step`; else "".
  std::string WhoHasFinished(int step) const;
  bool Stopped() const { return OwnSign().Load() != 0; }
  StopSign& OwnSign() const { return *parts_.sync->signs[parts_.rank]; }
  /// The reason, without asking the GPU.
  absl::Status WhyStopped() const;
  /// The error of this rank after it was stopped, with details from the GPU. `step`: where the stop
  /// was noticed; -1: at the end of a run.
  absl::Status GaveUp(int step);
  void StopOthers(const absl::Status& why);
  /// Aborts the communicators of the plan's stream collectives, so that the streams end; does
  /// nothing if the plan has none. Settled then makes this rank leave the world.
  void AbortLibraries(const absl::Status& why);

  Parts parts_;
  std::array<CUstream, kLanes> streams_;  // of the run that is being enqueued
  struct Marks {
    std::unique_ptr<Event> begun, ended;
  };
  std::vector<Marks> marks_;  // by step, while a run is traced
  // Enqueue was called, Wait not yet: in streams of callers, and in the rank's own.
  bool in_flight_ = false, own_in_flight_ = false;
  int64_t runs_ = 0;          // with stream collectives that were enqueued
  bool last_in_own_ = false;  // the last of them: lane 0 is the rank's own stream
  StreamWatch watch_;
  absl::Status stuck_;     // why a library collective does not end
  int aborted_step_ = -1;  // the collective in progress when the communicators were aborted
  absl::Status first_error_;
  int64_t direct_runs_ = 0;            // of RunSteps, not as a graph
  std::unique_ptr<CudaGraph> replay_;  // of one run
};

/// Runs of a plan as a graph of the driver.
class CudaGraph final : public BoundPlan {
 public:
  /// A graph of what `enqueue` enqueues in the executor's stream. The executor must outlive it.
  static absl::StatusOr<std::unique_ptr<CudaGraph>> Make(
      CudaExecutor& executor, const std::function<absl::Status()>& enqueue);
  ~CudaGraph() override;

  absl::Status Run() override { return RunSteps(1); }
  absl::Status RunSteps(int64_t steps) override;
  absl::Status Enqueue(void* stream) override;
  absl::Status Wait() override { return executor_.Wait(); }
  /// Enqueues the runs in `stream`, of a context that is current.
  absl::Status Launch(CUstream stream);

 private:
  CudaGraph(CudaExecutor& executor, CUgraphExec graph) : executor_(executor), graph_(graph) {}

  CudaExecutor& executor_;
  CUgraphExec graph_;
};

}  // namespace coconet
