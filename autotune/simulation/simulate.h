#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "autotune/simulation/task_graph.h"

namespace coconet {

/// How many times as long work takes as alone, on a rank.
struct Contention {
  double computation = 1;  // while a collective runs on another lane
  double collective = 1;   // while computation runs on another lane of a rank that takes part
  double collectives = 1;  // while another collective does; 2 if they share a link
};

struct SimulationOptions {
  Contention contention = {};
  int ranks = 1;
  /// By rank, how many times as long its computation takes. Empty: 1.
  std::vector<double> slowdowns = {};
  /// Computation takes exp(jitter * z) times as long, z normal with mean 0 and variance 1, drawn
  /// per task and rank: a pure function of the seed.
  double jitter = 0;
  uint64_t seed = 0;
};

/// When the tasks of an iteration run.
struct Timeline {
  struct Interval {
    double begin = 0, end = 0;
  };
  int simulated_ranks = 1;      // ranks that are alike are simulated as one
  std::vector<Interval> tasks;  // of rank r and task t: [r * graph.size() + t]
  /// Indices of `tasks` as they begin; those of a lane follow each other.
  std::vector<int> order;
  double us = 0;  // the end of the last task

  const Interval& Of(int rank, int task) const {
    return tasks[rank * (tasks.size() / simulated_ranks) + task];
  }
};

/// Runs the tasks by events: a task begins as soon as its lane is free, its lane's order lets it,
/// all tasks in `after` have ended and, for a collective, all ranks have arrived at it. If ranks
/// differ, lanes that have collectives but no order take the order that equal ranks have, since
/// libraries want the same order on all ranks. Deterministic.
///
/// InvalidArgument as CheckTaskGraph, and for options out of range; FailedPrecondition, with tasks
/// that wait, if tasks wait for each other. Time: O((tasks + dependencies) log tasks) per rank.
absl::StatusOr<Timeline> Simulate(const TaskGraph& graph, const SimulationOptions& options = {});

}  // namespace coconet
