#include "coconet/base/number.h"

#include <charconv>
#include <sstream>

#include "absl/strings/str_format.h"

namespace coconet {

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

}  // namespace coconet
