#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace coconet {

enum class TaskKind : uint8_t {
  kComputation,
  kCollective,  // with several ranks it begins when the last of them arrives
  kHost,        // neither slows others nor is slowed: preparation, waiting
};
/// "computation", "collective", "host".
const char* Name(TaskKind kind);

/// Work that occupies one lane from its begin to its end.
struct Task {
  std::string label = {};
  std::string layer = {};  // the layers that it works for, for people; "": unknown
  TaskKind kind = TaskKind::kComputation;
  double us = 0;  // alone on its rank
  int lane = 0;
  std::vector<int> after = {};  // tasks that must end before it begins
  double priority = 0;          // without an order: the greatest of the ready tasks is next
};

/// A sequence of tasks of one rank, one at a time.
struct Lane {
  std::string name = {};
  /// All tasks of the lane as they are issued: each waits for those before it. Empty: whichever is
  /// ready comes next, by priority, then by number.
  std::vector<int> order = {};
  bool fifo = false;  // without an order: what became ready earlier comes before priorities
};

/// A value in memory from the begin of the task that makes it to the end of the last that takes it.
struct LiveValue {
  int64_t bytes = 0;
  int made_by = -1;  // -1: it is there before the first task
  std::vector<int> taken_by = {};
  bool stays = false;  // until the end of the iteration
};

/// What one rank does in an iteration; all ranks do the same.
struct TaskGraph {
  std::vector<Task> tasks = {};
  std::vector<Lane> lanes = {};
  std::vector<LiveValue> values = {};

  int size() const { return static_cast<int>(tasks.size()); }
};

/// InvalidArgument for lanes and tasks that do not exist, times that are negative or not finite,
/// and orders that are not of all tasks of their lane.
absl::Status CheckTaskGraph(const TaskGraph& graph);

}  // namespace coconet
