#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "coconet/ir/graph.h"

namespace coconet {

/// The body of one loop over elements while it is being written. All loads come before all stores:
/// an update may not be seen by what reads the value before the step.
struct PassText {
  std::string values{}, stores{};         // statements
  std::map<NodeId, std::string> names{};  // of values
};

/// The text of one phase of a kernel while it is being written: for each row (where the kernel
/// folds rows) what is computed once per row, with the loops that fold it, then the loop over
/// elements.
struct PhaseText {
  bool on_slices = false;
  bool arriving = false;                   // as in KernelPhase
  int number = 0;                          // in KernelPhases
  std::string row_values{}, row_stores{};  // statements
  std::map<NodeId, std::string> row_names{};
  PassText elements{};
  bool reads_gathered = false;     // what an AllGather of the kernel brought
  int64_t bytes_per_element = 0;   // loaded and stored
  std::set<std::string> loaded{};  // what bytes_per_element counts already

  /// Counts the bytes of an element that is loaded, once per phase.
  void CountLoad(const std::string& what, int64_t bytes) {
    if (loaded.insert(what).second) bytes_per_element += bytes;
  }
};

}  // namespace coconet
