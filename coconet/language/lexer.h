#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "coconet/base/number.h"

namespace coconet {

/// A word of the text form.
struct Token {
  enum class Kind : uint8_t {
    kName,    // adam, f32, layer.0.w
    kValue,   // %7
    kNumber,  // 0.9, 1e-8, 1024
    kSymbol,  // = : , ( ) [ ] + - * / < <= > >= == !=
    kEnd,     // of the line
  };
  Kind kind = Kind::kEnd;
  absl::string_view text;  // into the line
  Number number;           // kNumber: digits alone are an integer, if 64 bits hold it

  bool Is(absl::string_view word) const { return text == word && kind != Kind::kEnd; }
};

/// A line read word by word.
class Words {
 public:
  Words() = default;
  /// The words of `line` without its comment. InvalidArgument for a character that starts no word.
  static absl::StatusOr<Words> Of(absl::string_view line);

  /// The next word; kEnd, again and again, after the last.
  const Token& Peek(size_t ahead = 0) const;
  Token Take();
  /// Takes the next word if it is `word`.
  bool Accept(absl::string_view word);
  absl::Status Expect(absl::string_view word);
  absl::Status ExpectEnd();
  absl::StatusOr<std::string> Name(absl::string_view what);
  /// The next word, which must be an integer that T holds.
  template <class T>
  absl::StatusOr<T> Integer(absl::string_view what) {
    T value = 0;
    if (Peek().kind != Token::Kind::kNumber || !absl::SimpleAtoi(Peek().text, &value))
      return Expected(what);
    Take();
    return value;
  }
  /// "expected <what>, found 'x'"
  absl::Status Expected(absl::string_view what) const;

 private:
  std::vector<Token> tokens_;
  size_t position_ = 0;
};

}  // namespace coconet
