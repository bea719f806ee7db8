#include "coconet/language/lexer.h"

#include <charconv>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr absl::string_view kSymbols[] = {"<=", ">=", "==", "!=", "<", ">", "=", ":", ",",
                                          "(",  ")",  "[",  "]",  "+", "-", "*", "/"};

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }
bool IsWord(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
}

/// The part of `text` from its first character for as long as `belongs` holds.
template <class Predicate>
absl::string_view Prefix(absl::string_view text, Predicate belongs) {
  size_t length = 1;
  while (length < text.size() && belongs(text[length])) ++length;
  return text.substr(0, length);
}

/// Any text, short and printable.
std::string Quoted(absl::string_view text) {
  constexpr size_t kLongest = 40;
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kLongest)),
                      text.size() > kLongest ? "...'" : "'");
}

absl::StatusOr<Token> NumberToken(absl::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  size_t length = static_cast<size_t>(end - text.data());
  if (error == std::errc::invalid_argument || (length < text.size() && IsWord(text[length]))) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a number, found ", Quoted(Prefix(text, IsWord))));
  }
  const absl::string_view digits = text.substr(0, length);
  if (error == std::errc::result_out_of_range) {
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(digits), " is beyond the range of a number (f64)"));
  }
  uint64_t integer = 0;
  if (absl::SimpleAtoi(digits, &integer)) return Token{Token::Kind::kNumber, digits, integer};
  return Token{Token::Kind::kNumber, digits, value};
}

absl::StatusOr<Token> Next(absl::string_view text) {
  const char c = text[0];
  if (IsDigit(c) || c == '.') return NumberToken(text);
  if (IsWord(c)) return Token{Token::Kind::kName, Prefix(text, IsWord)};
  if (c == '%') {
    const absl::string_view value = Prefix(text, IsDigit);
    if (value.size() == 1) return absl::InvalidArgumentError("expected a number after '%'");
    return Token{Token::Kind::kValue, value};
  }
  for (absl::string_view symbol : kSymbols) {
    if (text.substr(0, symbol.size()) == symbol)
      return Token{Token::Kind::kSymbol, text.substr(0, symbol.size())};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unexpected character ", Quoted(text.substr(0, 1))));
}

}  // namespace

absl::StatusOr<Words> Words::Of(absl::string_view line) {
  Words words;
  while (true) {
    line = absl::StripLeadingAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') return words;
    ASSIGN_OR_RETURN(const Token token, Next(line));
    line.remove_prefix(token.text.size());
    words.tokens_.push_back(token);
  }
}

const Token& Words::Peek(size_t ahead) const {
  static const Token kEnd;
  return position_ + ahead < tokens_.size() ? tokens_[position_ + ahead] : kEnd;
}

Token Words::Take() {
  const Token token = Peek();
  if (position_ < tokens_.size()) ++position_;
  return token;
}

bool Words::Accept(absl::string_view word) {
  if (!Peek().Is(word)) return false;
  Take();
  return true;
}

absl::Status Words::Expect(absl::string_view word) {
  return Accept(word) ? absl::OkStatus() : Expected(absl::StrCat("'", word, "'"));
}

absl::Status Words::ExpectEnd() {
  return Peek().kind == Token::Kind::kEnd ? absl::OkStatus() : Expected("end of line");
}

absl::StatusOr<std::string> Words::Name(absl::string_view what) {
  if (Peek().kind != Token::Kind::kName) return Expected(what);
  return std::string(Take().text);
}

absl::Status Words::Expected(absl::string_view what) const {
  const std::string found = Peek().kind == Token::Kind::kEnd ? "end of line" : Quoted(Peek().text);
  return absl::InvalidArgumentError(absl::StrCat("expected ", what, ", found ", found));
}

}  // namespace coconet
