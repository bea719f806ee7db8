#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "coconet/hlo/hlo_arrays.h"
#include "coconet/hlo/text/hlo_module.h"

namespace coconet {

/// Costs of an instruction that no program has, per rank.
struct HloCosts {
  double flops = 0;       // floating-point operations
  double link_bytes = 0;  // of a collective: sent to other ranks, by algorithms that send least
};

/// The costs of an instruction with these operands, which may be parts of what its text says, in
/// groups of `group` ranks.
/// - convolution: 2 operations for each element of the result and each element of the kernel that
///   it meets; zeros between elements, which some gradients have, count as elements.
/// - custom calls of attention (queries [b, s, h, d], keys [b, t, g, d]): two products forward,
///   five backward, without masks.
/// - sort: n log2 n comparisons. reduce-window and select-and-scatter: one for each element of each
///   window. Others: one for each element of the result.
HloCosts CostsOf(const HloInstruction& instruction, absl::Span<const HloValue> operands,
                 int64_t group);

/// A name of the text form for what is opaque: "sort", "custom_call.te_fused_attn_forward_ffi".
std::string OpaqueName(absl::string_view what);

}  // namespace coconet
