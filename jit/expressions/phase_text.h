#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/ir/graph.h"

namespace coconet {

/// The body of one loop over elements while it is being written. All loads come before all stores:
/// an update may not be seen by what reads the value before the step.
struct PassText {
  std::string fetches{}, values{}, stores{};  // statements
  std::map<NodeId, std::string> names{};      // of values
  std::vector<std::string> fetched{};         // names of what `fetches` declares
  std::vector<std::string> places{};          // of elements at index i that it loads
  int64_t fetched_bytes = 0;                  // by `fetches`, per element

  /// Adds a load of `bytes` bytes per element that is issued before any value is used, and returns
  /// its name. `fetch` depends on the place alone, not on other values.
  std::string Fetch(const std::string& fetch, int64_t bytes) {
    const std::string name = absl::StrCat("x", fetched.size());
    absl::StrAppend(&fetches, "      const auto ", name, " = ", fetch, ";\n");
    fetched.push_back(name);
    fetched_bytes += bytes;
    return name;
  }
};

/// The text of one phase of a kernel while it is being written: for each row (if the kernel folds
/// rows) the values that exist once per row, with the loops that fold it, then the loop over
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
