#include "coconet/ir/types.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// Product of the extents [begin, end).
int64_t Product(const Shape& shape, size_t begin, size_t end) {
  int64_t product = 1;
  for (size_t i = begin; i < end; ++i) product *= shape[i].size;
  return product;
}

std::string OwnedText(const std::string& by, const Turn& turn) {
  if (!by.empty()) return absl::StrCat("owned(by ", by, ")");
  const std::vector<int64_t> before = turn.before();
  return before.empty() ? "owned" : absl::StrCat("owned(after ", absl::StrJoin(before, ", "), ")");
}

}  // namespace

std::string Text(const Dim& dim) { return dim.bound() ? absl::StrCat(dim.size) : dim.symbol; }

std::string Text(const Shape& shape) {
  return absl::StrCat(
      "[",
      absl::StrJoin(shape, ", ",
                    [](std::string* out, const Dim& dim) { absl::StrAppend(out, Text(dim)); }),
      "]");
}

std::string Text(const BoundSize& size) { return absl::StrJoin(size.sizes, ","); }

std::string Text(const Layout& layout) {
  switch (layout.kind) {
    case Layout::Kind::kLocal:
      return "local";
    case Layout::Kind::kReplicated:
      return "replicated";
    case Layout::Kind::kSliced: {
      if (layout.owned()) return OwnedText(layout.by, layout.turn);
      const char* parts = layout.parts == Layout::Parts::kPlace ? ", place"
                          : layout.by_place()                   ? ", partial"
                                                                : "";
      const Share& share = layout.share;
      const std::string by =
          !layout.by.empty() ? absl::StrCat(", by ", layout.by)
          : share.of > 0     ? absl::StrCat(", by ", share.before, "+", share.own, "/", share.of)
                             : "";
      return absl::StrCat("sliced(", DimText(layout.dim), parts, by, ")");
    }
    case Layout::Kind::kAuto:
      return "auto";
  }
  CC_CHECK(false);
}

std::string Text(const TensorType& type) {
  return absl::StrCat(Name(type.dtype), Text(type.shape), " ", Text(type.layout));
}

std::string Text(const Cut& to) {
  return to.dim == Layout::kOwned ? OwnedText(to.by, to.turn) : DimText(to.dim);
}

std::string DimText(int dim) {
  if (dim == Layout::kOwned) return "owned";
  return dim == Layout::kFlat ? "flat" : absl::StrCat(dim);
}

bool IsBound(const Shape& shape) {
  for (const Dim& dim : shape) {
    if (!dim.bound()) return false;
  }
  return true;
}

absl::Status CheckExtents(const Shape& shape) {
  int64_t elements = 1;
  for (const Dim& dim : shape) {
    if (!dim.bound()) continue;
    if (dim.size < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", Text(shape), ": an extent is negative"));
    }
    // Extents of 0 are left out: products over some dimensions only must fit too.
    if (dim.size > 0 && dim.size > kMaxElements / elements) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", Text(shape), ": more than 2^40 elements; a tensor holds at most ",
                       kMaxElements));
    }
    if (dim.size > 0) elements *= dim.size;
  }
  return absl::OkStatus();
}

int64_t NumElements(const Shape& shape) {
  CC_CHECK(IsBound(shape));
  return Product(shape, 0, shape.size());
}

TensorSlicing SlicingOf(const Shape& shape, int dim, int ranks) {
  CC_CHECK(IsBound(shape));
  if (dim == Layout::kFlat) return {SliceExtent(NumElements(shape), ranks), 1, 1};
  CC_CHECK(dim >= 0 && dim < static_cast<int>(shape.size()));
  const int64_t inner = Product(shape, dim + 1, shape.size());
  return {SliceExtent(shape[dim].size, ranks), Product(shape, 0, dim), inner};
}

TensorSlicing SlicingOf(const Shape& shape, const Layout& layout, int ranks) {
  CC_CHECK(layout.by.empty());
  if (layout.owned()) return {SliceWhole(NumElements(shape), ranks, layout.turn.RankOf(ranks))};
  TensorSlicing cut = SlicingOf(shape, layout.dim, ranks);
  if (layout.weighted()) cut.slicing = SliceShare(cut.slicing.extent, ranks, layout.share);
  return cut;
}

}  // namespace coconet
