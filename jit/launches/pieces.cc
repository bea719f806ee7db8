#include "jit/launches/pieces.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/schedule/chunks.h"

namespace coconet {
namespace {

/// A chunk has a multiple of so many elements, so that each begins with a whole pack.
constexpr int64_t kElements = 64;
/// Columns of pieces that have so many are multiples of it: the widest vector of f32.
constexpr int64_t kColumns = 16;

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

/// Cuts [0, per) of `piece`, which has everything else, into ranges of `step`.
std::vector<Piece> CutInto(Piece piece, int64_t step) {
  std::vector<Piece> pieces;
  do {
    piece.end = std::min(piece.begin + step, piece.per);
    pieces.push_back(piece);
    piece.begin = piece.end;
  } while (piece.begin < piece.per);
  for (Piece& p : pieces) p.of = static_cast<int>(pieces.size());
  return pieces;
}

/// The size of `chunks` ranges of `total`, a multiple of `align`.
int64_t StepOf(int64_t total, int chunks, int64_t align) {
  return std::max<int64_t>(1, ((total + chunks - 1) / chunks + align - 1) / align * align);
}

absl::StatusOr<std::vector<Piece>> ColumnsOf(const Schedule& s, const std::vector<NodeId>& overlap,
                                             int ranks, int chunks) {
  if (std::string no = WhyNoColumns(s, overlap); !no.empty())
    return absl::FailedPreconditionError(std::move(no));
  const ChunkSpace space = ChunksOf(s, overlap).space;
  const int64_t columns = space.shape.back().size;
  if (columns == 0) return absl::FailedPreconditionError("there are no columns");
  if (space.slices) RETURN_IF_ERROR(PerSlice(s, overlap, /*rows=*/true, ranks).status());
  const Piece piece{.columns = true, .per = columns, .total = columns};
  return CutInto(piece, StepOf(columns, chunks, columns / chunks < kColumns ? 1 : kColumns));
}

}  // namespace

std::string WhyNoColumns(const Schedule& s, const std::vector<NodeId>& overlap) {
  const Chunks cut = ChunksOf(s, overlap);
  CC_CHECK(cut.refusal.empty());
  const ChunkSpace& space = cut.space;
  if (space.tensors || space.lead || !space.has_product)
    return "columns are pieces of the product of two matrices; want an overlap of one";
  std::set<NodeId> chain;
  for (NodeId first : overlap) {
    const std::vector<NodeId>& nodes = s.launch(first).nodes;
    chain.insert(nodes.begin(), nodes.end());
  }
  const int last = static_cast<int>(space.shape.size()) - 1;
  for (NodeId id : chain) {
    const std::string name = NodeText(s.graph(), id);
    if (As<Fold>(s.graph(), id)) return absl::StrCat(name, " folds whole rows, which columns cut");
    if (s.type(id).shape != space.shape)
      return absl::StrCat(name, " has other columns than those before");
    if (As<MatMul>(s.graph(), id) == nullptr) continue;
    for (NodeId input : s.program().inputs(id)) {
      if (chain.contains(input))
        return absl::StrCat(name, " needs all columns of ", NodeText(s.graph(), input));
    }
    if (s.type(id).layout.cut() && s.type(id).layout.dim == last)
      return absl::StrCat(name, " has the columns of a slice only, want all of them");
  }
  return "";
}

std::vector<Range> Piece::Whole(int ranks) const {
  std::vector<Range> ranges;
  for (int64_t rank = 0; rank < (slices ? ranks : 1); ++rank) {
    const Range range{std::min(rank * per + begin, total), std::min(rank * per + end, total)};
    if (range.size() > 0) ranges.push_back(range);
  }
  return ranges;
}

absl::StatusOr<std::vector<Piece>> PiecesOf(const Schedule& s, const std::vector<NodeId>& overlap,
                                            int ranks, int chunks, bool columns) {
  if (columns) return ColumnsOf(s, overlap, ranks, chunks);
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
  return CutInto(piece, StepOf(piece.per, chunks, align));
}

absl::StatusOr<int> CountPieces(const Schedule& s, const std::vector<NodeId>& overlap, int ranks,
                                int chunks, bool columns) {
  if (columns) {
    ASSIGN_OR_RETURN(const std::vector<Piece> pieces, ColumnsOf(s, overlap, ranks, chunks));
    return static_cast<int>(pieces.size());
  }
  if (!s.graph().lists.empty()) {
    const int tensors = static_cast<int>(s.kinds().of.size());
    if (tensors > 1) return std::min(chunks, tensors);
    return absl::FailedPreconditionError("a list of one tensor has no batches of tensors");
  }
  ASSIGN_OR_RETURN(const std::vector<Piece> pieces, PiecesOf(s, overlap, ranks, chunks, columns));
  return static_cast<int>(pieces.size());
}

}  // namespace coconet
