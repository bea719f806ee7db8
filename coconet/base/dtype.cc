#include "coconet/base/dtype.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

struct DTypeInfo {
  absl::string_view name;
  size_t size;
  bool is_float;
  double unit_roundoff;
  double min_subnormal;
  double max_finite;
  double min_finite;
};

// One row per type, in the order of the enumeration.
constexpr DTypeInfo kDTypes[] = {
    {"f32", 4, true, 0x1p-24, 0x1p-149, std::numeric_limits<float>::max(),
     std::numeric_limits<float>::lowest()},
    {"f16", 2, true, 0x1p-11, 0x1p-24, 65504, -65504},
    {"bf16", 2, true, 0x1p-8, 0x1p-133, 0x1.fep127, -0x1.fep127},
    {"f64", 8, true, 0x1p-53, 0x1p-1074, std::numeric_limits<double>::max(),
     std::numeric_limits<double>::lowest()},
    {"i8", 1, false, 0, 0, 127, -128},
    {"i16", 2, false, 0, 0, 32767, -32768},
    {"i32", 4, false, 0, 0, 2147483647, -2147483648.0},
    {"i64", 8, false, 0, 0, 0x1.fffffffffffffp62, -0x1p63},
    {"u8", 1, false, 0, 0, 255, 0},
    {"u16", 2, false, 0, 0, 65535, 0},
    {"u32", 4, false, 0, 0, 4294967295, 0},
    {"u64", 8, false, 0, 0, 0x1.fffffffffffffp63, 0},
    {"bool", 1, false, 0, 0, 1, 0},
    {"f8e4m3", 1, true, 0x1p-4, 0x1p-9, 448, -448},
    {"f8e5m2", 1, true, 0x1p-3, 0x1p-16, 57344, -57344},
};
static_assert(std::size(kDTypes) == std::size(kAllDTypes));

const DTypeInfo& Row(DType type) { return kDTypes[static_cast<size_t>(type)]; }

constexpr absl::string_view kReduceNames[] = {"sum", "max", "min"};
static_assert(std::size(kReduceNames) == std::size(kAllReduceKinds));

template <class T>
T Read(const void* data, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void Write(void* data, int64_t index, T value) {
  std::memcpy(static_cast<char*>(data) + index * sizeof(T), &value, sizeof(T));
}

/// Truncates towards zero; out of range becomes the nearest limit, NaN becomes 0.
template <class T>
T Saturated(const Number& number) {
  using Limits = std::numeric_limits<T>;
  if (number.is_integer()) {
    const absl::int128 integer = number.integer();
    return static_cast<T>(std::clamp<absl::int128>(integer, Limits::min(), Limits::max()));
  }
  const double value = number.real();
  if (std::isnan(value)) return 0;
  // The upper limit plus one is a power of two, so it is exact even where the limit is not.
  const double above = std::ldexp(1.0, Limits::digits);
  if (value >= above) return Limits::max();
  if (value <= static_cast<double>(Limits::min())) return Limits::min();
  return static_cast<T>(value);
}

/// Rounded once: a double on the way would round wide integers twice.
float NearestF32(const Number& number) {
  return number.is_integer() ? static_cast<float>(number.integer())
                             : static_cast<float>(number.real());
}

/// Rounds to f32 towards odd: exact values stay, others get the neighbour whose last bit is odd.
/// Rounding the result again, to a type at least two bits narrower, equals rounding `number` once.
float RoundToOdd(const Number& number) {
  const float nearest = NearestF32(number);
  if (number.is_nan() || number == Number(nearest)) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  const double found = static_cast<double>(nearest);
  const bool is_above =
      number.is_integer() ? absl::int128(found) > number.integer() : found > number.real();
  if (is_above ? found > 0 : found < 0) --bits;  // it is farther from 0
  return std::bit_cast<float>(bits | 1);
}

}  // namespace

std::string NumberText(const Number& number) {
  if (number.is_integer()) {
    std::ostringstream digits;
    digits << number.integer();
    return digits.str();
  }
  char buffer[32];  // the shortest form of a double takes at most 24
  const std::to_chars_result result = std::to_chars(buffer, buffer + sizeof(buffer), number.real());
  return std::string(buffer, result.ptr);
}

std::string ShortText(const Number& number) {
  return number.is_integer() ? NumberText(number) : absl::StrFormat("%.9g", number.real());
}

absl::string_view Name(DType type) { return Row(type).name; }

std::optional<DType> ParseDType(absl::string_view name) {
  for (DType type : kAllDTypes) {
    if (Name(type) == name) return type;
  }
  return std::nullopt;
}

size_t SizeOf(DType type) { return Row(type).size; }
bool IsFloat(DType type) { return Row(type).is_float; }
bool IsNarrowFloat(DType type) { return IsFloat(type) && SizeOf(type) < sizeof(float); }
bool IsFloat8(DType type) { return IsFloat(type) && SizeOf(type) == 1; }
bool HasInfinity(DType type) { return IsFloat(type) && type != DType::kF8E4M3; }
bool IsInteger(DType type) { return !IsFloat(type) && type != DType::kBool; }
bool IsSigned(DType type) { return MinFinite(type) < 0; }
double UnitRoundoff(DType type) { return Row(type).unit_roundoff; }
double MinSubnormal(DType type) { return Row(type).min_subnormal; }
double MaxFinite(DType type) { return Row(type).max_finite; }
double MinFinite(DType type) { return Row(type).min_finite; }

Number Greatest(DType type) {
  if (HasInfinity(type)) return std::numeric_limits<double>::infinity();
  return type == DType::kI64   ? Number(std::numeric_limits<int64_t>::max())
         : type == DType::kU64 ? Number(std::numeric_limits<uint64_t>::max())
                               : Stored(type, Row(type).max_finite);
}

Number Least(DType type) {
  if (HasInfinity(type)) return -std::numeric_limits<double>::infinity();
  return Stored(type, Row(type).min_finite);
}

Number LoadElement(DType type, const void* data, int64_t index) {
  switch (type) {
    case DType::kF32:
      return Read<float>(data, index);
    case DType::kF16:
      return F32FromF16(Read<uint16_t>(data, index));
    case DType::kBF16:
      return F32FromBF16(Read<uint16_t>(data, index));
    case DType::kF64:
      return Read<double>(data, index);
    case DType::kI8:
      return Read<int8_t>(data, index);
    case DType::kI16:
      return Read<int16_t>(data, index);
    case DType::kI32:
      return Read<int32_t>(data, index);
    case DType::kI64:
      return Read<int64_t>(data, index);
    case DType::kU8:
      return Read<uint8_t>(data, index);
    case DType::kU16:
      return Read<uint16_t>(data, index);
    case DType::kU32:
      return Read<uint32_t>(data, index);
    case DType::kU64:
      return Read<uint64_t>(data, index);
    case DType::kBool:
      return int{Read<uint8_t>(data, index) != 0};
    case DType::kF8E4M3:
      return F32FromF8E4M3(Read<uint8_t>(data, index));
    case DType::kF8E5M2:
      return F32FromF8E5M2(Read<uint8_t>(data, index));
  }
  CC_CHECK(false);
}

void StoreElement(DType type, void* data, int64_t index, const Number& value) {
  switch (type) {
    case DType::kF32:
      return Write(data, index, NearestF32(value));
    case DType::kF16:
      return Write(data, index, F16FromF32(RoundToOdd(value)));
    case DType::kBF16:
      return Write(data, index, BF16FromF32(RoundToOdd(value)));
    case DType::kF64:
      return Write(data, index, value.real());
    case DType::kI8:
      return Write(data, index, Saturated<int8_t>(value));
    case DType::kI16:
      return Write(data, index, Saturated<int16_t>(value));
    case DType::kI32:
      return Write(data, index, Saturated<int32_t>(value));
    case DType::kI64:
      return Write(data, index, Saturated<int64_t>(value));
    case DType::kU8:
      return Write(data, index, Saturated<uint8_t>(value));
    case DType::kU16:
      return Write(data, index, Saturated<uint16_t>(value));
    case DType::kU32:
      return Write(data, index, Saturated<uint32_t>(value));
    case DType::kU64:
      return Write(data, index, Saturated<uint64_t>(value));
    case DType::kBool:
      return Write(data, index, static_cast<uint8_t>(!(value == 0)));
    case DType::kF8E4M3:
      return Write(data, index, F8E4M3FromF32(RoundToOdd(value)));
    case DType::kF8E5M2:
      return Write(data, index, F8E5M2FromF32(RoundToOdd(value)));
  }
  CC_CHECK(false);
}

namespace {

// Floats of fewer bits than f32, with kDigits bits of mantissa: f16, f8e4m3, f8e5m2.

/// An f32's bits without the sign, rounded to nearest even; the float is none too large.
template <int kDigits, int kBias>
uint32_t RoundedBits(uint32_t magnitude) {
  constexpr int kDropped = 23 - kDigits;
  if (magnitude < static_cast<uint32_t>(128 - kBias) << 23) {
    // The last place of this number is the smallest subnormal: the addition rounds to it.
    constexpr auto kUnit = static_cast<uint32_t>(151 - kBias - kDigits) << 23;
    const float sum = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kUnit);
    return std::bit_cast<uint32_t>(sum) - kUnit;
  }
  constexpr uint32_t kBelowHalf = (1u << (kDropped - 1)) - 1;
  constexpr auto kRebias = static_cast<uint32_t>(127 - kBias) << 23;
  return (magnitude + kBelowHalf + (magnitude >> kDropped & 1) - kRebias) >> kDropped;
}

/// The f32's bits, of a finite number without its sign.
template <int kDigits, int kBias>
uint32_t WidenedBits(uint32_t magnitude) {
  const uint32_t exponent = magnitude >> kDigits, mantissa = magnitude & ((1u << kDigits) - 1);
  if (exponent != 0) return (exponent + 127 - kBias) << 23 | mantissa << (23 - kDigits);
  constexpr auto kSmallest = static_cast<uint32_t>(128 - kBias - kDigits) << 23;
  return std::bit_cast<uint32_t>(static_cast<float>(mantissa) * std::bit_cast<float>(kSmallest));
}

}  // namespace

uint16_t F16FromF32(float value) {
  constexpr uint32_t kInf = 0x7f800000;
  constexpr uint32_t kHalfOverflow = 0x477ff000;  // 65520: from here on the result is infinity
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > kInf) return static_cast<uint16_t>(sign | 0x7e00);
  if (magnitude >= kHalfOverflow) return static_cast<uint16_t>(sign | 0x7c00);
  return static_cast<uint16_t>(sign | RoundedBits<10, 15>(magnitude));
}

float F32FromF16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16, magnitude = bits & 0x7fff;
  const bool is_finite = magnitude < 0x7c00;
  return std::bit_cast<float>(
      sign | (is_finite ? WidenedBits<10, 15>(magnitude) : 0x7f800000 | (bits & 0x3ff) << 13));
}

uint16_t BF16FromF32(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return static_cast<uint16_t>(bits >> 16 | 0x40);  // NaN stays NaN
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float F32FromBF16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint8_t F8E4M3FromF32(float value) {
  constexpr uint32_t kGreatest = 0x43e80000;  // 464: beyond it the result is NaN
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 24 & 0x80;
  const uint32_t magnitude = bits & 0x7fffffff;
  const uint32_t rounded = magnitude > kGreatest ? 0x7f : RoundedBits<3, 7>(magnitude);
  return static_cast<uint8_t>(sign | rounded);
}

float F32FromF8E4M3(uint8_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80) << 24, magnitude = bits & 0x7f;
  return std::bit_cast<float>(sign |
                              (magnitude == 0x7f ? 0x7fc00000 : WidenedBits<3, 7>(magnitude)));
}

uint8_t F8E5M2FromF32(float value) {
  constexpr uint32_t kInf = 0x7f800000;
  constexpr uint32_t kOverflow = 0x47700000;  // 61440: from here on the result is infinity
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 24 & 0x80;
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > kInf) return static_cast<uint8_t>(sign | 0x7e);
  if (magnitude >= kOverflow) return static_cast<uint8_t>(sign | 0x7c);
  return static_cast<uint8_t>(sign | RoundedBits<2, 15>(magnitude));
}

float F32FromF8E5M2(uint8_t bits) { return F32FromF16(static_cast<uint16_t>(bits << 8)); }

absl::string_view Name(ReduceKind kind) { return kReduceNames[static_cast<size_t>(kind)]; }

std::optional<ReduceKind> ParseReduceKind(absl::string_view name) {
  for (ReduceKind kind : kAllReduceKinds) {
    if (Name(kind) == name) return kind;
  }
  return std::nullopt;
}

Number Stored(DType type, const Number& value) {
  alignas(8) char held[8] = {};
  StoreElement(type, held, 0, value);
  return LoadElement(type, held, 0);
}

absl::Status CheckHolds(DType type, const Number& value) {
  const Number stored = Stored(type, value);
  const bool holds = !IsFloat(type)      ? stored == value
                     : value.is_finite() ? stored.is_finite()
                                         : stored.is_nan() == value.is_nan();
  if (holds) return absl::OkStatus();
  const Number least = IsFloat(type) ? MinFinite(type) : Least(type),
               greatest = IsFloat(type) ? MaxFinite(type) : Greatest(type);
  return absl::InvalidArgumentError(absl::StrCat(
      "want ", IsFloat(type) ? "a number" : "an integer", " from ", NumberText(least), " to ",
      NumberText(greatest), ", which ", Name(type), " holds, have ", NumberText(value)));
}

Number Wrapped(DType type, absl::int128 integer) {
  const uint64_t word = absl::Int128Low64(integer);
  switch (type) {
    case DType::kI8:
      return static_cast<int8_t>(word);
    case DType::kI16:
      return static_cast<int16_t>(word);
    case DType::kI32:
      return static_cast<int32_t>(word);
    case DType::kI64:
      return static_cast<int64_t>(word);
    case DType::kU8:
      return static_cast<uint8_t>(word);
    case DType::kU16:
      return static_cast<uint16_t>(word);
    case DType::kU32:
      return static_cast<uint32_t>(word);
    case DType::kU64:
      return word;
    case DType::kBool:
      return static_cast<int>(word & 1);
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kF64:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      break;
  }
  CC_CHECK(false);
}

Number BitCastElement(DType from, DType to, const Number& number) {
  CC_CHECK(SizeOf(from) == SizeOf(to));
  alignas(8) char held[8] = {};
  StoreElement(from, held, 0, number);
  return LoadElement(to, held, 0);
}

}  // namespace coconet
