#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "absl/types/span.h"
#include "coconet/ir/graph.h"
#include "coconet/reference/bounded.h"

namespace coconet {

struct Evaluated;

/// Arithmetic on elements of one type, in the same places, of which only the last result is used
/// elsewhere: one loop over steps instead of values and lists of elements for each of its nodes.
class PointwiseRun {
 public:
  /// An operand that the run does not compute: the node's operand of this number.
  struct Given {
    NodeId node;
    size_t operand;
  };
  const std::vector<Given>& given() const { return given_; }

  /// The values of the last step; `given` are those of given(). To the bit what BoundedPointwise
  /// makes of step after step.
  Bounded Compute(absl::Span<const Bounded* const> given) const;

 private:
  friend class RunBuilder;

  struct Argument {
    enum class Kind { kSlot, kGiven, kConstant };
    Kind kind;
    size_t at;
  };
  struct Step {
    Pw fn;
    std::vector<Argument> args;
    size_t slot;  // of the result; no argument is in it
  };

  Bounded OfFloats(absl::Span<const Bounded* const> outside, size_t size) const;
  Bounded OfIntegers(absl::Span<const Bounded* const> outside, size_t size) const;
  Bounded StepByStep(absl::Span<const Bounded* const> outside) const;
  /// Given values, and behind them constants.
  size_t OutsideOf(const Argument& argument) const {
    return argument.at + (argument.kind == Argument::Kind::kConstant ? given_.size() : 0);
  }

  DType type_{};
  std::vector<Given> given_;
  std::vector<Bounded> constants_;
  std::vector<Step> steps_;
  size_t slots_ = 0;
};

/// The runs of a program, by the node of the last step; each has two steps or more. `kept`: nodes
/// whose values are needed for other reasons, too; empty: none.
std::map<NodeId, PointwiseRun> RunsOf(const Evaluated& e, const std::vector<bool>& kept);

}  // namespace coconet
