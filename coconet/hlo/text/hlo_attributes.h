#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "coconet/hlo/text/hlo_module.h"

namespace coconet {

// Attributes of instructions as values. A missing attribute is an error, unless a function says
// otherwise; errors name the instruction and its line.

/// The attribute's text; InvalidArgument if it is missing.
absl::StatusOr<absl::string_view> AttributeText(const HloInstruction& instruction,
                                                absl::string_view name);

/// "dimensions={0,2}"; empty if the attribute is missing.
absl::StatusOr<std::vector<int64_t>> IntegersOf(const HloInstruction& instruction,
                                                absl::string_view name);

/// "index=3", "iota_dimension=0"; `missing` if it is missing, an error if that is null.
absl::StatusOr<int64_t> IntegerOf(const HloInstruction& instruction, absl::string_view name,
                                  const int64_t* missing = nullptr);

/// "indices_are_sorted=true"; false if it is missing.
absl::StatusOr<bool> FlagOf(const HloInstruction& instruction, absl::string_view name);

struct HloRange {
  int64_t begin = 0, end = 0, step = 1;
};
/// "slice={[0:4], [1:9:2]}".
absl::StatusOr<std::vector<HloRange>> SliceOf(const HloInstruction& instruction);

/// Elements before, after and between those of the operand; before and after may be negative.
struct HloPadding {
  int64_t before = 0, after = 0, between = 0;
};
/// "padding=0_0x1_2_3"; empty of a scalar.
absl::StatusOr<std::vector<HloPadding>> PaddingOf(const HloInstruction& instruction);

/// One dimension of a window that goes over an array.
struct HloWindowDim {
  int64_t size = 1, stride = 1;
  HloPadding padding;    // of the array; `between` by its dilation
  int64_t dilation = 1;  // of the window's places
  bool is_reversed = false;
};
/// "window={size=3x3 stride=2x2 pad=1_1x0_0 lhs_dilate=2x2 rhs_dilate=1x1 rhs_reversal=0x1}"; empty
/// if the attribute is missing. Sizes, strides and dilations are positive.
absl::StatusOr<std::vector<HloWindowDim>> WindowOf(const HloInstruction& instruction);

/// "source_target_pairs={{0,1},{1,0}}".
absl::StatusOr<std::vector<std::pair<int64_t, int64_t>>> PairsOf(const HloInstruction& instruction);

/// The groups of devices of a collective, each in the order of their ranks in it:
/// "{{0,1},{2,3}}" or "[2,2]<=[2,2]T(1,0)", which counts through a mesh of the given extents with
/// its dimensions in the order of T; or "mesh['x'=2,'y'=2] {'y'}", along axes of a mesh. Empty: one
/// group of all devices ("{}").
absl::StatusOr<std::vector<std::vector<int64_t>>> GroupsOf(const HloInstruction& instruction);

/// Names of computations: "to_apply=%add", "branch_computations={%a, %b}"; without '%'.
absl::StatusOr<std::vector<absl::string_view>> ComputationsOf(const HloInstruction& instruction,
                                                              absl::string_view name);

/// "{ {0}: (0, {}, may-alias), {1, 2}: (3, {1}, must-alias) }".
struct HloAlias {
  std::vector<int64_t> output;  // index in the tuple of results
  int64_t parameter = 0;
  std::vector<int64_t> of_parameter;  // index in the parameter's tuple
};
/// input_output_alias; empty if the module has none.
absl::StatusOr<std::vector<HloAlias>> AliasesOf(const HloModule& module);

/// buffer_donor: parameters whose memory results may take, "{ (0, {}), (3, {}) }"; parts of tuples
/// are left out.
absl::StatusOr<std::vector<int64_t>> DonorsOf(const HloModule& module);

/// Whether a constant's numbers were left out when it was printed: "constant({...})".
bool IsElided(const HloInstruction& constant);

/// The numbers of a literal in row-major order, as text: 1, 2, 3, 4 for "{ { 1, 2 }, { 3, 4 } }".
/// InvalidArgument if their count differs from the shape's elements, or if IsElided.
absl::StatusOr<std::vector<absl::string_view>> LiteralOf(const HloInstruction& constant);

}  // namespace coconet
