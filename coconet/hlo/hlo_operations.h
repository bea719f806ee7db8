#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coconet/hlo/hlo_arrays.h"
#include "coconet/hlo/text/hlo_module.h"

namespace coconet {

// Instructions of arrays: not calls, loops, and what makes tuples or takes them apart.

/// Whether HloOperation knows instructions of this kind, whatever their attributes.
bool KnowsHlo(absl::string_view opcode);

/// The value of an instruction. Unimplemented, with what it is («sort»), where it is not supported.
absl::StatusOr<HloValue> HloOperation(const HloModule& module, const HloInstruction& instruction,
                                      absl::Span<const HloValue> operands, HloArrays& arrays);

/// Computes the instructions of one opcode; operands are arrays, or may be tuples.
struct HloRow {
  absl::string_view opcode;
  absl::StatusOr<HloValue> (*value)(const HloModule& module, const HloInstruction& instruction,
                                    absl::Span<const HloValue> operands, HloArrays& arrays);
  bool of_tuples = false;
};

// By files.
std::vector<HloRow> ElementwiseHlo();
std::vector<HloRow> ShapesHlo();  // broadcasts, slices, joins; constants
std::vector<HloRow> DotHlo();     // products over any dimensions
std::vector<HloRow> ReductionsHlo();
std::vector<HloRow> RowsByIndexHlo();  // gather, scatter
std::vector<HloRow> DynamicSlicesHlo();
std::vector<HloRow> CollectivesHlo();  // and the numbers of devices
std::vector<HloRow> WindowsHlo();

/// Whether it computes each element of those of the same place.
bool IsElementwiseHlo(absl::string_view opcode);

/// What the computation of two scalars that an attribute names does, where it does one thing:
/// "add", "maximum", ..., "" if it does not.
absl::string_view CombinerOf(const HloModule& module, const HloInstruction& instruction,
                             absl::string_view attribute = "to_apply");

/// What combines elements of a type, in a computation that does one thing.
std::optional<ReduceKind> ReduceKindOf(absl::string_view combiner, HloType type);

/// Unimplemented: "sort of pred".
absl::Status UnsupportedHlo(const HloInstruction& instruction, absl::string_view what = "");
/// Unimplemented: "reduce by multiply"; "": by a computation that does more than one thing.
absl::Status NotCombined(const HloInstruction& instruction, absl::string_view combiner);
/// InvalidArgument with the instruction and what is wrong.
absl::Status WrongHlo(const HloInstruction& instruction, absl::string_view what);
/// InvalidArgument unless all are dimensions of an array, each once.
absl::Status CheckDims(const HloInstruction& instruction, absl::Span<const int64_t> dims,
                       const HloShape& shape);

}  // namespace coconet
