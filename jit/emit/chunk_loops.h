#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "jit/expressions/kernel_context.h"
#include "jit/expressions/phase_text.h"

namespace coconet {

class Rings;

/// The loops over a chunk's elements, and over its rows if the kernel folds them; "" if the phase
/// stores nothing.
std::string ElementsText(KernelContext& k, const PhaseText& phase);

/// "{...}", a Cut of the dialect: how the kernel's elements are cut over ranks.
std::string CutText(const KernelContext& k);

/// The begin of the loop over the chunks of slice `slice` of a cut; `node`: whose part of it, ""
/// for all.
std::string ForChunksText(const KernelContext& k, absl::string_view cut, absl::string_view slice,
                          absl::string_view node);

/// The loop over this block's chunks, with `body` for each: of the rank's slice, of all slices as
/// they come, or of the whole tensor.
std::string ChunksText(const KernelContext& k, const Rings& rings, const PhaseText& phase,
                       absl::string_view body);

/// The loop over the tensors of a list: `locals` of each first, then how its elements are cut, then
/// `work`.
std::string OverTensorsText(const KernelContext& k, const PhaseText& phase,
                            absl::string_view locals, absl::string_view work);

}  // namespace coconet
