#pragma once

#include <utility>
#include <vector>

#include "jit/config/target.h"
#include "jit/expressions/kernel_text.h"
#include "jit/lower/lower.h"
#include "jit/lower/programs.h"

namespace coconet {

/// A plan and the text of its kernels while they grow. The buffers of a step are those of its
/// tensor's program, by their numbers there; Finish gives them places in the plan.
class Draft {
 public:
  explicit Draft(const Target& target);

  int size() const { return static_cast<int>(steps_.size()); }
  /// The last step so far on a lane; -1: none.
  int LastStepOn(int lane) const { return last_on_[lane]; }

  /// The lane of the steps that are added from now on, and the step that these wait for; -1: none.
  void Continue(int lane, int after);

  /// `bytes`: the bytes that the step moves. `rows`: the tensors of a kernel's table.
  template <class AnyStep>
  void Add(AnyStep step, int64_t bytes, int tensor, std::vector<int> rows = {}) {
    step.lane = lane_;
    step.after = after_;
    last_on_[lane_] = size();
    lowered_.plan.bytes_per_rank += bytes;
    steps_.push_back({std::move(step), tensor, std::move(rows)});
  }
  /// Marks the steps from `begin` on as one overlap.
  void AddOverlap(int begin) {
    if (begin < size()) lowered_.plan.overlaps.emplace_back(begin, size());
  }
  /// Adds the definition of a kernel that steps launch.
  void AddSource(const EmittedKernel& kernel) { lowered_.kernels.Add(kernel.symbol, kernel.text); }

  Lowered Finish(const Programs& programs) &&;

 private:
  struct Entry {
    Step step;
    int tensor;
    std::vector<int> rows;
  };

  Lowered lowered_;
  std::vector<Entry> steps_;
  int lane_ = 0;
  std::vector<int> after_;
  int last_on_[kLanes];
};

}  // namespace coconet
