#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "coconet/ir/op_row.h"

namespace coconet {

struct Site;  // infer_site.h

// Views. Infer gives their type (infer_views.cc). MapOf maps elements of a result to an operand,
// both of bound shapes; Moves says whether their order differs from the operand's, or other
// elements lie between them (operand_index.cc).

/// (a): dimension d is a's order[d].
struct Transpose {
  std::vector<int> order;
  absl::StatusOr<TensorType> Infer(const Site& site) const;
  IndexMap MapOf(const Shape& result, const Shape& operand) const;
  bool Moves(const Shape& result, const Shape& operand) const;
  bool operator==(const Transpose&) const = default;
};
template <>
inline constexpr OpRow kRow<Transpose> = {.spelling = {"transpose", 1},
                                          .role = Role::kView,
                                          .after = {Of<&Transpose::order>(Written::kDims)},
                                          .view = ViewBy<Transpose>()};

/// (a): the same elements, row major.
struct Reshape {
  Shape shape;
  absl::StatusOr<TensorType> Infer(const Site& site) const;
  IndexMap MapOf(const Shape& result, const Shape& operand) const;
  bool Moves(const Shape& result, const Shape& operand) const;
  bool operator==(const Reshape&) const = default;
};
template <>
inline constexpr OpRow kRow<Reshape> = {.spelling = {"reshape", 1},
                                        .role = Role::kView,
                                        .after = {Of<&Reshape::shape>(Written::kShape)},
                                        .view = ViewBy<Reshape>()};

/// (a): `shape`, to which a broadcasts as in NumPy: extents of 1, and dimensions that it lacks in
/// front, become any.
struct Expand {
  Shape shape;
  absl::StatusOr<TensorType> Infer(const Site& site) const;
  IndexMap MapOf(const Shape& result, const Shape& operand) const;
  bool Moves(const Shape& result, const Shape& operand) const;
  bool operator==(const Expand&) const = default;
};
template <>
inline constexpr OpRow kRow<Expand> = {.spelling = {"expand", 1},
                                       .role = Role::kView,
                                       .after = {Of<&Expand::shape>(Written::kShape)},
                                       .view = ViewBy<Expand>()};

/// (a): the elements along each of the dimensions from the last to the first.
struct Reverse {
  std::vector<int> dims;
  absl::StatusOr<TensorType> Infer(const Site& site) const;
  IndexMap MapOf(const Shape& result, const Shape& operand) const;
  bool Moves(const Shape& result, const Shape& operand) const;
  bool operator==(const Reverse&) const = default;
};
template <>
inline constexpr OpRow kRow<Reverse> = {.spelling = {"reverse", 1},
                                        .role = Role::kView,
                                        .after = {Of<&Reverse::dims>(Written::kDims)},
                                        .view = ViewBy<Reverse>()};

/// (a): [begin, end) of a dimension.
struct SubTensor {
  int dim = 0;
  int64_t begin = 0, end = 0;
  absl::StatusOr<TensorType> Infer(const Site& site) const;
  IndexMap MapOf(const Shape& result, const Shape& operand) const;
  bool Moves(const Shape& result, const Shape& operand) const;
  bool operator==(const SubTensor&) const = default;
};
template <>
inline constexpr OpRow kRow<SubTensor> = {
    .spelling = {"slice", 1},
    .role = Role::kView,
    .after = {Of<&SubTensor::dim>(Written::kDim),
              Of<&SubTensor::begin>(Written::kInteger, "where the range begins"),
              Of<&SubTensor::end>(Written::kInteger, "where the range ends")},
    .view = ViewBy<SubTensor>()};

/// The most tensors that one Concat joins; kernels have arguments for each of them.
inline constexpr int kMostJoined = 128;

/// (a, b, ...): joined along a dimension, in which their extents may differ.
struct Concat {
  int dim = 0;
  bool operator==(const Concat&) const = default;
};
template <>
inline constexpr OpRow kRow<Concat> = {.spelling = {"concat", 1, kMostJoined},
                                       .role = Role::kView,
                                       .after = {Of<&Concat::dim>(Written::kDim)}};

// The operations that take rows of a table by index. An index that the table has no row for,
// negative or too large, is no error: it stands for a row of zeros.

/// (table, indices): dimension `dim` of the table becomes those of the indices, which are i32. The
/// result has row indices[...] of the table there, zeros if the table has no such row. If the table
/// is sliced over `dim`, the result is Local: the rows that the rank has, and zeros.
struct Gather {
  int dim = 0;
  /// Where the elements of row 0 lie.
  IndexMap MapOf(const Shape& result, const Shape& operand) const;
  bool Moves(const Shape& result, const Shape& operand) const;
  bool operator==(const Gather&) const = default;
};
template <>
inline constexpr OpRow kRow<Gather> = {.spelling = {"gather", 2},
                                       .role = Role::kView,
                                       .after = {Of<&Gather::dim>(Written::kDim)},
                                       .view = ViewBy<Gather>()};

/// (table[..., V, D], indices[..., B, L]) or (table[V, D], indices[M], offsets[B]): [..., B, D] in
/// f32. Bag b is the row indices[..., b, :], or, with offsets, indices[offsets[b]] up to but not
/// including indices[offsets[b + 1]], the last bag up to the end; both ends are clamped to [0, M],
/// and a bag whose end is before its begin is empty. The result is the sum of the bag's rows, in
/// f32, or their mean over the indices that the table has rows for; 0 of none. The last operand may
/// be weights, f32 in the shape of the indices, that the rows of a sum are multiplied by. As
/// PyTorch's embedding_bag, with any index outside of the table as its padding_idx.
struct EmbeddingBag {
  Pooling pooling{};
  bool operator==(const EmbeddingBag&) const = default;
};
template <>
inline constexpr OpRow kRow<EmbeddingBag> = {
    .spelling = {"embedding_bag", 2, 4},
    .role = Role::kPooling,
    .after = {Of<&EmbeddingBag::pooling>(Written::kPooling)}};

/// (updates[I..., D...], indices[I...]): `shape` [V, D...] in f32, whose row v is the sum of the
/// updates whose index is v, in f32; 0 if there are none. An index that is not in [0, V) adds to no
/// row. Along the last dimensions of I the updates may have an extent of 1: one for all of these
/// indices, as bags have. The last operand may be weights, f32 in the shape of the indices, that
/// the updates are multiplied by. The transpose of a Gather, and of an EmbeddingBag.
struct ScatterAdd {
  Shape shape;
  /// How many indices that follow each other have one update; of bound shapes.
  static int64_t IndicesPerUpdate(const Shape& updates, const Shape& indices);
  bool operator==(const ScatterAdd&) const = default;
};
template <>
inline constexpr OpRow kRow<ScatterAdd> = {.spelling = {"scatter_add", 2, 3},
                                           .role = Role::kScatter,
                                           .after = {Of<&ScatterAdd::shape>(Written::kShape)}};

}  // namespace coconet
