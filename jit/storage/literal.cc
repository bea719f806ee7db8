#include "jit/storage/literal.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace coconet {
namespace {

std::string FloatLiteral(double value, absl::string_view digits, absl::string_view suffix) {
  if (std::isnan(value)) return absl::StrCat("(0.0", suffix, " / 0.0", suffix, ")");
  if (std::isinf(value))
    return absl::StrCat(value > 0 ? "(1.0" : "(-1.0", suffix, " / 0.0", suffix, ")");
  std::string text(digits);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return value < 0 ? absl::StrCat("(", text, suffix, ")") : absl::StrCat(text, suffix);
}

/// The smallest i64 has no literal of its own: its digits without the sign do not fit.
std::string IntegerLiteral(int64_t value, absl::string_view suffix) {
  if (value >= 0) return absl::StrCat(value, suffix);
  return absl::StrCat("(", value + 1, suffix, " - 1)");
}

}  // namespace

absl::string_view KernelType(DType dtype) {
  return dtype == DType::kBool ? "boolean" : Name(dtype);
}

std::string Literal(double value, DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16: {
      const float rounded = static_cast<float>(value);
      return FloatLiteral(rounded, absl::StrFormat("%.9g", rounded), "f");
    }
    case DType::kF64:
      return FloatLiteral(value, absl::StrFormat("%.17g", value), "");
    case DType::kI64: {
      int64_t stored = 0;
      StoreElement(dtype, &stored, 0, value);
      return IntegerLiteral(stored, "ll");
    }
    case DType::kU64: {
      uint64_t stored = 0;
      StoreElement(dtype, &stored, 0, value);
      return absl::StrCat(stored, "ull");
    }
    case DType::kU32: {
      uint32_t stored = 0;
      StoreElement(dtype, &stored, 0, value);
      return absl::StrCat(stored, "u");
    }
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kU8:
    case DType::kU16:
    case DType::kBool: {
      alignas(8) char stored[8] = {};
      StoreElement(dtype, stored, 0, value);
      return IntegerLiteral(static_cast<int64_t>(LoadElement(dtype, stored, 0)), "");
    }
  }
  return "";
}

}  // namespace coconet
