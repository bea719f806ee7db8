#include "jit/config/pieces.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"
#include "coconet/schedule/chunks.h"

namespace coconet {
namespace {

/// A chunk has a multiple of so many elements, so that each begins with a whole pack.
constexpr int64_t kElements = 64;

/// Rows or elements of a rank's slice of the tensor.
absl::StatusOr<int64_t> PerSlice(const TensorType& type, bool rows, int ranks) {
  if (rows && type.shape.back().size == 0)
    return absl::FailedPreconditionError(absl::StrCat("rows of ", Text(type), " are empty"));
  const TensorSlicing s = SlicingOf(type, ranks);
  if (!s.contiguous())
    return absl::FailedPreconditionError(
        absl::StrCat("slices of ", Text(type), " are not contiguous"));
  const int64_t unit = rows ? std::max<int64_t>(1, type.shape.back().size) : 1;
  if (s.slice_elements() % unit != 0)
    return absl::FailedPreconditionError(
        absl::StrCat("slices of ", Text(type), " end within a row"));
  return s.slice_elements() / unit;
}

/// The same of all sliced tensors of the overlap.
absl::StatusOr<int64_t> PerSlice(const Schedule& s, const std::vector<NodeId>& overlap, bool rows,
                                 int ranks) {
  int64_t per = -1;
  for (NodeId first : overlap) {
    for (NodeId id : s.launch(first).nodes) {
      const TensorType& type =
          s.type(As<AllGather>(s.graph(), id) ? s.program().inputs(id)[0] : id);
      if (!type.layout.sliced() || As<MatMul>(s.graph(), id) || As<Fold>(s.graph(), id)) continue;
      ASSIGN_OR_RETURN(const int64_t its, PerSlice(type, rows, ranks));
      if (per >= 0 && its != per)
        return absl::FailedPreconditionError(
            absl::StrCat("slices of ", Text(type), " have other rows than those before"));
      per = its;
    }
  }
  return per;
}

/// Indices of dimension `dim` in a rank's slice: the same of all tensors that are sliced over it.
absl::StatusOr<int64_t> IndicesPerSlice(const Schedule& s, const std::vector<NodeId>& overlap,
                                        int dim, int ranks) {
  int64_t per = -1;
  for (NodeId first : overlap) {
    for (NodeId id : s.launch(first).nodes) {
      const NodeId inputs[] = {id, As<AllGather>(s.graph(), id) || As<AllToAll>(s.graph(), id)
                                       ? s.program().inputs(id)[0]
                                       : id};
      for (NodeId sliced : inputs) {
        const TensorType& type = s.type(sliced);
        if (!type.layout.sliced() || type.layout.dim != dim) continue;
        const Slicing slicing = SlicingOf(type, ranks).slicing;
        if (slicing.shift != 0)
          return absl::FailedPreconditionError(
              absl::StrCat("slices of ", Text(type), " are of unequal weights"));
        CC_CHECK(per < 0 || per == slicing.per);  // of one extent
        per = slicing.per;
      }
    }
  }
  CC_CHECK(per >= 0);
  return per;
}

}  // namespace

std::vector<Range> Piece::Whole(int ranks) const {
  std::vector<Range> ranges;
  for (int64_t rank = 0; rank < (slices ? ranks : 1); ++rank) {
    const Range range{std::min(rank * per + begin, total), std::min(rank * per + end, total)};
    if (range.size() > 0) ranges.push_back(range);
  }
  return ranges;
}

absl::StatusOr<std::vector<Piece>> PiecesOf(const Schedule& s, const std::vector<NodeId>& overlap,
                                            int ranks, int chunks) {
  const Chunks cut = ChunksOf(s, overlap);
  CC_CHECK(cut.refusal.empty());
  const ChunkSpace& space = cut.space;
  Piece piece{.rows = space.rows, .lead = space.lead, .slices = space.slices, .dim = space.dim};
  piece.total = NumElements(space.shape);
  if (space.lead) {
    piece.total = space.shape[space.dim].size;
  } else if (space.rows) {
    piece.total = NumElements({space.shape.begin(), space.shape.end() - 1});
  }
  piece.per = piece.total;
  if (space.slices && space.lead) {
    ASSIGN_OR_RETURN(piece.per, IndicesPerSlice(s, overlap, space.dim, ranks));
  } else if (space.slices) {
    ASSIGN_OR_RETURN(piece.per, PerSlice(s, overlap, space.rows, ranks));
  }
  const int64_t align = space.rows || space.lead ? 1 : kElements;
  const int64_t step =
      std::max<int64_t>(1, ((piece.per + chunks - 1) / chunks + align - 1) / align * align);
  std::vector<Piece> pieces;
  do {
    piece.end = std::min(piece.begin + step, piece.per);
    pieces.push_back(piece);
    piece.begin = piece.end;
  } while (piece.begin < piece.per);
  for (Piece& p : pieces) p.of = static_cast<int>(pieces.size());
  return pieces;
}

absl::StatusOr<int> CountPieces(const Schedule& s, const std::vector<NodeId>& overlap, int ranks,
                                int chunks) {
  if (const int tensors = TensorCount(s.graph()); tensors > 0) {
    if (tensors > 1) return std::min(chunks, tensors);
    return absl::FailedPreconditionError("a list of one tensor has no batches of tensors");
  }
  ASSIGN_OR_RETURN(const std::vector<Piece> pieces, PiecesOf(s, overlap, ranks, chunks));
  return static_cast<int>(pieces.size());
}

}  // namespace coconet
