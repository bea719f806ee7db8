#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
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
  const std::vector<std::pair<std::string, JsonValue>>& fields() const { return fields_; }

 private:
  std::vector<std::pair<std::string, JsonValue>> fields_;
};

/// A list of objects, one per line.
JsonText JsonList(absl::Span<const JsonText> objects);

/// Reads an object from a source that need not be ours. Objects and lists in its fields stay
/// JsonText, for ParseJsonObject and ParseJsonList; an integer within int64_t is one, any other
/// number a double. InvalidArgument, with the place, for what is no JSON (RFC 8259), a name that
/// occurs twice, more than 1024 fields, a number beyond the range of doubles, and values nested
/// more than 32 deep.
absl::StatusOr<JsonObject> ParseJsonObject(absl::string_view text);
/// The values of a list; errors as of ParseJsonObject.
absl::StatusOr<std::vector<JsonValue>> ParseJsonList(absl::string_view text);

}  // namespace coconet
