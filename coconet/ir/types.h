#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "coconet/base/dtype.h"
#include "coconet/base/slices.h"

namespace coconet {

/// One extent: a number, or a symbol that is bound to one before lowering, or a sum of these.
struct Dim {
  int64_t size = 0;
  std::string symbol;  // non-empty: not yet bound, `size` is meaningless. "N", "M + 2*N + 4"

  template <std::integral T>  // any integer, so that a literal 0 is no null pointer
  Dim(T n) : size(static_cast<int64_t>(n)) {}         // NOLINT: {1024, 4096} reads as a shape
  Dim(std::string name) : symbol(std::move(name)) {}  // NOLINT
  Dim(const char* name) : symbol(name) {}             // NOLINT
  bool bound() const { return symbol.empty(); }
  bool operator==(const Dim&) const = default;
};
using Shape = std::vector<Dim>;

/// The symbols of an extent, which is a sum of symbols and a number; not checked to be names.
std::vector<std::string> SymbolsOf(const Dim& dim);
/// `count` times an extent, and the sum of extents. Equal sums are equal extents: symbols are in
/// alphabetical order, the number is last. A number too large for 64 bits is the greatest of them.
Dim Times(int64_t count, const Dim& dim);
Dim SumOf(absl::Span<const Dim> extents);
/// The extent with numbers in place of those symbols that `size_of` knows.
Dim WithSizes(const Dim& dim,
              absl::FunctionRef<std::optional<int64_t>(const std::string& symbol)> size_of);

/// What a symbol is bound to: one size, or a list of them, one per tensor. The program then runs on
/// each tensor (lists.h).
struct BoundSize {
  std::vector<int64_t> sizes;
  bool is_list = false;

  template <std::integral T>
  BoundSize(T n) : sizes{static_cast<int64_t>(n)} {}  // NOLINT: {{"N", 1024}}
  BoundSize(std::initializer_list<int64_t> list)
      : sizes(list), is_list(true) {}  // NOLINT: {{"N", {1024, 4096}}}
  BoundSize(std::vector<int64_t> list) : sizes(std::move(list)), is_list(true) {}  // NOLINT
  bool operator==(const BoundSize&) const = default;
};

/// Values for symbols, e.g. {{"N", 1 << 24}}, {{"N", {1024, 4096}}}.
using Sizes = std::map<std::string, BoundSize>;
/// The lists that symbols are bound to.
using SizeLists = std::map<std::string, std::vector<int64_t>>;

/// Where the elements of a result go: slices of a dimension to the ranks, or all to one of them.
struct Cut;

/// How a tensor lies over the ranks.
struct Layout {
  enum class Kind : uint8_t {
    kLocal,       // each rank its own values
    kReplicated,  // the same values on every rank
    kSliced,      // rank i holds part i of dimension `dim`
    kAuto,        // states only: Replicated, unless a schedule slices it
  };
  static constexpr int kFlat = -1;   // dim: all dimensions merged into one (row-major)
  static constexpr int kOwned = -2;  // dim: none is cut, one rank has the whole tensor
  /// kSliced: which parts a rank holds. The parts of a place are those of all ranks with this
  /// rank's number in their node: one per node, one after the other in memory.
  enum class Parts : uint8_t {
    kOwn,           // its own
    kPlace,         // those of its place: the same on all nodes
    kPartialPlace,  // the same parts, and of each what this node contributes, before that is
                    // reduced across nodes
  };

  Kind kind = Kind::kReplicated;
  int dim = 0;                // kSliced only; else 0
  Parts parts = Parts::kOwn;  // kSliced only; else kOwn
  /// kSliced only: the tensors of a list lie side by side along `dim`, and each rank has an equal
  /// part of their weights (SliceShare), instead of an equal part of each tensor. `by` names the
  /// list of the weights until a tensor of the list is chosen (lists.h), `share` is then that
  /// tensor's. The weights decide which rank has an owned tensor, by its `turn`.
  std::string by = {};
  Share share = {};
  Turn turn = {};

  static Layout Local() { return {Kind::kLocal}; }
  static Layout Replicated() { return {Kind::kReplicated}; }
  static Layout Sliced(int dim, Parts parts = Parts::kOwn) { return {Kind::kSliced, dim, parts}; }
  static Layout Sliced(const Cut& to, Parts parts = Parts::kOwn);
  static Layout SlicedBy(std::string weights, int dim) {
    return {Kind::kSliced, dim, Parts::kOwn, std::move(weights)};
  }
  /// Each tensor of a list is whole on one rank, balanced by weights; on rank 0 if there are none.
  static Layout Owned(std::string weights = "") { return SlicedBy(std::move(weights), kOwned); }
  static Layout Auto() { return {Kind::kAuto}; }
  /// A rank has a part; the owner of an owned tensor has all of it, the others nothing.
  bool sliced() const { return kind == Kind::kSliced; }
  bool owned() const { return sliced() && dim == kOwned; }
  /// A rank has a part of some dimension, or of all as one.
  bool cut() const { return sliced() && dim != kOwned; }
  /// Not cut in equal parts: by weights, or owned.
  bool weighted() const { return !by.empty() || share.of > 0 || owned(); }
  /// Parts cut alike, over another dimension.
  Layout Over(int other_dim) const {
    Layout other = *this;
    other.dim = other_dim;
    return other;
  }
  /// A rank holds the parts of its place: more than its own if there are several nodes. Only
  /// between collectives of one step.
  bool by_place() const { return parts != Parts::kOwn; }
  bool operator==(const Layout&) const = default;
};

struct Cut {
  int dim = 0;  // also Layout::kFlat and kOwned
  // kOwned only, as in Layout.
  std::string by = {};
  Turn turn = {};

  Cut(int dim = 0) : dim(dim) {}  // NOLINT: ReduceScatter{kind, 0}
  static Cut Owned(std::string weights = "") {
    Cut to(Layout::kOwned);
    to.by = std::move(weights);
    return to;
  }
  bool operator==(const Cut&) const = default;
};

inline Layout Layout::Sliced(const Cut& to, Parts parts) {
  Layout layout = SlicedBy(to.by, to.dim);
  layout.parts = parts;
  layout.turn = to.turn;
  return layout;
}

/// dtype, global shape and layout of a tensor. A Sliced tensor keeps its global shape here.
struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;  // empty: a scalar
  Layout layout;
  bool operator==(const TensorType&) const = default;
};

std::string Text(const Dim& dim);          // "N", "1024"
std::string Text(const Shape& shape);      // "[N, 1024]"; a scalar prints as "[]"
std::string Text(const Layout& layout);    // "local", "replicated", "sliced(0)", "sliced(flat)",
                                           // "sliced(0, place)", "sliced(0, partial)",
                                           // "sliced(1, by L)", "sliced(1, by 3+2/214)",
                                           // "owned(by L)", "owned(after 5, 3)", "owned", "auto"
std::string Text(const Cut& to);           // "0", "flat", "owned(by L)"
std::string Text(const TensorType& type);  // "f32[N] sliced(0)"
std::string Text(const BoundSize& size);   // "1024", "1024,4096"
std::string DimText(int dim);              // of a slicing: "0", "flat", "owned"

bool IsBound(const Shape& shape);

/// The most elements of a tensor. Sizes in bytes and padded sizes then fit in 64 bits with room to
/// spare.
inline constexpr int64_t kMaxElements = int64_t{1} << 40;
/// InvalidArgument if a bound extent is negative, or if the tensor has more than kMaxElements.
absl::Status CheckExtents(const Shape& shape);

/// Number of elements. Requires IsBound(shape) and CheckExtents(shape).
int64_t NumElements(const Shape& shape);

/// How a Sliced tensor of a bound shape is cut. For a flat slicing (or dim 0 of a vector) `inner`
/// is 1, and an owned tensor is sliced flat with an extent that is its owner's; for dim d `outer`
/// and `inner` are the products of the extents before and after d.
struct TensorSlicing {
  Slicing slicing;
  int64_t outer = 1, inner = 1;
  /// A rank's part is one contiguous run of the global tensor (flat, or everything before dim is
  /// 1), at the rank's number times the size of a part.
  bool contiguous() const { return outer == 1 && slicing.shift == 0; }
  int64_t padded_elements() const { return outer * slicing.padded() * inner; }
  int64_t slice_elements() const { return outer * slicing.per * inner; }  // storage of one rank
};
TensorSlicing SlicingOf(const Shape& shape, int dim, int ranks);
/// The slicing of a sliced layout, whose weights are bound.
TensorSlicing SlicingOf(const Shape& shape, const Layout& layout, int ranks);
inline TensorSlicing SlicingOf(const TensorType& type, int ranks) {
  return SlicingOf(type.shape, type.layout, ranks);
}

}  // namespace coconet
