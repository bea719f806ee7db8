#ifndef COCONET_OP_H_
#define COCONET_OP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "coconet/base/dtype.h"
#include "coconet/types.h"

namespace coconet {

/// Elementwise functions: one row of `kPointwise` each (pointwise.cc). Adding one touches the row,
/// this list, and its test.
enum class Pw : uint8_t {
  kAdd, kSub, kMul, kDiv, kNeg, kAbs, kMin, kMax, kPow, kSqrt, kRsqrt, kExp, kLog,
  kTanh, kSigmoid, kRelu, kGelu, kSilu, kLt, kLe, kGt, kGe, kEq, kNe, kSelect,
};

/// What an elementwise function's result type is.
enum class PwResult : uint8_t { kSame, kBool };

struct PwInfo {
  absl::string_view name;    // in the text form, e.g. "add"
  int arity;
  bool float_only;           // refuses integer operands (sqrt, exp, ...)
  PwResult result;           // kSame: dtype of the (last) operands; kBool: comparison
  /// Expression over $0, $1, $2 of type Pack<T, V>, in the kernel dialect (functions of the prelude).
  absl::string_view kernel_expr;
  /// Reference semantics over the reals; for integers see EvalPointwise.
  double (*eval)(const double* args);
  /// Roundings of the compute type that the kernel's expression may commit, in units of
  /// UnitRoundoff: 1 for correctly rounded operations, 0 for exact ones, more for library functions.
  double ulps;
  /// What these roundings are relative to; null: the result.
  double (*magnitude)(const double* args) = nullptr;
};

const PwInfo& Info(Pw fn);
std::optional<Pw> FindPointwise(absl::string_view name);
absl::Span<const PwInfo> AllPointwise();

/// Info(fn).eval with the arithmetic of `operands` where that is an integer type: quotients are truncated
/// towards zero, x / 0 is 0, overflow wraps. Exact while results stay within 2^53.
double EvalPointwise(Pw fn, DType operands, const double* args);

// ---- Operations -------------------------------------------------------------------------------
// Inputs of each are in the comment; types are inferred (infer.h).

struct Input         { std::string name; TensorType type; bool operator==(const Input&) const = default; };      // ()
struct State         { std::string name; TensorType type; bool operator==(const State&) const = default; };      // () yields the value before the step
struct Const         { double value = 0; DType dtype{};   bool operator==(const Const&) const = default; };      // () scalar
struct WorldSize     { DType dtype{};                     bool operator==(const WorldSize&) const = default; };  // () scalar: number of ranks
struct Pointwise     { Pw fn{};                           bool operator==(const Pointwise&) const = default; };  // (a, ...) NumPy broadcasting
struct Cast          { DType dtype{};                     bool operator==(const Cast&) const = default; };       // (a)
struct AllReduce     { ReduceKind kind{};                 bool operator==(const AllReduce&) const = default; };  // (Local) -> Replicated
struct ReduceScatter { ReduceKind kind{}; int dim = 0;    bool operator==(const ReduceScatter&) const = default; };  // (Local) -> Sliced(dim)
struct AllGather     {                                    bool operator==(const AllGather&) const = default; };  // (Sliced) -> Replicated
struct Update        {                                    bool operator==(const Update&) const = default; };     // (state, value): assigns in place, yields value
struct Output        { std::string name;                  bool operator==(const Output&) const = default; };     // (a) yields nothing

using Op = std::variant<Input, State, Const, WorldSize, Pointwise, Cast, AllReduce, ReduceScatter,
                        AllGather, Update, Output>;

/// "all_reduce", "add", "input @g": for messages.
std::string OpText(const Op& op);

/// The whole operation as the text form writes it: "mul(%3, %5)", "input g : f32[N] local". Two operations on
/// the same operands are equal exactly when these texts are.
std::string OpText(const Op& op, absl::Span<const std::string> operands);

/// "0.9", "1e-08", "inf": the shortest text that reads back as the same number.
std::string NumberText(double value);

}  // namespace coconet

#endif  // COCONET_OP_H_
