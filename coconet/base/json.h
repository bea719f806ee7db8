#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace coconet {

/// Text that is JSON already: an object inside another, or a list.
struct JsonText {
  std::string text;
  bool operator==(const JsonText&) const = default;
};
/// A field's value; std::nullptr_t for null.
using JsonValue = std::variant<std::nullptr_t, bool, int64_t, double, std::string, JsonText>;

/// One object, on one line; fields in the order in which they were first set.
class JsonObject {
 public:
  /// Adds a field, or replaces it in its place. A number that is not finite becomes null.
  JsonObject& Set(absl::string_view name, JsonValue value);
  const JsonValue& Get(absl::string_view name) const;  // null when there is none
  JsonText Text() const;

 private:
  std::vector<std::pair<std::string, JsonValue>> fields_;
};

/// A list of objects, one per line.
JsonText JsonList(absl::Span<const JsonText> objects);

}  // namespace coconet
