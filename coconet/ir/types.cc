#include "coconet/ir/types.h"

#include <algorithm>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

using Wide = __int128;

int64_t Clamped(Wide number) {
  constexpr Wide kMost = std::numeric_limits<int64_t>::max(),
                 kLeast = std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(std::clamp(number, kLeast, kMost));
}

/// An extent as what Dim::symbol writes: how often each symbol is in it, and a number.
struct Terms {
  std::map<std::string, int64_t> counts;
  int64_t number = 0;
};

constexpr absl::string_view kPlus = " + ", kOfSymbol = "*";

Terms TermsOf(const Dim& dim) {
  if (dim.bound()) return {{}, dim.size};
  Terms terms;
  for (const absl::string_view term : absl::StrSplit(dim.symbol, kPlus)) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(term, absl::MaxSplits(kOfSymbol, 1));
    int64_t count = 0;
    const bool is_number = absl::SimpleAtoi(parts.first, &count);
    if (is_number && !parts.second.empty())
      terms.counts[std::string(parts.second)] = count;
    else if (is_number)
      terms.number = count;
    else
      terms.counts[std::string(term)] = 1;
  }
  return terms;
}

Dim DimOf(const Terms& terms) {
  std::vector<std::string> sum;
  for (const auto& [symbol, count] : terms.counts) {
    if (count == 1) sum.push_back(symbol);
    if (count > 1) sum.push_back(absl::StrCat(count, kOfSymbol, symbol));
  }
  if (sum.empty()) return Dim(terms.number);
  if (terms.number != 0) sum.push_back(absl::StrCat(terms.number));
  return Dim(absl::StrJoin(sum, kPlus));
}

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

std::vector<std::string> SymbolsOf(const Dim& dim) {
  std::vector<std::string> symbols;
  for (const auto& [symbol, count] : TermsOf(dim).counts) symbols.push_back(symbol);
  return symbols;
}

Dim Times(int64_t count, const Dim& dim) {
  Terms terms = TermsOf(dim);
  terms.number = Clamped(Wide{terms.number} * count);
  for (auto& [symbol, times] : terms.counts) times = Clamped(Wide{times} * count);
  return DimOf(terms);
}

Dim SumOf(absl::Span<const Dim> extents) {
  Terms sum;
  for (const Dim& dim : extents) {
    const Terms terms = TermsOf(dim);
    sum.number = Clamped(Wide{sum.number} + terms.number);
    for (const auto& [symbol, count] : terms.counts)
      sum.counts[symbol] = Clamped(Wide{sum.counts[symbol]} + count);
  }
  return DimOf(sum);
}

Dim WithSizes(const Dim& dim,
              absl::FunctionRef<std::optional<int64_t>(const std::string& symbol)> size_of) {
  Terms bound, terms = TermsOf(dim);
  bound.number = terms.number;
  for (const auto& [symbol, count] : terms.counts) {
    if (const std::optional<int64_t> size = size_of(symbol); size.has_value())
      bound.number = Clamped(Wide{bound.number} + Wide{count} * *size);
    else
      bound.counts[symbol] = count;
  }
  return DimOf(bound);
}

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
