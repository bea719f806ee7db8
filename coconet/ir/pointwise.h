#pragma once

#include <cstdint>
#include <optional>

#include "absl/numeric/int128.h"
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

/// What a kernel executes for an elementwise function of f32 or integers (jit/device).
struct PwWork {
  double simple = 0;
  double extrema = 0, divisions = 0, roots = 0, exps = 0, tanhs = 0, erfs = 0, library = 0;
};

struct PwInfo {
  absl::string_view name;  // in the text form, e.g. "add"
  int arity = 0;
  /// Expression over $0, $1, $2 of type Pack<T, V>, in the kernel dialect (functions of the
  /// prelude).
  absl::string_view kernel_expr;
  /// Reference semantics over the reals; NaN for functions of bits (of_bits).
  double (*eval)(const double* args) = nullptr;
  /// The result for integers and bools of `bits` bits each, before it wraps around. For float_only
  /// functions it serves plain numbers only, and is null if it would rarely be an integer.
  absl::int128 (*of_integers)(const absl::int128* args, int bits) = nullptr;
  bool float_only = false;            // refuses integer operands (sqrt, exp, ...)
  bool of_bools = false;              // takes bools only, others take none but conditions
  bool of_bits = false;               // takes integers only
  PwResult result = PwResult::kSame;  // kSame: dtype of the last operand; kBool: a comparison
  bool is_step = false;               // its derivative is 0 wherever it exists
  /// Roundings of the compute type that the kernel's expression may commit, in units of
  /// UnitRoundoff: 1 for correctly rounded operations, 0 for exact ones, more for library
  /// functions.
  double ulps = 0;
  /// The result is exact, but may have to be rounded when it is stored in a narrow type. The
  /// results of other exact functions are an operand, its negative, or a number that all types
  /// have.
  bool makes_numbers = false;
  /// What these roundings are relative to; null: the result.
  double (*magnitude)(const double* args) = nullptr;
  /// Whether the function has a pole, or no value, within `errors` around `args`; null: it has
  /// none. Elsewhere its deviation is greatest at the corners of these intervals.
  bool (*pole)(const double* args, const double* errors) = nullptr;
  PwWork work;
  absl::string_view hlo;   // XLA's opcode; empty: it has none, or one that is a case of its own
  absl::string_view what;  // Python's docstring; empty: operators alone write it in Python
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

/// One element of the result as the type holds it in exact arithmetic: Info(fn).eval, not rounded,
/// for floats; for integers quotients are truncated towards zero, x / 0 = 0, and overflows wrap
/// around; 0 or 1 for comparisons and functions of bools. `operands`: their dtype; a selection's is
/// that of the last two.
Number EvalPointwise(Pw fn, DType operands, const Number* args);

/// The same for plain numbers, which have no type: exact if all operands and the result are
/// integers; bits are those of i64; quotients are real. NaN if a function of bits has a real
/// operand.
Number EvalNumbers(Pw fn, const Number* args);

}  // namespace coconet
