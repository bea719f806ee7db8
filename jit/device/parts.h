#pragma once

// Parts of tensors that pieces of an overlap consist of, where slices are of later dimensions.

namespace coconet {

/// Of the first dimension, of `extent` indices in `groups` groups of `per`, those with [begin, end)
/// in their group. The rows of a Cut are those of one index after the other.
struct PartOfRows {
  Index groups, extent, per, begin, end;
};
/// The same for the rows of a part of the first dimension.
template <class F>
CC_DEVICE bool ForChunks(const Grid& grid, const Cut& cut, const PartOfRows& part, int rank,
                         Index chunk, F&& f) {
  const Index low = BeginOf(cut, rank), high = BeginOf(cut, rank + 1);
  const Index in_row = (cut.per + chunk - 1) / chunk,
              rows = part.extent == 0 ? 0 : cut.outer / part.extent,  // of one index
      in_group = (part.end - part.begin) * rows;
  for (Index id = grid.BlockId(); id < part.groups * in_group * in_row; id += grid.GridSize()) {
    const Index row = id / in_row, group = row / in_group,
                o = (group * part.per + part.begin) * rows + (row - group * in_group);
    if (o >= cut.outer) continue;
    const Index begin = low + (id - row * in_row) * chunk;
    const Index end = begin + chunk < high ? begin + chunk : high;
    if (begin >= end) continue;
    const Index base = o * cut.row;
    if (!f(Chunk{base + begin, base + end, base + low - o * cut.per, id})) return false;
  }
  return true;
}

}  // namespace coconet
