#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "autotune/simulation/simulate.h"
#include "autotune/simulation/task_graph.h"
#include "coconet/base/json.h"

namespace coconet {

/// Tasks of a rank, each of which begins when the one before it ends (or, a collective, when the
/// last rank arrives at it), from the begin of the iteration to its end.
struct CriticalTask {
  int rank = 0, task = 0;
  bool operator==(const CriticalTask&) const = default;
};
/// `timeline` is that of `graph`. If several tasks end last, or let a task begin, the path takes a
/// dependency before the previous task of its lane, then the smallest number.
std::vector<CriticalTask> CriticalPath(const TaskGraph& graph, const Timeline& timeline);

/// Microseconds in which a rank communicates and computes nothing, on the rank with the most.
double ExposedCommunication(const TaskGraph& graph, const Timeline& timeline);

/// The most bytes that the values take at one time, on the rank with the most. Values that end at a
/// time are freed before those that begin then are allocated.
int64_t PeakBytes(const TaskGraph& graph, const Timeline& timeline);

/// A line per lane of the first rank, with `columns` characters for the time from begin to end: how
/// much of each the lane works, from " " for nothing over ".", ":" and "+" to "#" for all.
std::string LanesText(const TaskGraph& graph, const Timeline& timeline, int columns);

/// The JSON of Chrome's trace event format (chrome://tracing, Perfetto): a process per rank, a
/// thread per lane, complete events with times in us.
JsonText ChromeTrace(const TaskGraph& graph, const Timeline& timeline);

}  // namespace coconet
