#include "coconet/hlo/text/hlo_module.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace coconet {
namespace {

struct TypeRow {
  absl::string_view name;
  int bits;
};
constexpr std::array<TypeRow, static_cast<size_t>(HloType::kTuple) + 1> kTypes = {{
    {"pred", 8},          {"s4", 4},         {"s8", 8},     {"s16", 16},       {"s32", 32},
    {"s64", 64},          {"u4", 4},         {"u8", 8},     {"u16", 16},       {"u32", 32},
    {"u64", 64},          {"f4e2m1fn", 4},   {"f8e3m4", 8}, {"f8e4m3", 8},     {"f8e4m3fn", 8},
    {"f8e4m3b11fnuz", 8}, {"f8e4m3fnuz", 8}, {"f8e5m2", 8}, {"f8e5m2fnuz", 8}, {"f8e8m0fnu", 8},
    {"f16", 16},          {"bf16", 16},      {"f32", 32},   {"f64", 64},       {"c64", 64},
    {"c128", 128},        {"token", 0},      {"opaque", 0}, {"tuple", 0},
}};

const absl::string_view* FindIn(const std::vector<HloAttribute>& attributes,
                                absl::string_view name) {
  const auto at = std::find_if(attributes.begin(), attributes.end(),
                               [&](const HloAttribute& a) { return a.name == name; });
  return at == attributes.end() ? nullptr : &at->value;
}

}  // namespace

absl::string_view Name(HloType type) { return kTypes[static_cast<size_t>(type)].name; }

std::optional<HloType> ParseHloType(absl::string_view name) {
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name && i != static_cast<size_t>(HloType::kTuple))
      return static_cast<HloType>(i);
  }
  return std::nullopt;
}

int BitsOf(HloType type) { return kTypes[static_cast<size_t>(type)].bits; }

int64_t HloShape::elements_count() const {
  int64_t count = is_tuple() ? 0 : 1;
  for (int64_t dim : dims) count *= dim;
  for (const HloShape& element : elements) count += element.elements_count();
  return count;
}

int64_t HloShape::bytes() const {
  int64_t bytes = is_tuple() ? 0 : (elements_count() * BitsOf(type) + 7) / 8;
  for (const HloShape& element : elements) bytes += element.bytes();
  return bytes;
}

std::string Text(const HloShape& shape) {
  if (!shape.is_tuple())
    return absl::StrCat(Name(shape.type), "[", absl::StrJoin(shape.dims, ","), "]");
  return absl::StrCat(
      "(",
      absl::StrJoin(shape.elements, ", ",
                    [](std::string* out, const HloShape& element) { out->append(Text(element)); }),
      ")");
}

const absl::string_view* HloInstruction::Find(absl::string_view attribute) const {
  return FindIn(attributes, attribute);
}

const absl::string_view* HloModule::Find(absl::string_view attribute) const {
  return FindIn(attributes, attribute);
}

const HloComputation* HloModule::FindComputation(absl::string_view computation) const {
  computation = absl::StripPrefix(computation, "%");
  const auto at = numbers.find(computation);
  return at == numbers.end() ? nullptr : &computations[static_cast<size_t>(at->second)];
}

std::string Where(const HloInstruction& instruction) {
  return absl::StrCat("line ", instruction.line, ": %", instruction.name, " = ",
                      Text(instruction.shape), " ", instruction.opcode);
}

bool IsHloOpcode(absl::string_view opcode) {
  // https://github.com/openxla/xla/blob/main/xla/hlo/ir/hlo_opcode.h
  static const auto& opcodes =
      *new absl::flat_hash_set<absl::string_view>{"abs",
                                                  "acos",
                                                  "acosh",
                                                  "add",
                                                  "add-dependency",
                                                  "after-all",
                                                  "all-gather",
                                                  "all-gather-done",
                                                  "all-gather-start",
                                                  "all-reduce",
                                                  "all-reduce-done",
                                                  "all-reduce-start",
                                                  "all-to-all",
                                                  "and",
                                                  "asin",
                                                  "asinh",
                                                  "async-done",
                                                  "async-start",
                                                  "async-update",
                                                  "atan2",
                                                  "atanh",
                                                  "batch-norm-grad",
                                                  "batch-norm-inference",
                                                  "batch-norm-training",
                                                  "bitcast",
                                                  "bitcast-convert",
                                                  "broadcast",
                                                  "call",
                                                  "cbrt",
                                                  "ceil",
                                                  "cholesky",
                                                  "clamp",
                                                  "collective-broadcast",
                                                  "collective-permute",
                                                  "collective-permute-done",
                                                  "collective-permute-start",
                                                  "compare",
                                                  "complex",
                                                  "concatenate",
                                                  "conditional",
                                                  "constant",
                                                  "convert",
                                                  "convolution",
                                                  "copy",
                                                  "copy-done",
                                                  "copy-start",
                                                  "cosh",
                                                  "cosine",
                                                  "count-leading-zeros",
                                                  "custom-call",
                                                  "divide",
                                                  "domain",
                                                  "dot",
                                                  "dynamic-reshape",
                                                  "dynamic-slice",
                                                  "dynamic-update-slice",
                                                  "erf",
                                                  "exponential",
                                                  "exponential-minus-one",
                                                  "fft",
                                                  "floor",
                                                  "fusion",
                                                  "gather",
                                                  "get-dimension-size",
                                                  "get-tuple-element",
                                                  "imag",
                                                  "infeed",
                                                  "iota",
                                                  "is-finite",
                                                  "log",
                                                  "log-plus-one",
                                                  "logistic",
                                                  "map",
                                                  "maximum",
                                                  "minimum",
                                                  "mulhi",
                                                  "multiply",
                                                  "negate",
                                                  "not",
                                                  "opt-barrier",
                                                  "optimization-barrier",
                                                  "or",
                                                  "outfeed",
                                                  "pad",
                                                  "parameter",
                                                  "partition-id",
                                                  "popcnt",
                                                  "power",
                                                  "ragged-all-to-all",
                                                  "ragged-dot",
                                                  "real",
                                                  "recv",
                                                  "recv-done",
                                                  "reduce",
                                                  "reduce-precision",
                                                  "reduce-scatter",
                                                  "reduce-window",
                                                  "remainder",
                                                  "replica-id",
                                                  "reshape",
                                                  "reverse",
                                                  "rng",
                                                  "rng-bit-generator",
                                                  "rng-get-and-update-state",
                                                  "round-nearest-afz",
                                                  "round-nearest-even",
                                                  "rsqrt",
                                                  "scaled-dot",
                                                  "scan",
                                                  "scatter",
                                                  "select",
                                                  "select-and-scatter",
                                                  "send",
                                                  "send-done",
                                                  "set-dimension-size",
                                                  "shift-left",
                                                  "shift-right-arithmetic",
                                                  "shift-right-logical",
                                                  "sign",
                                                  "sine",
                                                  "sinh",
                                                  "slice",
                                                  "sort",
                                                  "sqrt",
                                                  "stochastic-convert",
                                                  "subtract",
                                                  "tan",
                                                  "tanh",
                                                  "topk",
                                                  "transpose",
                                                  "triangular-solve",
                                                  "tuple",
                                                  "while",
                                                  "xor"};
  return opcodes.contains(opcode);
}

}  // namespace coconet
