#include "coconet/base/json.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
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

constexpr int kDeepest = 32;
constexpr size_t kMostFields = 1024;  // of an object that is read: each name is compared with all

void AppendUtf8(uint32_t point, std::string& out) {
  if (point < 0x80) {
    out += static_cast<char>(point);
    return;
  }
  const int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
  constexpr int kLead[] = {0, 0xC0, 0xE0, 0xF0};
  out += static_cast<char>(kLead[more] | (point >> (6 * more)));
  for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80 | ((point >> (6 * i)) & 0x3F));
}

/// A position in a text of JSON. After an error nothing more is read.
class JsonReader {
 public:
  explicit JsonReader(absl::string_view text) : text_(text) {}

  /// The next value; what it contains is not looked at again.
  absl::StatusOr<JsonValue> Value(int depth = 0) {
    SkipBlanks();
    const size_t begin = at_;
    switch (Peek()) {
      case '{':
      case '[':
        if (depth >= kDeepest) return Refuse("nested too deep");
        RETURN_IF_ERROR(Peek() == '{' ? Object(depth, nullptr) : List(depth, nullptr));
        return JsonText{std::string(text_.substr(begin, at_ - begin))};
      case '"': {
        ASSIGN_OR_RETURN(std::string text, String());
        return JsonValue(std::move(text));
      }
      default:
        break;
    }
    if (Consume("null")) return JsonValue(nullptr);
    if (Consume("true")) return JsonValue(true);
    if (Consume("false")) return JsonValue(false);
    return Number();
  }

  /// Passes each field to `out`, unless it is null.
  absl::Status Object(int depth, JsonObject* out) {
    SkipBlanks();
    if (!Consume("{")) return Refuse("want an object");
    SkipBlanks();
    if (Consume("}")) return absl::OkStatus();
    while (true) {
      SkipBlanks();
      ASSIGN_OR_RETURN(const std::string name, String());
      SkipBlanks();
      if (!Consume(":")) return Refuse("want ':'");
      ASSIGN_OR_RETURN(JsonValue value, Value(depth + 1));
      if (out != nullptr) {
        for (const auto& field : out->fields()) {
          if (field.first == name) return Refuse(absl::StrCat("field ", name, " occurs twice"));
        }
        if (out->fields().size() == kMostFields) return Refuse("too many fields");
        out->Set(name, std::move(value));
      }
      SkipBlanks();
      if (Consume("}")) return absl::OkStatus();
      if (!Consume(",")) return Refuse("want ',' or '}'");
    }
  }

  /// Passes each value to `out`, unless it is null.
  absl::Status List(int depth, std::vector<JsonValue>* out) {
    SkipBlanks();
    if (!Consume("[")) return Refuse("want a list");
    SkipBlanks();
    if (Consume("]")) return absl::OkStatus();
    while (true) {
      ASSIGN_OR_RETURN(JsonValue value, Value(depth + 1));
      if (out != nullptr) out->push_back(std::move(value));
      SkipBlanks();
      if (Consume("]")) return absl::OkStatus();
      if (!Consume(",")) return Refuse("want ',' or ']'");
    }
  }

  absl::Status AtEnd() {
    SkipBlanks();
    return at_ == text_.size() ? absl::OkStatus() : Refuse("want the end");
  }

 private:
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void SkipBlanks() {
    while (at_ < text_.size() && absl::StrContains(" \t\n\r", text_[at_])) ++at_;
  }
  bool Consume(absl::string_view word) {
    if (!absl::StartsWith(text_.substr(at_), word)) return false;
    at_ += word.size();
    return true;
  }
  absl::Status Refuse(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat("no JSON at byte ", at_, ": ", what));
  }

  /// Four hex digits.
  absl::StatusOr<uint32_t> Hex() {
    uint32_t unit = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const auto c = static_cast<unsigned char>(Peek());
      if (!absl::ascii_isxdigit(c)) return Refuse("want four hex digits");
      unit = 16 * unit + (absl::ascii_isdigit(c) ? c - '0' : absl::ascii_tolower(c) - 'a' + 10);
    }
    return unit;
  }

  absl::StatusOr<std::string> String() {
    if (!Consume("\"")) return Refuse("want a string");
    std::string out;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (static_cast<unsigned char>(c) < 0x20) return Refuse("a control character in a string");
      ++at_;
      if (c == '"') return out;
      if (c != '\\') {
        out += c;
        continue;
      }
      RETURN_IF_ERROR(Escape(out));
    }
    return Refuse("a string without its end");
  }

  /// What follows a backslash.
  absl::Status Escape(std::string& out) {
    constexpr absl::string_view kNames = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    const char name = Peek();
    if (const size_t at = kNames.find(name); name != '\0' && at != absl::string_view::npos) {
      out += kMeant[at];
      ++at_;
      return absl::OkStatus();
    }
    if (!Consume("u")) return Refuse("an unknown escape");
    ASSIGN_OR_RETURN(uint32_t point, Hex());
    if (point >= 0xD800 && point < 0xDC00) {  // the first of a pair of UTF-16
      if (!Consume("\\u")) return Refuse("half a surrogate pair");
      ASSIGN_OR_RETURN(const uint32_t low, Hex());
      if (low < 0xDC00 || low > 0xDFFF) return Refuse("half a surrogate pair");
      point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
    } else if (point >= 0xDC00 && point <= 0xDFFF) {
      return Refuse("half a surrogate pair");
    }
    AppendUtf8(point, out);
    return absl::OkStatus();
  }

  size_t Digits() {
    const size_t begin = at_;
    while (absl::ascii_isdigit(static_cast<unsigned char>(Peek()))) ++at_;
    return at_ - begin;
  }

  absl::StatusOr<JsonValue> Number() {
    const size_t begin = at_;
    Consume("-");
    const bool zero = Peek() == '0';
    const size_t digits = Digits();
    if (digits == 0 || (zero && digits > 1)) return Refuse("want a value");
    bool integer = true;
    if (Consume(".")) {
      integer = false;
      if (Digits() == 0) return Refuse("want digits");
    }
    if (Consume("e") || Consume("E")) {
      integer = false;
      if (!Consume("+")) Consume("-");
      if (Digits() == 0) return Refuse("want digits");
    }
    const absl::string_view text = text_.substr(begin, at_ - begin);
    int64_t whole = 0;
    if (integer && absl::SimpleAtoi(text, &whole)) return JsonValue(whole);
    double real = 0;
    if (!absl::SimpleAtod(text, &real) || !std::isfinite(real))
      return Refuse("a number beyond the range");
    return JsonValue(real);
  }

  const absl::string_view text_;
  size_t at_ = 0;
};

}  // namespace

absl::StatusOr<JsonObject> ParseJsonObject(absl::string_view text) {
  JsonReader reader(text);
  JsonObject object;
  RETURN_IF_ERROR(reader.Object(0, &object));
  RETURN_IF_ERROR(reader.AtEnd());
  return object;
}

absl::StatusOr<std::vector<JsonValue>> ParseJsonList(absl::string_view text) {
  JsonReader reader(text);
  std::vector<JsonValue> values;
  RETURN_IF_ERROR(reader.List(0, &values));
  RETURN_IF_ERROR(reader.AtEnd());
  return values;
}

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
