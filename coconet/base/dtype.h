#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "coconet/base/number.h"

namespace coconet {

/// Element types. f16 is IEEE binary16, bf16 the upper half of an f32; bool is one byte, 0 or 1.
/// f8e4m3 and f8e5m2 are OCP's 8-bit floats E4M3 and E5M2: E5M2 is the upper half of an f16; E4M3
/// has a bias of 7 and no infinities, and is NaN where all bits but the sign are 1.
enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kF64,
  kI8,
  kI16,
  kI32,
  kI64,
  kU8,
  kU16,
  kU32,
  kU64,
  kBool,
  kF8E4M3,
  kF8E5M2,
};

inline constexpr DType kAllDTypes[] = {DType::kF32,  DType::kF16,    DType::kBF16,  DType::kF64,
                                       DType::kI8,   DType::kI16,    DType::kI32,   DType::kI64,
                                       DType::kU8,   DType::kU16,    DType::kU32,   DType::kU64,
                                       DType::kBool, DType::kF8E4M3, DType::kF8E5M2};

absl::string_view Name(DType type);  // "f32", "f16", ...
std::optional<DType> ParseDType(absl::string_view name);
size_t SizeOf(DType type);  // bytes of one element
bool IsFloat(DType type);
/// A float of fewer than 32 bits, which kernels compute in f32: f16, bf16, f8e4m3, f8e5m2.
bool IsNarrowFloat(DType type);
/// A float of 8 bits: f8e4m3, f8e5m2.
bool IsFloat8(DType type);
/// All floats but f8e4m3. What f8e4m3 cannot hold, infinities too, becomes NaN.
bool HasInfinity(DType type);
/// A number that is no float: not bool.
bool IsInteger(DType type);
/// Has negative numbers: floats, i8 to i64.
bool IsSigned(DType type);

/// Half the distance from 1 to the next number: the relative error of one rounding; 0 for integers.
double UnitRoundoff(DType type);
/// The smallest positive subnormal: the absolute error of a rounding near 0; 0 for integers.
double MinSubnormal(DType type);
/// The largest finite value; of i64 and u64 the largest double that is none too large. See
/// Greatest.
double MaxFinite(DType type);
/// The least value that is finite: exact.
double MinFinite(DType type);
/// The greatest number of a type: infinity of floats that have it, true of bool.
Number Greatest(DType type);
/// The least number of a type: -infinity of floats that have it, false of bool.
Number Least(DType type);

/// Element `index` of an array of `type`: a real number of floats, else an integer (of bools 0 or
/// 1).
Number LoadElement(DType type, const void* data, int64_t index);
/// Writes `value` rounded to nearest even. Integers: truncated towards zero and saturated, NaN
/// becomes 0. bool: value != 0.
void StoreElement(DType type, void* data, int64_t index, const Number& value);
/// What StoreElement makes of a number, as LoadElement reads it.
Number Stored(DType type, const Number& value);
/// OK if an element of `type` holds `value`: an integer type exactly, a float rounded, but no
/// finite number as an infinity, and no number as NaN. InvalidArgument says what is wanted and
/// found.
absl::Status CheckHolds(DType type, const Number& value);
/// The low bits of an integer, as many as `type`, an integer type or bool, has.
Number Wrapped(DType type, absl::int128 integer);
/// What the bits of a number of type `from` are in type `to`, which has as many.
Number BitCastElement(DType from, DType to, const Number& number);

uint16_t F16FromF32(float value);  // round to nearest even
float F32FromF16(uint16_t bits);
uint16_t BF16FromF32(float value);  // round to nearest even
float F32FromBF16(uint16_t bits);
/// Rounds to nearest even; beyond 464, which rounds to 448, the greatest number, to NaN.
uint8_t F8E4M3FromF32(float value);
float F32FromF8E4M3(uint8_t bits);
uint8_t F8E5M2FromF32(float value);  // round to nearest even
float F32FromF8E5M2(uint8_t bits);

/// How a collective combines the ranks' values, element by element.
enum class ReduceKind : uint8_t { kSum, kMax, kMin };
inline constexpr ReduceKind kAllReduceKinds[] = {ReduceKind::kSum, ReduceKind::kMax,
                                                 ReduceKind::kMin};
absl::string_view Name(ReduceKind kind);  // "sum", "max", "min"
std::optional<ReduceKind> ParseReduceKind(absl::string_view name);

}  // namespace coconet
