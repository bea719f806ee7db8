#pragma once

#include "coconet/language/language.h"

namespace coconet {

/// Bags of rows of `table` [..., V, D], reduced to one row each, in f32: bag b is the row b of
/// `indices` [..., B, L], i32. Rows of a sum may be multiplied by `weights`, f32 in the shape of
/// the indices. What a table sliced over V gives is summed over the ranks by an AllReduce.
inline Tensor EmbeddingBag(Tensor table, Tensor indices, Pooling pooling) {
  return CallOf<struct EmbeddingBag>({table, indices}, pooling);
}
inline Tensor EmbeddingBag(Tensor table, Tensor indices, Tensor more, Pooling pooling) {
  return CallOf<struct EmbeddingBag>({table, indices, more}, pooling);
}
/// The same of ragged bags: bag b of indices [M] begins at offsets[b] and ends where the next one
/// begins, the last one at M.
inline Tensor EmbeddingBag(Tensor table, Tensor indices, Tensor offsets, Tensor weights,
                           Pooling pooling) {
  return CallOf<struct EmbeddingBag>({table, indices, offsets, weights}, pooling);
}

}  // namespace coconet
