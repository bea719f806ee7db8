#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace coconet {

/// Brackets and tuples nest so deep at most.
inline constexpr int kDeepestHlo = 100;

inline bool IsHloDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }
inline bool IsHloNameBegin(char c) {
  return absl::ascii_isalpha(static_cast<unsigned char>(c)) || c == '_';
}
inline bool IsHloNamePart(char c) {
  return IsHloNameBegin(c) || IsHloDigit(c) || c == '.' || c == '-';
}

/// A cursor over HLO text, with the number of its line.
class HloCursor {
 public:
  explicit HloCursor(absl::string_view text, int64_t line = 1) : text_(text), line_(line) {}

  int64_t line() const { return line_; }
  absl::string_view rest() const { return text_.substr(at_); }
  size_t position() const { return at_; }
  absl::string_view Since(size_t position) const { return text_.substr(position, at_ - position); }

  /// Skips blanks, ends of lines and comments.
  void SkipBlanks() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
        Step();
      } else if (absl::StartsWith(rest(), "//")) {
        while (at_ < text_.size() && text_[at_] != '\n') Step();
      } else if (absl::StartsWith(rest(), "/*")) {
        const size_t end = text_.find("*/", at_ + 2);
        const size_t after = end == absl::string_view::npos ? text_.size() : end + 2;
        while (at_ < after) Step();
      } else {
        return;
      }
    }
  }

  /// The next character after blanks, 0 at the end.
  char Peek() {
    SkipBlanks();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool AtEnd() { return Peek() == '\0' && at_ >= text_.size(); }

  bool Accept(absl::string_view token) {
    SkipBlanks();
    if (!absl::StartsWith(rest(), token)) return false;
    at_ += token.size();
    return true;
  }
  /// Accepts a word that is followed by no further character of a name.
  bool AcceptWord(absl::string_view word) {
    SkipBlanks();
    if (!absl::StartsWith(rest(), word)) return false;
    if (at_ + word.size() < text_.size() && IsHloNamePart(text_[at_ + word.size()])) return false;
    at_ += word.size();
    return true;
  }
  absl::Status Expect(absl::string_view token) {
    return Accept(token) ? absl::OkStatus() : Expected(absl::StrCat("'", token, "'"));
  }
  absl::Status Expected(absl::string_view what) {
    SkipBlanks();
    if (at_ >= text_.size())
      return absl::InvalidArgumentError(
          absl::StrCat("line ", line_, ": want ", what, ", but the text ends here"));
    constexpr size_t kShown = 30;
    absl::string_view found = rest().substr(0, kShown);
    found = found.substr(0, found.find('\n'));
    return absl::InvalidArgumentError(
        absl::StrCat("line ", line_, ": want ", what, ", have '", absl::CHexEscape(found), "'"));
  }

  /// A name, without the '%' that may come before it; empty if there is none.
  absl::string_view TakeName() {
    SkipBlanks();
    size_t begin = at_;
    if (begin < text_.size() && text_[begin] == '%') ++begin;
    size_t end = begin;
    // After '%' a name may begin with a digit.
    if (end < text_.size() &&
        (IsHloNameBegin(text_[end]) || (begin > at_ && IsHloDigit(text_[end])))) {
      while (end < text_.size() && IsHloNamePart(text_[end])) ++end;
    }
    if (end == begin) return {};
    at_ = end;
    return text_.substr(begin, end - begin);
  }

  void SkipLine() {
    while (at_ < text_.size() && text_[at_] != '\n') Step();
  }

  absl::StatusOr<int64_t> TakeInteger(absl::string_view what) {
    SkipBlanks();
    size_t end = at_;
    if (end < text_.size() && text_[end] == '-') ++end;
    while (end < text_.size() && IsHloDigit(text_[end])) ++end;
    int64_t value = 0;
    if (!absl::SimpleAtoi(text_.substr(at_, end - at_), &value)) return Expected(what);
    at_ = end;
    return value;
  }

  /// The text up to one of `ends`, or to the end of the line if `line_ends`, outside of brackets
  /// and strings. The end stays.
  absl::StatusOr<absl::string_view> TakeUntil(absl::string_view ends, bool line_ends) {
    SkipBlanks();
    const size_t begin = at_;
    const int64_t first_line = line_;
    std::string open;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (open.empty() && (absl::StrContains(ends, c) || (line_ends && c == '\n')))
        return absl::StripTrailingAsciiWhitespace(Since(begin));
      if (c == '"') {
        Step();
        while (at_ < text_.size() && text_[at_] != '"') {
          if (text_[at_] == '\\') Step();
          if (at_ < text_.size()) Step();
        }
        if (at_ >= text_.size()) break;
      } else if (c == '{' || c == '(' || c == '[') {
        open.push_back(c);
        if (open.size() > kDeepestHlo)
          return absl::InvalidArgumentError(
              absl::StrFormat("line %d: want brackets at most %d deep", line_, kDeepestHlo));
      } else if (c == '}' || c == ')' || c == ']') {
        const char opening = c == '}' ? '{' : c == ')' ? '(' : '[';
        if (open.empty() || open.back() != opening)
          return absl::InvalidArgumentError(
              absl::StrFormat("line %d: '%c' closes nothing that is open", line_, c));
        open.pop_back();
      }
      Step();
    }
    if (open.empty() && line_ends) return absl::StripTrailingAsciiWhitespace(Since(begin));
    return absl::InvalidArgumentError(
        absl::StrCat("line ", first_line, ": the text ends within what begins here"));
  }

 private:
  void Step() {
    if (text_[at_] == '\n') ++line_;
    ++at_;
  }

  absl::string_view text_;
  size_t at_ = 0;
  int64_t line_ = 1;
};

}  // namespace coconet
