#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "autotune/measure/reference.h"
#include "autotune/measure/result_kernels.h"
#include "autotune/measure/tensors.h"

namespace coconet {

/// Results at the program's size that are too long for the interpreter: this rank's share
/// (Reference::ShareOf), in full, as the plain schedule computed it, the first that was verified.
/// Other schedules round in another order, so only a bound can tell an error, and the interpreter
/// knows bounds only for the elements that it computes. So elements that differ by more than the
/// usual bound are suspects, which the interpreter computes: a single wrong element is found, and
/// no right one is called wrong. Needs memory for all results of a step, once for all ranks
/// together: of the host, or of GPUs if a kernel compares them.
class PlainResults {
 public:
  /// A result and a dimension over which a schedule slices it.
  using SlicedResult = std::pair<std::string, int>;

  /// `sliced`: the dimensions, other than all merged into one, over which schedules slice results.
  /// `ranks`: the ranks of this node, which share its memory.
  PlainResults(std::set<SlicedResult> sliced, int ranks)
      : sliced_(std::move(sliced)), ranks_(ranks) {}

  /// Compares `storage` with the kept results; keeps it if there are none yet. InvalidArgument as
  /// Reference::Check. Requires that Check has accepted it.
  absl::Status Compare(const PlacedTensor& tensor, const void* storage, Reference& reference);
  /// The same for memory of a GPU, of which the host takes only the blocks with suspects. If the
  /// GPU has no room for kept results, the host keeps and compares them.
  absl::Status Compare(const PlacedTensor& tensor, Memory& memory, ResultKernels& kernels,
                       Reference& reference);

  /// Whether nothing was kept because Check looks at all elements of all results.
  bool empty() const { return kept_.empty(); }
  /// Whether some results were not kept because half of the free memory does not hold them.
  bool lacks_memory() const { return lacks_memory_; }

 private:
  /// Elements by position in the share; only one of the two members is used.
  struct Kept {
    std::vector<char> elements;
    std::unique_ptr<Memory> memory;
  };

  /// The tensor's type, and those of parts of it that schedules compare.
  std::vector<TensorType> KeptTypes(const PlacedTensor& tensor) const;
  absl::Status Keep(const PlacedTensor& tensor, const void* storage, const Reference& reference);
  absl::Status Keep(const PlacedTensor& tensor, Memory& memory, ResultKernels& kernels,
                    const Reference& reference);
  /// Computes the suspects. InvalidArgument if one of `have` is wrong; else returns whether one of
  /// `kept` is.
  absl::StatusOr<bool> Judge(const PlacedTensor& tensor, const std::vector<int64_t>& suspects,
                             const Reference::Take& have, const Reference::Take& kept,
                             Reference& reference);

  std::set<SlicedResult> sliced_;
  int ranks_;
  bool lacks_memory_ = false;
  std::map<SlicedResult, Kept> kept_;
};

}  // namespace coconet
