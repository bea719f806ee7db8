#include "autotune/simulation/two_lanes.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace coconet {

size_t TwoLanes::StateBefore(const Change& change) const {
  // The first at which a step that differs might begin.
  const auto is_before = [&](const State& state, const std::array<int, 2>& first) {
    return state.ended(0) < first[0] && state.ended(1) < first[1];
  };
  const auto state = std::lower_bound(states_.begin(), states_.end(), change.first, is_before);
  return std::min<size_t>(state - states_.begin(), states_.size() - 1);
}

bool TwoLanes::Begin(const Lanes& lanes, State& state) {
  for (int lane : {0, 1}) {
    if (state.left[lane] != kIdle || state.started[lane] == static_cast<int>(lanes[lane].size()))
      continue;
    const Step& step = lanes[lane][state.started[lane]];
    if (state.ended(1 - lane) < step.needs) continue;
    ++state.started[lane];
    state.left[lane] = step.us;
  }
  return state.left[0] != kIdle || state.left[1] != kIdle;
}

void TwoLanes::Advance(const Lanes& lanes, State& state) const {
  constexpr double kRounding = 1 + 1e-12;  // as Simulate
  std::array<double, 2> slowdown = {1, 1};
  const bool both = state.left[0] != kIdle && state.left[1] != kIdle;
  if (both) {
    const bool communicates[] = {lanes[0][state.started[0] - 1].is_collective,
                                 lanes[1][state.started[1] - 1].is_collective};
    if (communicates[0] != communicates[1]) {
      for (int lane : {0, 1})
        slowdown[lane] = communicates[lane] ? contention_.collective : contention_.computation;
    } else if (communicates[0]) {
      slowdown = {contention_.collectives, contention_.collectives};
    }
  }
  double us = std::numeric_limits<double>::infinity();
  for (int lane : {0, 1}) {
    if (state.left[lane] != kIdle) us = std::min(us, state.left[lane] * slowdown[lane]);
  }
  state.now += us;
  for (int lane : {0, 1}) {
    if (state.left[lane] == kIdle) continue;
    const bool ends = state.left[lane] * slowdown[lane] <= us * kRounding;
    state.left[lane] = ends ? kIdle : state.left[lane] - us / slowdown[lane];
  }
}

double TwoLanes::EndOf(const Lanes& lanes, const State& state) {
  const bool all = state.started[0] == static_cast<int>(lanes[0].size()) &&
                   state.started[1] == static_cast<int>(lanes[1].size());
  return all ? state.now : std::numeric_limits<double>::infinity();
}

double TwoLanes::Run(const Lanes& lanes, const Change& change) {
  states_.resize(StateBefore(change) + 1);
  State state = states_.back();
  for (int lane : {0, 1}) intervals_[lane].resize(lanes[lane].size());
  sizes_ = {static_cast<int>(lanes[0].size()), static_cast<int>(lanes[1].size())};
  while (true) {
    const State before = state;
    if (!Begin(lanes, state)) break;
    for (int lane : {0, 1}) {
      if (state.started[lane] > before.started[lane])
        intervals_[lane][state.started[lane] - 1].begin = state.now;
    }
    const State running = state;
    Advance(lanes, state);
    for (int lane : {0, 1}) {
      if (state.ended(lane) > running.ended(lane))
        intervals_[lane][state.started[lane] - 1].end = state.now;
    }
    states_.push_back(state);
  }
  return us_ = EndOf(lanes, state);
}

double TwoLanes::Try(const Lanes& lanes, const Change& change) const {
  constexpr double kEqual = 1e-9;  // us
  size_t old = StateBefore(change);
  State state = states_[old];
  const int size[] = {static_cast<int>(lanes[0].size()), static_cast<int>(lanes[1].size())};
  while (true) {
    if (!Begin(lanes, state)) return EndOf(lanes, state);
    Advance(lanes, state);
    if (state.ended(0) < size[0] - change.kept[0] || state.ended(1) < size[1] - change.kept[1])
      continue;
    // The state of the last Run with as many steps left.
    const int started[] = {state.started[0] - size[0] + sizes_[0],
                           state.started[1] - size[1] + sizes_[1]};
    const auto is_before = [&](const State& s) {
      return s.started[0] < started[0] || s.started[1] < started[1];
    };
    while (old < states_.size() && is_before(states_[old])) ++old;
    if (old == states_.size()) continue;
    const State& then = states_[old];
    const bool same = then.started[0] == started[0] && then.started[1] == started[1] &&
                      std::abs(then.left[0] - state.left[0]) <= kEqual &&
                      std::abs(then.left[1] - state.left[1]) <= kEqual;
    if (same) return us_ + (state.now - then.now);
  }
}

}  // namespace coconet
