#pragma once

#include <cstdint>
#include <random>

#include "autotune/simulation/task_graph.h"

namespace coconet {

/// COCONET_SEED, else one that differs from run to run.
uint64_t FreshTaskSeed();

struct RandomTaskOptions {
  int tasks = 8;
  int lanes = 2;          // tasks of the last are collectives, those of others computations
  int dependencies = 10;  // are drawn, some of them twice
  bool orders = false;    // lanes have orders, which may be in conflict with dependencies
};
/// Tasks of 0 to 9 us, some of them alike, whose dependencies have no cycles.
TaskGraph RandomTasks(std::mt19937_64& random, const RandomTaskOptions& options);

}  // namespace coconet
