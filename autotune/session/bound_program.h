#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autotune/session/binding.h"
#include "coconet/base/dtype.h"
#include "runtime/rank.h"

namespace coconet {

struct BoundRep;
struct SessionState;

/// Address of a scalar input: looked up once, set before every step, until the session is closed.
struct ScalarRef {
  void* address = nullptr;
  DType dtype{};
};

/// Steps of a program as one graph. Movable; destroyed before the program, and never used at the
/// same time.
class CapturedSteps {
 public:
  /// Local. Runs all steps; returns when they are done.
  absl::Status Run();
  /// Enqueues all steps in `stream`. Wait returns when they are done, with their first error.
  absl::Status Enqueue(void* stream);
  absl::Status Wait();

 private:
  friend class BoundProgram;
  CapturedSteps(std::shared_ptr<SessionState> session, std::unique_ptr<BoundPlan> graph)
      : session_(std::move(session)), graph_(std::move(graph)) {}
  std::shared_ptr<SessionState> session_;
  std::unique_ptr<BoundPlan> graph_;
};

/// A tuned program bound to memory, which it shares if it is a DeviceBuffer's. Movable. Used by any
/// thread, as Session says. On GPUs it is destroyed collectively.
class BoundProgram {
 public:
  BoundProgram(BoundProgram&&);
  BoundProgram& operator=(BoundProgram&&);
  ~BoundProgram();

  /// OK if the next call would be admitted, as Session says; else FailedPrecondition.
  absl::Status Check(absl::string_view operation) const;

  /// NotFound names the program's scalars.
  absl::StatusOr<ScalarRef> Scalar(absl::string_view name) const;
  /// Sets the scalar for the next step. InvalidArgument if its dtype does not hold the number: it
  /// keeps the previous value.
  absl::Status Set(const ScalarRef& scalar, const Number& value) {
    if (absl::Status held = CheckHolds(scalar.dtype, value); !held.ok()) return held;
    StoreElement(scalar.dtype, scalar.address, 0, value);
    return absl::OkStatus();
  }

  /// Local. Runs one step, and returns when this rank's part is done. Allocates nothing, looks
  /// nothing up, takes no lock, except in the few calls in which ranks agree while the job explores
  /// (Policy::kOnline). After a timeout or the death of a peer, every call returns the
  /// first error, and states are undefined.
  absl::Status Run();
  /// Runs one step, and returns when its outputs are complete. Collectives whose results only
  /// states take may continue beside the next step. Inputs may be written then, and outputs read;
  /// states in the caller's memory are complete after Wait or Run. Errors of continuing collectives
  /// are returned by the next call. The same as Run on GPUs, with tensors that are copied at every
  /// step, and with MPI that was initialised with less than MPI_THREAD_MULTIPLE.
  absl::Status Advance();
  /// Whether the latest step ran another variant than the best so far, or let the ranks agree on
  /// what they have seen (Policy::kOnline): its time says nothing of later ones.
  bool explored() const;
  /// Runs `steps` steps, as Advance does, and waits; on GPUs a step is enqueued before the previous
  /// one has ended.
  absl::Status RunSteps(int64_t steps);
  /// GPUs: enqueues one step in `stream` (a CUstream or cudaStream_t) and returns; in a stream that
  /// is being captured, the step becomes part of the graph. Allocates nothing, looks nothing up,
  /// takes no lock; in Session::stream with the fewest calls of the driver. Wait, and every later
  /// call, return the step's error. Scalars are read when the step runs. Ranks that share a GPU use
  /// different streams. Unimplemented on the host; FailedPrecondition if tensors are copied at
  /// every step, or if a collective passes through the host.
  absl::Status Enqueue(void* stream);
  /// Returns when all enqueued steps, and collectives that continue after Advance, are done.
  absl::Status Wait() const;
  /// GPUs: captures `steps` steps as one graph of the driver, for short steps. Errors as of
  /// Enqueue.
  absl::StatusOr<CapturedSteps> Capture(int64_t steps);

  /// Runs one step and returns when each launch of the plan began and ended, by the GPU's clock
  /// (errors as of Enqueue) or the host's.
  absl::StatusOr<std::vector<StepSpan>> Trace();
  /// Runs one step and appends it to the Session's trace (Session::WriteTrace), until that has
  /// StepTrace::kSteps.
  absl::Status RunTraced();

  /// Collective; waits as Wait does. Copies an input, state or output in canonical form: all
  /// elements of the global tensor, row major, whatever its layout; of a Local tensor, this rank's
  /// values. InvalidArgument, on all ranks, unless dtype, elements and shape are the tensor's.
  absl::Status Read(absl::string_view name, const ForeignTensor& to) const;
  absl::Status Write(absl::string_view name, const ForeignTensor& from);
  absl::Status Read(absl::string_view name, DType dtype, void* out, int64_t elements) const {
    return Read(name, ForeignTensor::Of(dtype, out, elements));
  }
  absl::Status Write(absl::string_view name, DType dtype, const void* in, int64_t elements) {
    return Write(name, ForeignTensor::Of(dtype, in, elements));
  }
  template <class T>
  absl::Status Read(absl::string_view name, T* out, int64_t elements) const {
    return Read(name, ForeignTensor::Of(out, elements));
  }
  template <class T>
  absl::Status Write(absl::string_view name, const T* in, int64_t elements) {
    return Write(name, ForeignTensor::Of(in, elements));
  }
  /// Collective; waits as Wait does. Saves all states to, or loads them from, one file in canonical
  /// form, which depends on neither the schedule nor the number of ranks. Rank 0 writes it,
  /// atomically; all ranks read. With several pipeline stages, one file per stage: `path`.stage0,
  /// ... FailedPrecondition for a program with Local states.
  absl::Status Save(const std::string& path) const;
  absl::Status Load(const std::string& path);

 private:
  friend class TunedProgram;
  explicit BoundProgram(std::unique_ptr<BoundRep> rep);
  std::unique_ptr<BoundRep> rep_;
};

}  // namespace coconet
