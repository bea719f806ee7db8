#include "coconet/ir/infer_site.h"

namespace coconet {

Layout ReadLayout(const TensorType& type) {
  return type.layout.kind == Layout::Kind::kAuto ? Layout::Replicated() : type.layout;
}

TensorType Normalized(TensorType type) {
  if (type.layout == Layout::Sliced(Layout::kFlat) && type.shape.size() == 1) type.layout.dim = 0;
  return type;
}

absl::Status CheckNotByPlace(const Site& site, size_t i) {
  if (!site.type(i).layout.by_place()) return absl::OkStatus();
  return site.Error(
      "parts of a place are for elementwise operations and collectives within or across nodes, "
      "have ",
      site.Operand(i));
}

absl::Status CheckSlicedDim(const Site& site, int dim, const Shape& shape) {
  const int rank = static_cast<int>(shape.size());
  if (rank == 0) return site.Error("a scalar has no dimension to slice");
  if (dim == Layout::kFlat || (dim >= 0 && dim < rank)) return absl::OkStatus();
  return site.Error("want flat or a dimension from 0 to ", rank - 1, " of ", Text(shape), ", have ",
                    dim);
}

TensorType Read(TensorType type) {
  type.layout = ReadLayout(type);
  return type;
}

}  // namespace coconet
