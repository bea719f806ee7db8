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

std::string Literal(const Number& value, DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kF8E4M3:
    case DType::kF8E5M2: {
      const auto rounded = static_cast<float>(Stored(DType::kF32, value).real());
      return FloatLiteral(rounded, absl::StrFormat("%.9g", rounded), "f");
    }
    case DType::kF64:
      return FloatLiteral(value.real(), absl::StrFormat("%.17g", value.real()), "");
    case DType::kI64:
      return IntegerLiteral(Stored(dtype, value).word(), "ll");
    case DType::kU64:
      return absl::StrCat(NumberText(Stored(dtype, value)), "ull");
    case DType::kU32:
      return absl::StrCat(NumberText(Stored(dtype, value)), "u");
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kU8:
    case DType::kU16:
    case DType::kBool:
      return IntegerLiteral(Stored(dtype, value).word(), "");
  }
  return "";
}

}  // namespace coconet
