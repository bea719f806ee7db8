#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coconet/hlo/hlo_arrays.h"
#include "coconet/hlo/text/hlo_module.h"

namespace coconet {

// Instructions of arrays: all but calls, loops, and making and reading tuples.

/// Whether HloOperation has a row for the opcode, whatever the attributes.
bool KnowsHlo(absl::string_view opcode);

/// The value of an instruction. Unimplemented, naming the operation («sort»), if it is not
/// supported.
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

/// Whether each element of the result is computed from the operands' elements in the same place.
bool IsElementwiseHlo(absl::string_view opcode);

/// The one operation of a computation of two scalars that an attribute names: "add", "maximum",
/// ...; "" if it does more than one.
absl::string_view CombinerOf(const HloModule& module, const HloInstruction& instruction,
                             absl::string_view attribute = "to_apply");

/// The reduction that a combiner does on elements of a type; none if there is none.
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
