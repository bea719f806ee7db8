#pragma once

#include <algorithm>
#include <cstdint>

#include "coconet/ir/types.h"

namespace coconet {

/// The two dimensions that an AllToAll exchanges slices of, and how each is cut. The owner of an
/// owned tensor has all of a dimension of extent 1, put before the others.
struct ExchangedDims {
  Shape shape;
  int from = 0, to = 0;
  Slicing of_from, of_to;

  int low() const { return std::min(from, to); }
  int high() const { return std::max(from, to); }
  const Slicing& Of(int dim) const { return dim == from ? of_from : of_to; }
  int64_t inner() const;  // elements behind the later of the two
};
ExchangedDims ExchangedDimsOf(const Shape& shape, const Layout& from, const Layout& to, int ranks);

}  // namespace coconet
