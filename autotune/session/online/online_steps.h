#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autotune/session/backing.h"
#include "autotune/session/online/candidates.h"
#include "autotune/session/online/explorer.h"
#include "autotune/session/online/readings.h"
#include "autotune/session/online/record_writer.h"
#include "autotune/session/session_state.h"

namespace coconet {

/// What the candidates of a program need of the memory that they share with it.
SharedNeeds NeedsOfCandidates(const CompiledProgram& program);

/// The steps of a binding while it explores: the plans of its candidates, on the memory of its own,
/// and which call runs which. One per rank; Step is called in the same order on all ranks.
class OnlineSteps {
 public:
  /// Collective. Binds each candidate that finds the memory it needs on all ranks. `memory`: of
  /// MemoryFor with NeedsOfCandidates. Null, with a warning, if ranks need not run the program's
  /// steps together, or if collectives outlast a step: calls that count the steps are then no calls
  /// of all ranks alike.
  static absl::StatusOr<std::unique_ptr<OnlineSteps>> Bind(
      std::shared_ptr<const CompiledProgram> program, const BoundMemory& memory);
  ~OnlineSteps();

  /// Runs the next step by `run`, which is given a plan: `incumbent`'s or a candidate's. At some
  /// calls the ranks exchange times after it; then `incumbent` may become another plan.
  absl::Status Step(std::unique_ptr<BoundPlan>& incumbent,
                    absl::FunctionRef<absl::Status(BoundPlan&)> run) {
    const Explorer::Call call = explorer_.Next();
    explored_ = call.agrees || call.variant != explorer_.incumbent();
    return call.timed ? TimedStep(call, incumbent, run) : run(*incumbent);
  }
  /// Whether the latest step ran a candidate, or let the ranks agree.
  bool explored() const { return explored_; }
  /// Whether some plan needs peers in a step.
  bool meets() const { return meets_; }

 private:
  /// A plan on its memory, and the number of its candidate.
  struct Bound {
    int candidate = -1;  // -1: the variant that Compile has returned
    std::vector<std::shared_ptr<Memory>> memory = {};
    std::unique_ptr<BoundPlan> plan = nullptr;  // null: the incumbent's, which its caller has
  };

  OnlineSteps(std::shared_ptr<const CompiledProgram> program, std::vector<Bound> variants,
              Explorer explorer);

  absl::Status TimedStep(const Explorer::Call& call, std::unique_ptr<BoundPlan>& incumbent,
                         absl::FunctionRef<absl::Status(BoundPlan&)> run);
  /// Collective. The times of the calls since the last one, as all ranks see them; and a decision.
  absl::Status Agree(std::unique_ptr<BoundPlan>& incumbent);
  /// The variant's result by what the job has seen; times of the preparation by that factor.
  VariantResult ResultOf(int variant, double level) const;
  /// On rank 0: begins to store what the job has seen.
  void Store();
  void Tell(const std::string& text) const;
  const VariantResult& Prepared(int variant) const;

  const std::shared_ptr<const CompiledProgram> program_;
  const Exploration& exploration_;
  std::vector<Bound> variants_;
  Explorer explorer_;
  Readings readings_;
  double stored_us_ = 0;  // when the record was stored, or none was made yet
  int decided_ = 0;       // variants, when the record was stored
  bool news_ = false;     // since then
  bool explored_ = false, meets_ = false, told_end_ = false;
  std::unique_ptr<RecordWriter> writer_;  // on rank 0, if its cache stores
};

}  // namespace coconet
