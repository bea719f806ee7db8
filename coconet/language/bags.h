#pragma once

#include <utility>
#include <vector>

#include "coconet/language/language.h"

namespace coconet {

/// Tensors of one dtype, whose shapes differ in dimension `dim` only, joined along it.
inline Tensor Concat(std::vector<Tensor> tensors, int dim) {
  return CallOf<struct Concat>(std::move(tensors), dim);
}

/// `a` with zeros in the rows that are not in use: `counts`, i32, has the first dimensions of a,
/// and of the next dimension those from the count on are 0.
Tensor KeepRows(Tensor a, Tensor counts);

/// An AllToAll of parts of unequal sizes: `sliced` has room for a capacity of rows. The rows in use
/// are those before the count in `counts`, i32 with the first dimensions of `sliced`, sliced like
/// it. The result has zeros in the other rows, which need not cross.
Tensor AllToAll(Tensor sliced, Tensor counts, Cut to);

/// Bags of rows of `table` [..., V, D], reduced to one row each, in f32: bag b is the row b of
/// `indices` [..., B, L], i32. Rows of a sum may be multiplied by `weights`, f32 in the shape of
/// the indices. If the table is sliced over V, an AllReduce sums the results over the ranks.
inline Tensor EmbeddingBag(Tensor table, Tensor indices, Pooling pooling) {
  return CallOf<struct EmbeddingBag>({table, indices}, pooling);
}
inline Tensor EmbeddingBag(Tensor table, Tensor indices, Tensor more, Pooling pooling) {
  return CallOf<struct EmbeddingBag>({table, indices, more}, pooling);
}
/// The same for ragged bags: bag b of indices [M] begins at offsets[b] and ends where the next one
/// begins, the last one at M.
inline Tensor EmbeddingBag(Tensor table, Tensor indices, Tensor offsets, Tensor weights,
                           Pooling pooling) {
  return CallOf<struct EmbeddingBag>({table, indices, offsets, weights}, pooling);
}

/// A tensor of `shape` [V, D...] in f32 whose row v is the sum of the `updates` [I..., D...] whose
/// index in `indices` [I...] is v. Updates may be multiplied by `weights`, f32 in the shape of the
/// indices; an update with an extent of 1 in the last of I serves all of these indices. If the
/// updates are sliced over I, each rank adds its own: AllReduce the sum.
inline Tensor ScatterAdd(Tensor updates, Tensor indices, Shape shape) {
  return CallOf<struct ScatterAdd>({updates, indices}, std::move(shape));
}
inline Tensor ScatterAdd(Tensor updates, Tensor indices, Tensor weights, Shape shape) {
  return CallOf<struct ScatterAdd>({updates, indices, weights}, std::move(shape));
}

}  // namespace coconet
