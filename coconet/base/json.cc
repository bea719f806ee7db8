#include "coconet/base/json.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

std::string Quoted(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&quoted, "\\u%04x", c);
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string TextOf(const JsonValue& value) {
  return std::visit(
      Match{[](std::nullptr_t) { return std::string("null"); },
            [](bool v) { return std::string(v ? "true" : "false"); },
            [](int64_t v) { return absl::StrCat(v); }, [](double v) { return absl::StrCat(v); },
            [](const std::string& v) { return Quoted(v); },
            [](const JsonText& v) { return v.text; }},
      value);
}

}  // namespace

JsonObject& JsonObject::Set(absl::string_view name, JsonValue value) {
  const double* number = std::get_if<double>(&value);
  if (number != nullptr && !std::isfinite(*number)) value = nullptr;
  for (auto& [known, old] : fields_) {
    if (known != name) continue;
    old = std::move(value);
    return *this;
  }
  fields_.emplace_back(name, std::move(value));
  return *this;
}

const JsonValue& JsonObject::Get(absl::string_view name) const {
  static const JsonValue none = nullptr;
  for (const auto& [known, value] : fields_) {
    if (known == name) return value;
  }
  return none;
}

JsonText JsonObject::Text() const {
  const auto append = [](std::string* out, const auto& field) {
    absl::StrAppend(out, Quoted(field.first), ": ", TextOf(field.second));
  };
  return {absl::StrCat("{", absl::StrJoin(fields_, ", ", append), "}")};
}

JsonText JsonList(absl::Span<const JsonText> objects) {
  const auto append = [](std::string* out, const JsonText& object) { out->append(object.text); };
  return {absl::StrCat("[\n", absl::StrJoin(objects, ",\n", append), "\n]")};
}

}  // namespace coconet
