#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "autotune/store/families/bucket_rows.h"
#include "coconet/ir/graph.h"
#include "coconet/ir/typed_graph.h"
#include "coconet/ir/types.h"
#include "jit/config/config.h"
#include "jit/lower/lower.h"

namespace coconet {

/// A program as a member of its family: the programs that differ from it in sizes alone.
struct FamilyMember {
  Graph symbolic;  // canonical, with symbols
  Sizes sizes;     // of its symbols, one each
};

/// A program whose sizes are not bound. Sizes that are lists have no families.
bool HasFamily(const Sizes& sizes);
FamilyMember MemberOf(const Graph& symbolic, const Sizes& sizes);

/// "N=4096 K=8"
std::string Words(const Sizes& sizes);

/// Says that these sizes run a bucket's variant, in a line.
std::string BucketText(const Sizes& sizes, const SizeBucket& bucket);

/// `bound`, a program of the family or what a schedule made of it, with the shapes that its inputs
/// and states have in the symbolic program at these sizes. None if other operations have shapes.
std::optional<Graph> WithSizesOf(const Graph& bound, const Graph& symbolic, const Sizes& sizes);

/// Whether the values of two programs of the same operations have equal extents in the same places,
/// and extents 0 and 1: transformations that hold for one may need those of the other.
bool HasSamePattern(const TypedGraph& a, const TypedGraph& b);

/// Digest of what a lowered variant runs apart from sizes: the variant, the text of its kernels,
/// and its steps, in order, with the buffers that they use. Sizes are arguments of kernels and of
/// calls, so what was verified at some sizes of a family is right at others with the same digest,
/// as far as sizes do not matter; and they are verified at sizes of all kinds (small_sizes.h).
std::string FamilyCode(absl::string_view trace, const Config& config, const Lowered& lowered);

}  // namespace coconet
