#ifndef COCONET_RUNTIME_CUDA_CUDA_EXECUTOR_H_
#define COCONET_RUNTIME_CUDA_CUDA_EXECUTOR_H_

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "runtime/cuda/driver/stop_sign.h"
#include "runtime/cuda/driver/stream_library.h"
#include "runtime/cuda/driver/stream_watch.h"
#include "runtime/cuda/gemm/cuda_gemm.h"
#include "runtime/cuda/memory/allocation.h"
#include "runtime/kernel_abi.h"
#include "runtime/mesh.h"
#include "runtime/node/board.h"
#include "runtime/rank.h"

namespace coconet {

/// An event of the driver, for order between streams.
class Event {
 public:
  /// `timed`: with the time when it was reached.
  static absl::StatusOr<std::unique_ptr<Event>> Make(const Device& device, bool timed = false);
  explicit Event(const Device& device, CUevent event) : device_(device), event_(event) {}
  ~Event() { device_.driver().EventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  CUevent get() const { return event_; }

 private:
  const Device& device_;
  CUevent event_;
};

/// Steps of a plan with everything looked up.
struct CudaLaunch {
  CUfunction function;
  const Word* params;
  int blocks, threads;
};
/// A library collective that its stream does.
struct StreamCollective {
  CollectiveStep step;
  const char* in;
  char* out;
  StreamLibrary* library;
  std::unique_ptr<Event> begun, ended;
};
/// A library collective by way of the host: between ranks that share a GPU, or of what no library
/// does on streams.
struct StagedCollective {
  CollectiveStep step;
  char* in;
  char* out;
  int64_t in_bytes, out_bytes;
  Communicator* library;  // between host memory
};
using CudaWork =
    std::variant<CudaLaunch, StreamCollective, StagedCollective, std::unique_ptr<CudaGemm>>;
struct CudaCall {
  CudaWork work;
  int lane = 0;
  std::vector<CUevent> awaits = {};       // of the other lane
  std::unique_ptr<Event> done = nullptr;  // null: nobody of the other lane waits for it
};

/// A bound plan on a GPU: each lane is a stream.
class CudaExecutor final : public BoundPlan {
 public:
  struct Parts {
    Plan plan;
    int rank = 0;           // in the world
    Members node = {};      // whose memory kernels reach
    Members stopping = {};  // those that give up together
    Board* board = nullptr;
    std::shared_ptr<Device> device;
    std::array<CUstream, kLanes> streams = {};
    bool apart =
        false;  // these alone run on the rank's multiprocessors: lane 0 is never a caller's stream
    std::array<std::array<Communicator*, kGroups>, kLanes> libraries =
        {};  // by lane and group, between the host's memory
    std::array<StreamLibrary*, kLanes> stream_libraries = {};  // all, or none
    double timeout_s = 60;
    std::unique_ptr<Memory> shared = nullptr,
                            local = nullptr;  // symmetric sync buffers, and the others
    std::shared_ptr<Allocation> control = nullptr;
    std::shared_ptr<Allocation> tables = nullptr;  // of kernels over lists
    std::vector<std::unique_ptr<StopSign>> signs =
        {};  // by world rank; null for those that share no memory
    std::array<std::shared_ptr<Allocation>, kLanes> workspaces =
        {};  // of each lane's matrix products
    std::unique_ptr<Event>
        begun = nullptr,
        joined =
            nullptr;  // of a step: between lane 0 and lane 1, null where that has nothing to do
    std::unique_ptr<Event> entered = nullptr,
                           left = nullptr;  // `apart`: between a caller's stream and lane 0
    std::unique_ptr<Event> last = nullptr;  // behind the last step enqueued
    std::vector<CudaCall> calls = {};       // one a step
    std::vector<Word> params = {};          // what launches point into
  };
  explicit CudaExecutor(Parts parts);
  ~CudaExecutor() override;

  absl::Status Run() override { return RunSteps(1); }
  absl::Status RunSteps(int64_t steps) override;
  absl::Status Enqueue(void* stream) override;
  absl::Status Wait() override;
  absl::StatusOr<std::unique_ptr<BoundPlan>> Capture(int64_t steps) override;
  absl::StatusOr<std::vector<StepSpan>> Trace() override;

  const DriverApi& driver() const { return parts_.device->driver(); }
  /// Of lane 0.
  CUstream stream() const { return parts_.streams[0]; }
  /// What `enqueue` has enqueued in `stream`, steps of this plan, is what Wait waits for from now
  /// on.
  absl::Status EnqueueIn(CUstream stream, const std::function<absl::Status()>& enqueue);

 private:
  /// One step, lane 0 of which is `stream`.
  absl::Status EnqueueStep(CUstream stream);
  /// The same on streams of the rank's own, between what `stream` has before and gets behind it.
  absl::Status EnqueueApart(CUstream stream);
  absl::Status StartCalls();
  absl::Status AwaitAll();
  absl::Status CheckStreamsDoAll(bool captured) const;
  /// Notes the first error, and stops the others.
  absl::Status Settled(const absl::Status& status);
  absl::Status Start(const CudaCall& call, const CudaLaunch& launch);
  absl::Status Start(const CudaCall& call, const StreamCollective& collective);
  absl::Status Start(const CudaCall& call, const StagedCollective& collective);
  absl::Status Start(const CudaCall& call, const std::unique_ptr<CudaGemm>& gemm);
  /// Returns when `query`, of the driver, does not say "not ready" any more; sees to it that it
  /// comes to that.
  absl::Status Await(absl::string_view call, const std::function<CUresult()>& query);
  absl::Status Await(int lane);
  /// Stops this rank when the world has lost one, or when a library's collective fails or comes to
  /// its deadline.
  void WatchOut();
  absl::Status CheckLibraries() const;
  /// While nobody has left: "; rank 2 has finished" where that is so of one with whom the step is;
  /// else "".
  std::string WhoHasFinished(int step) const;
  bool Stopped() const { return OwnSign().Load() != 0; }
  StopSign& OwnSign() const { return *parts_.signs[parts_.rank]; }
  /// In short, without asking the GPU.
  absl::Status WhyStopped() const;
  /// Why this rank has given up; `step`: where it was seen, -1: at the end.
  absl::Status GaveUp(int step);
  void StopOthers(const absl::Status& why);
  /// The plan's collectives of streams end: the libraries are nobody's any more. Nothing where it
  /// has none. The world ends, too, once it is known why (Settled).
  void AbortLibraries(const absl::Status& why);

  Parts parts_;
  std::array<CUstream, kLanes> streams_;  // of the step that is being enqueued
  struct Marks {
    std::unique_ptr<Event> begun, ended;
  };
  std::vector<Marks> marks_;  // by step, while one is traced
  bool in_flight_ = false;    // Enqueue was called, and Wait not yet
  StreamWatch watch_;
  absl::Status stuck_;     // why a library's collective does not end
  int aborted_step_ = -1;  // that was under way when the libraries were aborted
  absl::Status first_error_;
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_CUDA_CUDA_EXECUTOR_H_
