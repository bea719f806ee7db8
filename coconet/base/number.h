#pragma once

#include <cmath>
#include <cstdint>
#include <ostream>
#include <string>
#include <type_traits>

#include "absl/numeric/int128.h"

namespace coconet {

/// A number as some element of a tensor holds it: an integer from -2^63 to 2^64 - 1, or a real
/// number as a double. Integers stay what they are: nothing rounds them to doubles but real().
class Number {
 public:
  /// The integer 0.
  constexpr Number() : integer_(0) {}
  template <class T, std::enable_if_t<std::is_floating_point_v<T>, int> = 0>
  constexpr Number(T real) : kind_(Kind::kReal), real_(real) {}  // NOLINT: as in `value = 0.5`
  template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
  constexpr Number(T integer)  // NOLINT: as in `value = 7`
      : kind_(std::is_signed_v<T> || static_cast<uint64_t>(integer) <= kMostSigned
                  ? Kind::kSigned
                  : Kind::kUnsigned),
        integer_(static_cast<int64_t>(integer)) {}
  /// An integer within the range.
  static Number Of(absl::int128 integer) {
    return integer > kMostSigned ? Number(absl::Int128Low64(integer))
                                 : Number(static_cast<int64_t>(absl::Int128Low64(integer)));
  }
  /// Whether the integer is in the range that Of accepts.
  static bool Holds(absl::int128 integer) {
    return absl::Int128High64(integer) == 0 ||
           (absl::Int128High64(integer) == -1 &&
            static_cast<int64_t>(absl::Int128Low64(integer)) < 0);
  }

  bool is_integer() const { return kind_ != Kind::kReal; }
  /// The nearest double.
  double real() const {
    if (kind_ == Kind::kReal) return real_;
    return kind_ == Kind::kSigned ? static_cast<double>(integer_)
                                  : static_cast<double>(static_cast<uint64_t>(integer_));
  }
  /// Requires is_integer().
  absl::int128 integer() const {
    return kind_ == Kind::kUnsigned ? absl::int128(static_cast<uint64_t>(integer_))
                                    : absl::int128(integer_);
  }
  /// The low 64 bits of an integer in two's complement; of a real number within int64_t what
  /// truncation gives.
  int64_t word() const { return is_integer() ? integer_ : static_cast<int64_t>(real_); }
  bool is_nan() const { return kind_ == Kind::kReal && real_ != real_; }
  bool is_finite() const { return kind_ != Kind::kReal || std::isfinite(real_); }

  /// Exact, also between an integer and a real number; a NaN differs from all.
  friend bool operator==(const Number& a, const Number& b) {
    if (a.is_integer() && b.is_integer()) return a.kind_ == b.kind_ && a.integer_ == b.integer_;
    if (!a.is_integer() && !b.is_integer()) return a.real_ == b.real_;
    const Number &integer = a.is_integer() ? a : b, &real = a.is_integer() ? b : a;
    return integer.real() == real.real_ && std::fabs(real.real_) < 0x1p64 &&
           absl::int128(real.real_) == integer.integer();
  }

 private:
  enum class Kind : uint8_t { kReal, kSigned, kUnsigned };  // kUnsigned: from 2^63 on
  static constexpr uint64_t kMostSigned = INT64_MAX;

  Kind kind_ = Kind::kSigned;
  union {
    double real_;
    int64_t integer_;
  };
};

/// An integer's digits; the shortest text that reads back as the real number, such as 0.9 or 1e-08.
std::string NumberText(const Number& number);

/// For messages: an integer's digits; nine significant ones of a real number.
std::string ShortText(const Number& number);

/// For messages of tests.
inline void PrintTo(const Number& number, std::ostream* out) { *out << NumberText(number); }

}  // namespace coconet
