#pragma once

// Parts of tensors that an overlap's pieces consist of, if slices are of later dimensions, or if
// the parts are columns.

namespace coconet {

/// Indices [begin, end) of each group of the first dimension, whose `extent` indices are in
/// `groups` groups of `per`. The rows of a Cut are those of one index after the other.
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

/// Elements [begin, end) of each row of `length` elements. Slices have whole rows.
struct PartOfColumns {
  Index length, begin, end;
};
/// The number of chunks in such a part of a rank's slice.
CC_DEVICE Index CountChunks(const Cut& cut, const PartOfColumns& part, Index chunk) {
  return cut.outer * (cut.per / part.length) * ((part.end - part.begin + chunk - 1) / chunk);
}
/// The same for such a part. A chunk is within one row.
template <class F>
CC_DEVICE bool ForChunks(const Grid& grid, const Cut& cut, const PartOfColumns& part, int rank,
                         Index chunk, F&& f) {
  const Index low = BeginOf(cut, rank), high = BeginOf(cut, rank + 1);
  const Index in_row = (part.end - part.begin + chunk - 1) / chunk, rows = cut.per / part.length;
  for (Index id = grid.BlockId(); id < cut.outer * rows * in_row; id += grid.GridSize()) {
    const Index line = id / in_row, o = cut.outer == 1 ? 0 : line / rows;
    const Index row = low + (line - o * rows) * part.length;
    if (row >= high) continue;
    const Index begin = row + part.begin + (id - line * in_row) * chunk, last = row + part.end;
    const Index end = begin + chunk < last ? begin + chunk : last, base = o * cut.row;
    if (!f(Chunk{base + begin, base + end, base + low - o * cut.per, id})) return false;
  }
  return true;
}
/// OfNode for a chunk of such a part.
CC_DEVICE Chunk OfNode(const Chunk& c, const Cut& cut, const PartOfColumns& part, Index chunk,
                       Index node) {
  return {c.begin, c.end, c.shift - node * cut.outer * cut.per,
          c.id + node * CountChunks(cut, part, chunk)};
}

}  // namespace coconet
