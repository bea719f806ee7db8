#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "coconet/base/nearest.h"
#include "jit/config/config.h"

namespace coconet {
namespace {

constexpr absl::string_view kProtocols[] = {"library", "generated"};
constexpr absl::string_view kStreamings[] = {"none", "shared", "all"};
constexpr absl::string_view kOneShots[] = {"pull", "staged", "ll"};

/// A member of Config as the text has it, NAME=VALUE.
struct Row {
  absl::string_view name;
  absl::string_view usual;  // the value that Text leaves out, a number's least; "": always there
  bool is_flag;
  absl::Span<const absl::string_view> words;  // by value; empty: it is a number
  int64_t (*get)(const Config& c);
  bool (*set)(Config& c, int64_t value);  // false: the member cannot hold it
};

template <auto kMember>
constexpr Row Of(absl::string_view name, absl::string_view usual = "",
                 absl::Span<const absl::string_view> words = {}) {
  using T = std::decay_t<decltype(Config().*kMember)>;
  return {name,
          usual,
          std::is_same_v<T, bool>,
          words,
          [](const Config& c) { return static_cast<int64_t>(c.*kMember); },
          [](Config& c, int64_t value) {
            c.*kMember = static_cast<T>(value);
            return static_cast<int64_t>(c.*kMember) == value;
          }};
}

/// In the order of the text.
constexpr Row kRows[] = {
    Of<&Config::vec>("vec"),
    Of<&Config::chunk>("chunk"),
    Of<&Config::blocks>("blocks"),
    Of<&Config::streaming>("stream", "", kStreamings),
    Of<&Config::one_shot>("one-shot", "", kOneShots),
    Of<&Config::pieces>("pieces", "1"),
    Of<&Config::batch>("batch", "0"),
    Of<&Config::threads>("threads", "1"),
    Of<&Config::gemm>("gemm", "0"),
    Of<&Config::multicast>("multicast", "0"),
    Of<&Config::ring>("ring", "0"),
    Of<&Config::bulk>("bulk", "0"),
    Of<&Config::beside>("beside", "0"),
    Of<&Config::tiles>("tiles", "0"),
    Of<&Config::tile_columns>("tile-columns", "0"),
    Of<&Config::stages>("stages", "0"),
    Of<&Config::tma>("tma", "0"),
    Of<&Config::remote_first>("remote-first", "0"),
    Of<&Config::concurrent>("concurrent", "0"),
    Of<&Config::bucket>("bucket", "0"),
    Of<&Config::columns>("columns", "0"),
    Of<&Config::unroll>("unroll", "1"),
};

int Find(absl::Span<const absl::string_view> names, absl::string_view name) {
  const auto it = absl::c_find(names, name);
  return it == names.end() ? -1 : static_cast<int>(it - names.begin());
}

std::string ValueText(const Config& c, const Row& row) {
  return row.words.empty() ? absl::StrCat(row.get(c)) : std::string(row.words[row.get(c)]);
}

/// Reads a value into its member; what is wrong with it otherwise.
std::string ReadValue(Config& c, const Row& row, absl::string_view value) {
  int64_t number = 0, least = 0;
  const bool has_least = absl::SimpleAtoi(row.usual, &least);
  if (!row.words.empty()) {
    number = Find(row.words, value);
    if (number >= 0 && row.set(c, number)) return "";
    return absl::StrCat("unknown ", row.name, "; there are ", absl::StrJoin(row.words, ", "));
  }
  if (row.is_flag) {
    if (value == "1" && row.set(c, 1)) return "";
    return absl::StrCat("want ", row.name, "=1, or nothing");
  }
  const bool is_number = absl::SimpleAtoi(value, &number) && row.set(c, number);
  if (is_number && (!has_least || number > least)) return "";
  return absl::StrCat(row.name, " is no number", has_least ? " above " : "", row.usual);
}

}  // namespace

std::string Text(const Config& c) {
  std::string text(kProtocols[static_cast<int>(c.protocol)]);
  for (const Row& row : kRows) {
    const std::string value = ValueText(c, row);
    if (value != row.usual) absl::StrAppend(&text, " ", row.name, "=", value);
  }
  return text;
}

absl::StatusOr<Config> ParseConfig(absl::string_view text) {
  const auto error = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("config \"", text, "\": ", what));
  };
  Config c;
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  const auto want = error(
      "want 'PROTOCOL vec=V chunk=C blocks=B stream=S one-shot=O', then pieces=P where these are "
      "not 1, batch=E where that is not 0, threads=T where these are not 1, gemm=G where that is "
      "not 0, multicast=1 or ring=1 or bulk=1, beside=M and tiles=T where these are not 0, "
      "tile-columns=C and stages=S where these are not 0, tma=1, remote-first=1, concurrent=1, "
      "bucket=B where that is not 0, columns=1, unroll=U where that "
      "is not 1");
  const int protocol = Find(kProtocols, words[0]);
  if (protocol < 0)
    return error(absl::StrCat("unknown protocol", DidYouMean(words[0], {"library", "generated"}),
                              "; there are library, generated"));
  c.protocol = static_cast<Protocol>(protocol);
  size_t word = 1;
  std::string mistake;  // the first value that is none
  for (const Row& row : kRows) {
    const std::vector<std::string> pair = word < words.size()
                                              ? absl::StrSplit(words[word], absl::MaxSplits('=', 1))
                                              : std::vector<std::string>();
    const bool named = pair.size() == 2 && pair[0] == row.name;
    if (!named && row.usual.empty())
      return word < words.size() ? error(absl::StrCat("want ", row.name, "=... as word ", word + 1))
                                 : want;
    if (!named) continue;
    ++word;
    const bool is_left_out = pair[1].empty() && !row.usual.empty();
    if (!is_left_out && mistake.empty()) mistake = ReadValue(c, row, pair[1]);
  }
  if (word != words.size()) return want;
  if (!mistake.empty()) return error(mistake);
  return c;
}

absl::StatusOr<Config> ParseConfigOver(absl::string_view words, const Config& base) {
  const auto error = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("config \"", words, "\": ", what));
  };
  absl::string_view protocol = kProtocols[static_cast<int>(base.protocol)];
  std::map<absl::string_view, std::string> values;
  std::set<absl::string_view> said;
  std::vector<std::string> names;
  for (const Row& row : kRows) {
    values[row.name] = ValueText(base, row);
    names.emplace_back(row.name);
  }
  for (absl::string_view word : absl::StrSplit(words, absl::ByAnyChar(" \t"), absl::SkipEmpty())) {
    const size_t equals = word.find('=');
    if (equals == absl::string_view::npos) {
      if (Find(kProtocols, word) < 0 || !said.insert("protocol").second)
        return error(
            absl::StrCat("want NAME=NUMBER, and library or generated once, have '", word, "'"));
      protocol = word;
      continue;
    }
    const absl::string_view name = word.substr(0, equals), value = word.substr(equals + 1);
    const auto known = values.find(name);
    if (known == values.end())
      return error(absl::StrCat("no number is called '", name, "'", DidYouMean(name, names)));
    if (value.empty() || !said.insert(name).second)
      return error(absl::StrCat("want one value of ", name));
    known->second = std::string(value);
  }
  std::string whole(protocol);
  for (const Row& row : kRows) {
    if (const std::string& value = values[row.name]; value != row.usual)
      absl::StrAppend(&whole, " ", row.name, "=", value);
  }
  return ParseConfig(whole);
}

}  // namespace coconet
