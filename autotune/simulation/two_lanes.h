#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "autotune/simulation/simulate.h"

namespace coconet {

/// Two lanes of one rank with orders: does what Simulate does, for a search that changes a few
/// tasks at a time. The tasks of one lane that a task depends on come in a known order, so the last
/// of them says when it may begin; a state is then two positions and the rest of two tasks, and is
/// kept at each event.
class TwoLanes {
 public:
  struct Step {
    double us = 0;
    bool is_collective = false;
    int needs = 0;  // tasks of the other lane, from its begin on, that must have ended
    bool operator==(const Step&) const = default;
  };
  using Lanes = std::array<std::vector<Step>, 2>;
  /// How lanes differ from those of the last Run: by lane, the first step that differs, and how
  /// many steps at the end are the same. Equal steps need the same steps of the other lane, or, if
  /// these differ, some other step that differs.
  struct Change {
    std::array<int, 2> first = {0, 0}, kept = {0, 0};
  };

  explicit TwoLanes(const Contention& contention) : contention_(contention) {}

  /// Simulates the lanes. Returns the end of the last step; infinity if steps wait for each other.
  /// O(steps) from the first step on that differs.
  double Run(const Lanes& lanes, const Change& change);
  double Run(const Lanes& lanes) { return Run(lanes, Change()); }
  /// The same, but the lanes of the last Run remain the base of the next change. Ends as soon as
  /// the state is one of the last Run, except for the time.
  double Try(const Lanes& lanes, const Change& change) const;

  /// The interval of a step in the last Run, which must not have returned infinity.
  const Timeline::Interval& Of(int lane, int step) const { return intervals_[lane][step]; }

 private:
  struct State {
    double now = 0;
    std::array<int, 2> started = {0, 0};
    std::array<double, 2> left = {kIdle, kIdle};  // us alone, of the step that runs
    int ended(int lane) const { return started[lane] - (left[lane] != kIdle); }
  };
  static constexpr double kIdle = -1;

  /// The index of the last state before any step that differs can begin.
  size_t StateBefore(const Change& change) const;
  /// Begins the steps that may begin. False if nothing runs.
  static bool Begin(const Lanes& lanes, State& state);
  /// Advances to the next end of a step.
  void Advance(const Lanes& lanes, State& state) const;
  static double EndOf(const Lanes& lanes, const State& state);

  Contention contention_;
  std::vector<State> states_ = {State()};                     // of the last Run, at each event
  std::array<int, 2> sizes_ = {0, 0};                         // of the last Run
  double us_ = 0;                                             // of the last Run
  std::array<std::vector<Timeline::Interval>, 2> intervals_;  // of the last Run
};

}  // namespace coconet
