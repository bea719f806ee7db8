#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coconet/base/slices.h"
#include "coconet/schedule/schedule.h"

namespace coconet {

/// One chunk of the tensors that go through an overlap. Ranges are in columns, indices of the last
/// dimension, if `columns`, and in indices of dimension `dim` if `lead`; else in rows along the
/// last dimension if `rows`; else in elements.
struct Piece {
  bool rows = false;
  bool lead = false;     // before `dim` all extents are 1
  bool columns = false;  // of all rows, whichever slice these are in
  bool slices = false;   // [begin, end) of every rank's slice; else of the whole
  int dim = 0;           // slices: over this dimension; and where `lead`
  int64_t begin = 0, end = 0;
  int64_t per = 0;    // in a slice, padding included; without `slices` in the whole
  int64_t total = 0;  // in the whole
  int of = 1;         // the number of pieces

  /// Elements of one index or row, or 1, of a tensor of the overlap. Not for columns.
  int64_t unit(const Shape& shape) const {
    if (lead) return NumElements({shape.begin() + dim + 1, shape.end()});
    return rows ? shape.back().size : 1;
  }
  /// The piece's ranges in the whole: one per rank's slice, empty ones left out.
  std::vector<Range> Whole(int ranks) const;
};

/// Why the pieces of an overlap cannot be columns; "" if they can: it has a matrix product, nothing
/// needs whole rows, and all tensors that go from launch to launch have the same columns.
std::string WhyNoColumns(const Schedule& s, const std::vector<NodeId>& overlap);

/// Cuts a bound schedule's overlap into `chunks` pieces, or fewer if there is less to cut; into
/// columns or else by ChunksOf. FailedPrecondition if slices are not contiguous, or end within a
/// row, or if WhyNoColumns says so. Requires that pieces are of tensors, not batches of these
/// (ChunkSpace::tensors).
absl::StatusOr<std::vector<Piece>> PiecesOf(const Schedule& s, const std::vector<NodeId>& overlap,
                                            int ranks, int chunks, bool columns);

/// The number of pieces, or of batches (BatchesOf). FailedPrecondition also if a list has fewer
/// than two tensors.
absl::StatusOr<int> CountPieces(const Schedule& s, const std::vector<NodeId>& overlap, int ranks,
                                int chunks, bool columns);

}  // namespace coconet
