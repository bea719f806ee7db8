#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace coconet {

// XLA's HLO as its text says it: computations of instructions, nothing interpreted yet. See
// https://openxla.org/xla/operation_semantics for what instructions mean.

/// XLA's element types that the parser knows, and what stands where a type does.
enum class HloType : uint8_t {
  kPred,
  kS4,
  kS8,
  kS16,
  kS32,
  kS64,
  kU4,
  kU8,
  kU16,
  kU32,
  kU64,
  kF4E2M1FN,
  kF8E3M4,
  kF8E4M3,
  kF8E4M3FN,
  kF8E4M3B11FNUZ,
  kF8E4M3FNUZ,
  kF8E5M2,
  kF8E5M2FNUZ,
  kF8E8M0FNU,
  kF16,
  kBF16,
  kF32,
  kF64,
  kC64,
  kC128,
  kToken,  // orders side effects; no data
  kOpaque,
  kTuple,
};

/// "f32", "pred", "f8e4m3fn", "token", "opaque", "tuple".
absl::string_view Name(HloType type);
std::optional<HloType> ParseHloType(absl::string_view name);
/// Bits of an element; 0 for tokens, opaque values and tuples.
int BitsOf(HloType type);

/// Type and extents of an array, or the shapes of a tuple's elements.
struct HloShape {
  HloType type = HloType::kTuple;
  std::vector<int64_t> dims;  // of an array
  /// The dimensions of an array in the order of their strides, the least first; empty: the last
  /// dimension first. It matters to bitcasts only.
  std::vector<int> minor_to_major;
  std::vector<HloShape> elements;  // of a tuple

  /// An array in the usual layout.
  static HloShape Of(HloType type, std::vector<int64_t> dims = {}) {
    HloShape shape;
    shape.type = type;
    shape.dims = std::move(dims);
    return shape;
  }

  bool is_tuple() const { return type == HloType::kTuple; }
  /// The elements of an array, or of all elements of a tuple.
  int64_t elements_count() const;
  /// Bytes of the data, rounded up for each array.
  int64_t bytes() const;
  /// Compares type and extents; layouts may differ.
  bool operator==(const HloShape& other) const {
    return type == other.type && dims == other.dims && elements == other.elements;
  }
};
/// "f32[2,3]", "(f32[], s32[4])".
std::string Text(const HloShape& shape);

/// The most elements of an array, and the most arrays in a shape with all its tuples.
inline constexpr int64_t kMostHloElements = int64_t{1} << 40;
inline constexpr int kMostHloArrays = 1 << 16;

/// `name=value` after an instruction's operands. The value is text, braces included.
struct HloAttribute {
  absl::string_view name, value;
};

struct HloInstruction {
  absl::string_view name;  // without '%'
  absl::string_view opcode;
  HloShape shape;
  std::vector<int32_t> operands;  // instructions of the computation, all before this one
  absl::string_view argument;     // of constant and parameter: the text between the parentheses
  std::vector<HloAttribute> attributes;
  int64_t line = 0;

  /// The attribute's value; null if it has none of the name.
  const absl::string_view* Find(absl::string_view attribute) const;
};

struct HloComputation {
  absl::string_view name;
  std::vector<HloInstruction> instructions;
  std::vector<int32_t> parameters;  // by number
  int32_t root = -1;

  const HloInstruction& Root() const { return instructions[static_cast<size_t>(root)]; }
};

/// A module, with the text that its names and attributes lie in.
struct HloModule {
  std::shared_ptr<const std::string> text;
  absl::string_view name;
  std::vector<HloAttribute> attributes;
  std::vector<HloComputation> computations;  // those that are called before their callers
  absl::flat_hash_map<absl::string_view, int32_t> numbers;  // of computations, by name
  int32_t entry = -1;

  const HloComputation& Entry() const { return computations[static_cast<size_t>(entry)]; }
  const absl::string_view* Find(absl::string_view attribute) const;
  /// The computation of the name, with or without '%'; null if there is none.
  const HloComputation* FindComputation(absl::string_view name) const;
};

/// Whether XLA has instructions of this kind.
bool IsHloOpcode(absl::string_view opcode);

/// "line 7: %add.3 = f32[4] add": the place of an error in messages.
std::string Where(const HloInstruction& instruction);

}  // namespace coconet
