#include "jit/storage/exchanged_dims.h"

namespace coconet {
namespace {

Slicing CutOf(const Shape& shape, const Layout& layout, int ranks) {
  return layout.owned() ? SliceWhole(1, ranks, layout.turn.RankOf(ranks))
                        : SlicingOf(shape, layout, ranks).slicing;
}

}  // namespace

int64_t ExchangedDims::inner() const {
  return NumElements({shape.begin() + high() + 1, shape.end()});
}

ExchangedDims ExchangedDimsOf(const Shape& shape, const Layout& from, const Layout& to, int ranks) {
  ExchangedDims dims{.shape = shape,
                     .from = from.dim,
                     .to = to.dim,
                     .of_from = CutOf(shape, from, ranks),
                     .of_to = CutOf(shape, to, ranks)};
  if (!from.owned() && !to.owned()) return dims;
  dims.shape.insert(dims.shape.begin(), Dim(1));
  dims.from = from.owned() ? 0 : from.dim + 1;
  dims.to = to.owned() ? 0 : to.dim + 1;
  return dims;
}

}  // namespace coconet
