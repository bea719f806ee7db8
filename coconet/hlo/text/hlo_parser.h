#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "coconet/hlo/text/hlo_module.h"

namespace coconet {

/// The longest text that is read, in bytes. The largest training steps have some 10 MiB.
inline constexpr size_t kMostHloText = size_t{1} << 28;

/// Reads HLO text: what XLA prints before and after its passes, with or without types of operands,
/// signatures of computations and '%' before names. Time and memory are linear in the text.
///
/// InvalidArgument, with the line and the instruction: text that is no HLO (StableHLO and MLIR are
/// named as such), that ends early, is longer than kMostHloText, or nests deeper than 100; unknown
/// or dynamic types, shapes that overflow; operands or computations that are not defined before;
/// names that are defined twice; a number of parameters that leaves gaps; no ENTRY.
absl::StatusOr<HloModule> ParseHlo(std::string text);

/// Reads a shape, such as "f32[2,3]{1,0}" or "(f32[], s32[4])". `text` becomes what follows it.
absl::StatusOr<HloShape> ParseHloShape(absl::string_view& text);

}  // namespace coconet
