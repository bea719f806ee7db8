#include "tests/harness/placement.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

namespace coconet {

Placement::Placement(const TensorType& type, int ranks, int rank) : type_(type) {
  int64_t elements = 1;
  for (const Dim& dim : type.shape) elements *= dim.size;
  if (!type.layout.sliced()) {
    run_ = stride_ = row_ = elements;
    return;
  }
  if (type.layout.owned()) {
    std::vector<int64_t> loads(ranks);
    const auto least = [&] { return std::min_element(loads.begin(), loads.end()); };
    for (int64_t weight : type.layout.turn.before()) *least() += weight;
    const int64_t owner = least() - loads.begin();
    run_ = rank == owner ? elements : 0;
    stride_ = row_ = elements;
    shift_ = owner * elements;
    return;
  }
  // Dimension `dim` of [outer, extent, inner]; all of it, as a vector, when flat.
  int64_t extent = elements, inner = 1;
  if (type.layout.dim != Layout::kFlat) {
    extent = type.shape[type.layout.dim].size;
    for (int d = 0; d < static_cast<int>(type.shape.size()); ++d) {
      if (d < type.layout.dim) outer_ *= type.shape[d].size;
      if (d > type.layout.dim) inner *= type.shape[d].size;
    }
  }
  // The smallest part that is ceil(extent / ranks) or more, and a multiple of the largest of 1, 2,
  // 4 ... 64 that goes into it sixteen times.
  int64_t per = (extent + ranks - 1) / ranks, shift = 0, multiple = 64;
  while (multiple > 1 && per < 16 * multiple) multiple /= 2;
  while (per % multiple != 0) ++per;
  if (type.layout.weighted()) {
    const Slicing cut = SliceShare(extent, ranks, type.layout.share);
    per = cut.per;
    shift = cut.shift;
  }
  const auto begin = [&](int64_t r) { return std::clamp<int64_t>(r * per - shift, 0, extent); };
  const int64_t low = begin(rank), high = begin(rank + 1);
  run_ = (high - low) * inner;
  stride_ = per * inner;
  row_ = extent * inner;
  begin_ = low * inner;
  shift_ = shift * inner;
}

std::string Placement::Read(const void* buffer) const {
  const size_t size = SizeOf(type_.dtype);
  std::string bytes;
  bytes.reserve(elements() * size);
  for (int64_t o = 0; o < outer_; ++o)
    bytes.append(static_cast<const char*>(buffer) + o * stride_ * size, run_ * size);
  return bytes;
}

}  // namespace coconet
