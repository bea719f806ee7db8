#include "tests/mutation/token_mutations.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace coconet {
namespace {

constexpr absl::string_view kBegin = "\nnamespace k_";
constexpr char kBody[] = "using namespace coconet;\n";

struct Token {
  enum class Kind { kName, kNumber, kOperator } kind;
  size_t begin = 0;
  std::string text;
};

bool IsOfName(char c) { return absl::ascii_isalnum(c) || c == '_'; }

std::vector<Token> TokensOf(absl::string_view text, size_t begin) {
  std::vector<Token> tokens;
  for (size_t at = begin; at < text.size();) {
    if (absl::ascii_isspace(text[at])) {
      ++at;
      continue;
    }
    size_t end = at + 1;
    Token::Kind kind = Token::Kind::kOperator;
    if (absl::ascii_isdigit(text[at])) {
      kind = Token::Kind::kNumber;
      while (end < text.size() &&
             (IsOfName(text[end]) || text[end] == '.' ||
              ((text[end] == '-' || text[end] == '+') && text[end - 1] == 'e')))
        ++end;
    } else if (IsOfName(text[at])) {
      kind = Token::Kind::kName;
      while (end < text.size() && IsOfName(text[end])) ++end;
    } else {
      for (absl::string_view two : {"<=", ">=", "==", "!=", "&&", "||", "++", "--", "+=", "::"}) {
        if (absl::StartsWith(text.substr(at), two)) end = at + 2;
      }
    }
    tokens.push_back({kind, at, std::string(text.substr(at, end - at))});
    at = end;
  }
  return tokens;
}

/// Names that may stand for each other.
const std::vector<std::vector<absl::string_view>>& Kinds() {
  static const auto& kinds = *new std::vector<std::vector<absl::string_view>>{
      {"Summed", "Greatest", "Least"},
      {"Min", "Max"},
      {"And", "Or"},
      {"Less", "LessEqual", "Greater", "GreaterEqual", "EqualTo", "NotEqualTo"},
      {"Sqrt", "Rsqrt", "Exp", "Log", "Tanh", "Erf", "Abs", "Relu", "Sign", "Sigmoid", "Gelu",
       "Silu"},
      {"SumOf", "MaxOf", "MinOf"},
      {"kCached", "kStreamed"},
      {"true", "false"},
      {"Enter", "Exit"},
      {"f16", "bf16"},
      {"f32", "f64"},
      {"begin", "end", "shift", "id"},
      {"rank", "0"},
      {"k", "0"},
      {"t", "0"},
      {"from", "rank"},
      {"hop", "0"},
      {"place", "0"},
      {"node", "0"},
      {"i", "(i + 1)", "(i - 1)"},
      {"chunk", "n", "per", "row_elements", "outer", "row_length", "row", "step", "chunks",
       "tensors", "slices"},
  };
  return kinds;
}

/// The prefix "v" of v12; "" for a name without a number.
absl::string_view PrefixOf(absl::string_view name) {
  size_t letters = name.size();
  while (letters > 0 && absl::ascii_isdigit(name[letters - 1])) --letters;
  return letters == name.size() ? "" : name.substr(0, letters);
}

std::vector<std::string> OtherNumbers(const std::string& number) {
  const size_t digits = number.find_first_of("ful");
  const std::string value = number.substr(0, digits),
                    suffix = digits == std::string::npos ? "" : number.substr(digits);
  if (absl::StrContains(value, '.') || absl::StrContains(value, 'e')) {
    return {absl::StrCat("(", number, " + 1)"), absl::StrCat("(", number, " - 1)"),
            absl::StrCat("(-", number, ")"), absl::StrCat("(2 * ", number, ")")};
  }
  int64_t integer = 0;
  if (!absl::SimpleAtoi(value, &integer)) return {};
  return {absl::StrCat(integer + 1, suffix), absl::StrCat(integer - 1, suffix)};
}

std::vector<std::string> OtherOperators(absl::string_view text, const Token& token) {
  const size_t end = token.begin + token.text.size();
  if (token.text == "!" && IsOfName(text[end])) return {""};
  // Others than binary ones stand next to their operand.
  const bool is_binary = text[token.begin - 1] == ' ' && end < text.size() && text[end] == ' ';
  if (!is_binary) return {};
  static const auto& others =
      *new std::vector<std::pair<absl::string_view, std::vector<std::string>>>{
          {"+", {"-", "*"}}, {"-", {"+"}},       {"*", {"+", "/"}}, {"/", {"*", "-"}},
          {"%", {"/", "+"}}, {"<", {"<=", ">"}}, {"<=", {"<"}},     {">", {">=", "<"}},
          {">=", {">"}},     {"==", {"!="}},     {"!=", {"=="}},    {"&&", {"||"}},
          {"||", {"&&"}},    {"+=", {"-="}},
      };
  const auto found = absl::c_find_if(others, [&](const auto& o) { return o.first == token.text; });
  return found == others.end() ? std::vector<std::string>() : found->second;
}

/// What may stand for tokens[at].
std::vector<std::string> OthersFor(absl::string_view text, const std::vector<Token>& tokens,
                                   size_t at) {
  const Token& token = tokens[at];
  if (token.kind == Token::Kind::kNumber) return OtherNumbers(token.text);
  if (token.kind == Token::Kind::kOperator) return OtherOperators(text, token);
  const bool is_declared =
      at > 0 && (tokens[at - 1].text == "auto" || tokens[at - 1].text == "const" ||
                 tokens[at - 1].text == "int" || tokens[at - 1].text == "Index");
  std::vector<std::string> others;
  if (is_declared) return others;
  for (const auto& kind : Kinds()) {
    if (!absl::c_linear_search(kind, absl::string_view(token.text))) continue;
    for (absl::string_view other : kind) {
      if (other != token.text) others.emplace_back(other);
    }
  }
  if (const absl::string_view prefix = PrefixOf(token.text); !prefix.empty()) {
    for (const Token& other : tokens) {
      if (other.text != token.text && PrefixOf(other.text) == prefix && prefix != "f" &&
          !absl::c_linear_search(others, other.text))
        others.push_back(other.text);
    }
  }
  return others;
}

/// A call without a value, of which the mutation is that it is not made.
bool IsStatement(absl::string_view text, const Token& token) {
  static constexpr absl::string_view kCalls[] = {
      "Store",      "StorePeers", "StoreAround", "StoreBeside", "Publish", "PassOn",
      "Accumulate", "SendChunk",  "Exit",        "Leave",       "CopyOn",  "OpenSends"};
  const size_t line = text.rfind('\n', token.begin) + 1;
  const bool begins = absl::StripAsciiWhitespace(text.substr(line, token.begin - line)).empty();
  return begins && absl::c_linear_search(kCalls, absl::string_view(token.text));
}

std::string LineAt(absl::string_view text, size_t at) {
  const size_t begin = text.rfind('\n', at) + 1;
  return std::string(absl::StripAsciiWhitespace(text.substr(begin, text.find('\n', at) - begin)));
}

}  // namespace

std::optional<TokenMutation> DrawTokenMutation(absl::string_view source, std::mt19937_64& random) {
  struct Place {
    std::string kernel;
    size_t begin = 0, length = 0;
    std::vector<std::string> others;
  };
  std::vector<Place> places;
  for (size_t begin = source.find(kBegin); begin != absl::string_view::npos;) {
    const size_t next = source.find(kBegin, begin + 1);
    const std::string kernel(source.substr(begin, next - begin));
    begin = next;
    const std::vector<Token> tokens = TokensOf(kernel, kernel.find(kBody) + sizeof(kBody) - 1);
    for (size_t at = 0; at < tokens.size(); ++at) {
      const Token& token = tokens[at];
      if (std::vector<std::string> others = OthersFor(kernel, tokens, at); !others.empty())
        places.push_back({kernel, token.begin, token.text.size(), std::move(others)});
      if (IsStatement(kernel, token)) {
        const size_t end = kernel.find(";\n", token.begin);
        places.push_back({kernel, token.begin, end - token.begin, {""}});
      }
    }
  }
  if (places.empty()) return std::nullopt;
  const Place& place = places[random() % places.size()];
  const std::string& other = place.others[random() % place.others.size()];
  TokenMutation mutation{place.kernel, place.kernel, ""};
  mutation.changed.replace(place.begin, place.length, other);
  mutation.what = absl::StrCat(place.kernel.substr(kBegin.size() - 2, 18), ": ",
                               LineAt(place.kernel, place.begin), " : ",
                               place.kernel.substr(place.begin, place.length), " becomes ",
                               other.empty() ? "nothing" : other);
  return mutation;
}

std::string WithMutation(std::string source, const TokenMutation& mutation) {
  const size_t at = source.find(mutation.kernel);
  if (at != std::string::npos) source.replace(at, mutation.kernel.size(), mutation.changed);
  return source;
}

}  // namespace coconet
