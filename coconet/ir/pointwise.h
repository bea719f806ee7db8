#pragma once

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "coconet/base/dtype.h"

namespace coconet {

/// The elementwise functions: kAdd, kSub, ..., one per row of pointwise.inc.
enum class Pw : uint8_t {
#define UNARY(name, ...) k##name,
#define BINARY(name, ...) k##name,
#define TERNARY(name, ...) k##name,
#include "coconet/ir/pointwise.inc"
#undef UNARY
#undef BINARY
#undef TERNARY
};

/// What an elementwise function's result type is.
enum class PwResult : uint8_t { kSame, kBool };

struct PwInfo {
  absl::string_view name;  // in the text form, e.g. "add"
  int arity = 0;
  /// Expression over $0, $1, $2 of type Pack<T, V>, in the kernel dialect (functions of the
  /// prelude).
  absl::string_view kernel_expr;
  /// Reference semantics over the reals; for integers see EvalPointwise.
  double (*eval)(const double* args) = nullptr;
  bool float_only = false;            // refuses integer operands (sqrt, exp, ...)
  bool of_bools = false;              // takes bools only, others take none but conditions
  bool of_bits = false;               // takes integers only
  PwResult result = PwResult::kSame;  // kSame: dtype of the last operand; kBool: a comparison
  /// Roundings of the compute type that the kernel's expression may commit, in units of
  /// UnitRoundoff: 1 for correctly rounded operations, 0 for exact ones, more for library
  /// functions.
  double ulps = 0;
  /// What these roundings are relative to; null: the result.
  double (*magnitude)(const double* args) = nullptr;
  /// Whether the function has a pole, or no value, within `errors` around `args`; null: it has
  /// none. Elsewhere its deviation is greatest at the corners of these intervals.
  bool (*pole)(const double* args, const double* errors) = nullptr;
};

inline constexpr size_t kPointwiseCount = 0
#define UNARY(...) +1
#define BINARY(...) +1
#define TERNARY(...) +1
#include "coconet/ir/pointwise.inc"
#undef UNARY
#undef BINARY
#undef TERNARY
    ;

const PwInfo& Info(Pw fn);
std::optional<Pw> FindPointwise(absl::string_view name);
/// In the order of Pw.
absl::Span<const PwInfo> AllPointwise();

/// Info(fn).eval with the arithmetic of `operands` where that is an integer type: quotients are
/// truncated towards zero, x / 0 is 0, overflow wraps. Exact while results stay within 2^53.
double EvalPointwise(Pw fn, DType operands, const double* args);

}  // namespace coconet
