#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "autotune/measure/reference.h"
#include "autotune/measure/tensors.h"

namespace coconet {

/// Results at the program's size that are too long for the interpreter: those that the plain
/// schedule, the first that was verified, gave to this rank's share (Reference::ShareOf), in full.
/// Other schedules round in another order, so that a bound decides what differs, and the
/// interpreter knows it only for the elements that it computes. Hence elements that differ by more
/// than the usual bound are suspects, and these the interpreter computes: one wrong element of any
/// number is found, and none is called wrong because another is. Needs memory of the host for all
/// results of a step, once for all ranks together.
class PlainResults {
 public:
  /// A result and a dimension over which a schedule slices it.
  using SlicedResult = std::pair<std::string, int>;

  /// `sliced`: the dimensions, other than all merged into one, over which schedules slice results.
  /// `ranks`: of this node, which share its memory.
  PlainResults(std::set<SlicedResult> sliced, int ranks)
      : sliced_(std::move(sliced)), ranks_(ranks) {}

  /// Compares `storage` with the kept results; keeps it where there are none yet. InvalidArgument
  /// as Reference::Check. Requires that Check has accepted it.
  absl::Status Compare(const PlacedTensor& tensor, const void* storage, Reference& reference);

  /// Whether nothing was kept, since Check looks at all elements of all results.
  bool empty() const { return kept_.empty(); }
  /// Whether some results were not kept, since half of the free memory does not hold them.
  bool lacks_memory() const { return lacks_memory_; }

 private:
  absl::Status Keep(const PlacedTensor& tensor, const void* storage, const Reference& reference);

  std::set<SlicedResult> sliced_;
  int ranks_;
  bool lacks_memory_ = false;
  std::map<SlicedResult, std::vector<char>> kept_;  // elements by position in the share
};

}  // namespace coconet
