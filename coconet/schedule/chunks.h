#pragma once

#include <string>
#include <vector>

#include "coconet/schedule/schedule.h"

namespace coconet {

/// The iteration space that an overlap cuts into chunks. Launch k of the chain works on chunk c of
/// the result of launch k - 1.
struct ChunkSpace {
  Shape shape;  // of the tensors that go from launch to launch; the last dimension may differ where
                // `rows`
  bool rows = false;  // a chunk has whole rows, along the last dimension: there is a matrix
                      // product, or a fold of rows
  bool slices =
      false;    // a chunk has the same part of every rank's slice; else it is a part of the whole
  int dim = 0;  // slices: over this dimension; also used with `lead`
  /// A chunk is a range of indices of dimension `dim`, before which all extents are 1: there is an
  /// AllToAll, whose tensors are sliced over `dim` or later dimensions, or a product of several
  /// matrices. Else it is a range of elements, or of rows.
  bool lead = false;
  bool has_product = false;
  bool exchanges = false;  // there is an AllToAll
  bool tensors = false;    // a chunk is some of the list's tensors, whole: nothing of the above
};

/// How a chain of launches is cut into chunks, or why it cannot be.
struct Chunks {
  ChunkSpace space;
  std::string refusal;  // empty: they can be cut
};

/// `chain`: the first nodes of some of the schedule's launches.
Chunks ChunksOf(const Schedule& s, const std::vector<NodeId>& chain);

}  // namespace coconet
