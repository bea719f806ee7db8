#ifndef COCONET_AUTOTUNE_SESSION_BOUND_PROGRAM_H_
#define COCONET_AUTOTUNE_SESSION_BOUND_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coconet/base/dtype.h"
#include "runtime/rank.h"

namespace coconet {

struct BoundRep;
struct SessionState;

/// A scalar input's place; look it up once, set it every step.
struct ScalarRef {
  void* address = nullptr;
  DType dtype{};
};

/// Steps of a program as one graph. Movable; destroyed before the program, and not used beside it.
class CapturedSteps {
 public:
  /// All of them: local; returns when they are done.
  absl::Status Run();
  /// The same behind what `stream` holds. Wait returns when it is done, and says what the steps
  /// met.
  absl::Status Enqueue(void* stream);
  absl::Status Wait();

 private:
  friend class BoundProgram;
  CapturedSteps(SessionState& session, std::unique_ptr<BoundPlan> graph)
      : session_(&session), graph_(std::move(graph)) {}
  SessionState* session_;
  std::unique_ptr<BoundPlan> graph_;
};

/// A tuned program on its buffers. Movable. Used by its rank's thread only. Destroyed collectively,
/// before its Session.
class BoundProgram {
 public:
  BoundProgram(BoundProgram&&);
  BoundProgram& operator=(BoundProgram&&);
  ~BoundProgram();

  absl::StatusOr<ScalarRef> Scalar(
      absl::string_view name) const;  // NotFound names the scalars there are
  void Set(const ScalarRef& scalar, double value) {
    StoreElement(scalar.dtype, scalar.address, 0, value);
  }

  /// One step: local, no allocation, no lookup, no lock; blocks until this rank's part is done
  /// (host backend). After a timeout or a dead peer every call returns the first error, and states
  /// are undefined.
  absl::Status Run();
  /// Run, so many times; on GPUs a step is enqueued before the last one has ended.
  absl::Status RunSteps(int64_t steps);
  /// GPUs: enqueues one step behind what `stream` (a CUstream or cudaStream_t) holds, and returns;
  /// where that is being captured, the step becomes part of the graph. No allocation, lookup or
  /// lock. Wait, and every later call, say what the step met. Scalars are read when the step runs.
  /// Ranks that share a GPU have streams of their own. Unimplemented on the host;
  /// FailedPrecondition where tensors are copied at every step, or a collective goes by way of the
  /// host.
  absl::Status Enqueue(void* stream);
  /// Returns when what Enqueue was given is done.
  absl::Status Wait();
  /// GPUs: so many steps as one graph of the driver, for programs of short steps. Errors as of
  /// Enqueue.
  absl::StatusOr<CapturedSteps> Capture(int64_t steps);

  /// GPUs: Run, and when each step of the plan was under way, by the GPU's clock: what a step's
  /// time goes to. Errors as of Enqueue.
  absl::StatusOr<std::vector<StepSpan>> Trace();

  /// Collective. A tensor in canonical form: all elements of the global tensor, row major, whatever
  /// the schedule keeps where; of a Local tensor this rank's values. `elements` must match. Works
  /// for every input, state and output.
  absl::Status Read(absl::string_view name, void* out, int64_t elements) const;
  absl::Status Write(absl::string_view name, const void* in, int64_t elements);
  /// Collective. All states, canonical, one file written by rank 0 (atomically) / read by all;
  /// independent of the schedule and of the number of ranks. With several stages one a stage:
  /// `path`.stage0, ... Local states are not part of a checkpoint: FailedPrecondition when there is
  /// one.
  absl::Status Save(const std::string& path) const;
  absl::Status Load(const std::string& path);

 private:
  friend class TunedProgram;
  explicit BoundProgram(std::unique_ptr<BoundRep> rep);
  std::unique_ptr<BoundRep> rep_;
};

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_SESSION_BOUND_PROGRAM_H_
