#include "jit/storage/stored_map.h"

#include "coconet/base/status.h"
#include "coconet/ir/operand_index.h"

namespace coconet {

namespace {

void Merge(const Shape& space, const std::vector<int64_t>& strides, StoredMap* b) {
  for (size_t k = 0; k < space.size(); ++k) {
    if (space[k].size == 1) continue;
    const bool merges =
        !b->dims.empty() && (strides[k] == 0 ? b->strides.back() == 0
                                             : b->strides.back() == strides[k] * space[k].size);
    if (merges) {
      b->dims.back() *= space[k].size;
      b->strides.back() = strides[k];
    } else {
      b->dims.push_back(space[k].size);
      b->strides.push_back(strides[k]);
    }
  }
  if (b->dims.empty()) {
    b->dims = {1};
    b->strides = {0};
  }
}

}  // namespace

StoredMap StoredMapOf(const TensorType& operand, const Shape& space, int ranks) {
  // Extents of the operand's storage, aligned from the right; a sliced one stores `per` of its
  // dimension.
  const size_t lead = space.size() - operand.shape.size();
  StoredMap b;
  std::vector<int64_t> stored(space.size(), 1);
  for (size_t k = 0; k < operand.shape.size(); ++k) stored[lead + k] = operand.shape[k].size;
  if (operand.layout.cut()) {
    // A flat-sliced operand has the result's shape, so it is never broadcast (infer.h).
    CC_CHECK(operand.layout.dim != Layout::kFlat);
    const TensorSlicing cut = SlicingOf(operand, ranks);
    stored[lead + operand.layout.dim] = cut.slicing.per;
    b.elements_per_rank = cut.slicing.per * cut.inner;
    b.shift = cut.slicing.shift * cut.inner;
  }
  std::vector<int64_t> strides(space.size(), 0);
  int64_t stride = 1;
  for (size_t k = space.size(); k-- > 0;) {
    const bool own = k >= lead && (operand.shape[k - lead].size == space[k].size);
    strides[k] = own ? stride : 0;
    stride *= stored[k];
  }
  Merge(space, strides, &b);
  b.identity = b.dims.size() == 1 && b.strides[0] == 1 && !operand.layout.cut();
  return b;
}

StoredMap ViewMapOf(const Op& view, const Shape& operand, const Shape& result) {
  const IndexMap map = OperandMap(view, result, operand);
  Shape space;
  for (int64_t extent : map.extents) space.push_back(extent);
  StoredMap b;
  Merge(space, map.strides, &b);
  b.offset = map.offset;
  b.identity = b.offset == 0 && b.dims.size() == 1 && b.strides[0] == 1;
  return b;
}

}  // namespace coconet
