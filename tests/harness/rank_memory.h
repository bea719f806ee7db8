#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "coconet/schedule/schedule.h"
#include "runtime/rank.h"
#include "tests/harness/placement.h"
#include "tests/harness/test_data.h"

namespace coconet {

/// A tensor of a schedule on one rank.
struct Placed {
  std::string name;
  int buffer = -1;  // of the plan
  Placement placement;
};

/// One rank's memory for a lowered schedule, with canaries between the buffers.
class RankMemory {
 public:
  /// Collective. `shared`: temporaries lie as in a job (PlaceTemporaries), with canaries behind all
  /// of them.
  static absl::StatusOr<RankMemory> Allocate(Rank& rank, const Schedule& schedule, const Plan& plan,
                                             bool shared = false);

  /// For Bind.
  std::vector<Memory*> buffers() const;
  /// What a step may change: states, then outputs.
  const std::vector<Placed>& results() const { return results_; }

  /// Before a step: fills the memory with NaNs, except the inputs' own elements and, after the
  /// first step, the states.
  void Fill(const StepData& data, int step);
  /// Before a step that may run beside the end of the one before: fills inputs and outputs only.
  void FillForHost(const StepData& data, int step);
  /// After a step, on simulated GPUs: an error unless all elements of outputs were written.
  absl::Status CheckWritten() const;
  /// After a step: an error unless inputs, padding included, and the canaries are unchanged.
  absl::Status CheckUntouched() const;
  /// The elements of results(), one after the other, without padding.
  std::string Read() const;
  std::string ReadOutputs() const;

 private:
  RankMemory(const Rank& rank, const Plan& plan)
      : rank_(rank.rank()), first_(rank.stage() * rank.mesh().stage_size()), plan_(&plan) {}
  absl::Status AllocateBuffers(Rank& rank, bool shared);
  absl::Status PlaceTensors(Rank& rank, const Schedule& schedule);
  std::string ReadIf(absl::FunctionRef<bool(BufferRole)> reads) const;
  int IndexOf(const std::string& name) const;
  /// Whether the buffer is an output or a temporary, whose content before a step is undefined.
  bool IsComputed(size_t buffer) const;
  void RememberInputs();
  void FillTensor(const Placed& tensor, const StepData& data, int step);
  /// Maps the memory for the host, so that own() reads a buffer's present content.
  void Look() const;
  char* own(size_t buffer) const {
    return views_[plan_->buffers[buffer].symmetric]->data() + begins_[buffer];
  }
  int64_t BytesOf(size_t buffer) const;

  int rank_;
  int first_;  // rank of its stage
  const Plan* plan_;
  std::unique_ptr<Memory> symmetric_, local_;     // what the buffers are cut from
  mutable std::optional<HostView> views_[2];      // of local_ and symmetric_
  std::vector<int64_t> begins_;                   // of buffers, in what they are cut from
  std::vector<bool> alone_;                       // of buffers: they have canaries around
  std::vector<std::unique_ptr<Memory>> buffers_;  // null: flags and counters, which Bind allocates
  std::vector<Placed> inputs_, results_;
  std::vector<std::string> inputs_before_;
};

}  // namespace coconet
