#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "coconet/ir/typed_graph.h"
#include "runtime/plan.h"

namespace coconet {

/// An input, state or output of a program, and the buffer of a plan that holds it.
struct PlacedTensor {
  std::string name;
  BufferRole role{};
  TensorType type;  // in this schedule, where a state of layout Auto is Replicated or Sliced
  int buffer = -1;
  bool updated = false;  // a state that the step assigns
};

/// Returns the tensors in the order of the graph. `program` is bound and without lists; `plan` was
/// lowered from a schedule of it.
std::vector<PlacedTensor> PlaceTensors(const TypedGraph& program, const Plan& plan);

/// The dimension that decides which elements a rank holds: Layout::kFlat for a tensor that is not
/// sliced, whose elements the ranks share flat, and for a sliced vector.
int SlicedDim(const TensorType& type);

/// The elements of a tensor that one rank holds, as runs: run i has `run` elements; it begins at
/// element begin + i * global_stride of the global tensor (row major), and at i * storage_stride of
/// the rank's storage.
struct Part {
  int64_t runs = 0, run = 0;
  int64_t begin = 0, global_stride = 0, storage_stride = 0;

  int64_t elements() const { return runs * run; }
  /// Index in the global tensor, and in storage, of the position-th element held.
  int64_t Global(int64_t position) const {
    return begin + position / run * global_stride + position % run;
  }
  int64_t Stored(int64_t position) const {
    return position / run * storage_stride + position % run;
  }
};
/// The part that `rank` holds: the whole tensor, unless it is Sliced.
Part PartOf(const TensorType& type, int ranks, int rank);

/// Maps positions in a part to places in the storage of the tensor that the part is of.
struct StorageOfShare {
  int64_t elements = 0;
  int64_t run = 1, begin = 0, stride = 0;  // position p is at begin + p / run * stride + p % run

  /// `sliced`: the storage has the share only; else all of the tensor.
  StorageOfShare(const Part& share, bool sliced)
      : elements(share.elements()),
        run(share.run > 0 ? share.run : 1),
        begin(sliced ? 0 : share.begin),
        stride(sliced ? share.storage_stride : share.global_stride) {}
  int64_t At(int64_t position) const { return begin + position / run * stride + position % run; }
  /// The elements of storage up to the part's last one.
  int64_t StorageElements() const { return elements == 0 ? 0 : At(elements - 1) + 1; }
};

}  // namespace coconet
