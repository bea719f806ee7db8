#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "coconet/base/nearest.h"
#include "jit/config/config.h"

namespace coconet {
namespace {

constexpr absl::string_view kProtocols[] = {"library", "generated"};
constexpr absl::string_view kStreamings[] = {"none", "shared", "all"};
constexpr absl::string_view kOneShots[] = {"pull", "staged", "ll"};
/// The names of a text's numbers in order, of which the first kAlways are always there.
constexpr absl::string_view kNames[] = {"vec",        "chunk",  "blocks",  "stream", "one-shot",
                                        "pieces",     "batch",  "threads", "gemm",   "multicast",
                                        "ring",       "bulk",   "beside",  "tiles",  "remote-first",
                                        "concurrent", "bucket", "columns", "unroll"};
constexpr size_t kAlways = 5;
/// What Text leaves out says this of the numbers with these names, and 0 of the others.
constexpr absl::string_view kOneByDefault[] = {"pieces", "threads", "unroll"};

template <size_t N>
int Find(const absl::string_view (&names)[N], absl::string_view name) {
  const auto* it = std::find(std::begin(names), std::end(names), name);
  return it == std::end(names) ? -1 : static_cast<int>(it - std::begin(names));
}

}  // namespace

std::string Text(const Config& c) {
  return absl::StrCat(
      kProtocols[static_cast<int>(c.protocol)], " vec=", c.vec, " chunk=", c.chunk,
      " blocks=", c.blocks, " stream=", kStreamings[static_cast<int>(c.streaming)],
      " one-shot=", kOneShots[static_cast<int>(c.one_shot)],
      c.pieces == 1 ? "" : absl::StrCat(" pieces=", c.pieces),
      c.batch == 0 ? "" : absl::StrCat(" batch=", c.batch),
      c.threads == 1 ? "" : absl::StrCat(" threads=", c.threads),
      c.gemm == 0 ? "" : absl::StrCat(" gemm=", c.gemm), c.multicast ? " multicast=1" : "",
      c.ring ? " ring=1" : "", c.bulk ? " bulk=1" : "",
      c.beside == 0 ? "" : absl::StrCat(" beside=", c.beside),
      c.tiles == 0 ? "" : absl::StrCat(" tiles=", c.tiles), c.remote_first ? " remote-first=1" : "",
      c.concurrent ? " concurrent=1" : "", c.bucket == 0 ? "" : absl::StrCat(" bucket=", c.bucket),
      c.columns ? " columns=1" : "", c.unroll == 1 ? "" : absl::StrCat(" unroll=", c.unroll));
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
      "remote-first=1, concurrent=1, bucket=B where that is not 0, columns=1, unroll=U where that "
      "is not 1");
  const int protocol = Find(kProtocols, words[0]);
  if (protocol < 0)
    return error(absl::StrCat("unknown protocol", DidYouMean(words[0], {"library", "generated"}),
                              "; there are library, generated"));
  c.protocol = static_cast<Protocol>(protocol);
  std::array<std::string, std::size(kNames)> values;
  size_t word = 1;
  for (size_t at = 0; at < std::size(kNames); ++at) {
    const std::vector<std::string> pair = word < words.size()
                                              ? absl::StrSplit(words[word], absl::MaxSplits('=', 1))
                                              : std::vector<std::string>();
    const bool named = pair.size() == 2 && pair[0] == kNames[at];
    if (!named && at < kAlways)
      return word < words.size()
                 ? error(absl::StrCat("want ", kNames[at], "=... as word ", word + 1))
                 : want;
    if (!named) continue;
    values[at] = pair[1];
    ++word;
  }
  if (word != words.size()) return want;
  if (!absl::SimpleAtoi(values[0], &c.vec)) return error("vec is no number");
  if (!absl::SimpleAtoi(values[1], &c.chunk)) return error("chunk is no number");
  if (!absl::SimpleAtoi(values[2], &c.blocks)) return error("blocks is no number");
  const int streaming = Find(kStreamings, values[3]);
  if (streaming < 0) return error("unknown stream; there are none, shared, all");
  c.streaming = static_cast<Streaming>(streaming);
  const int one_shot = Find(kOneShots, values[4]);
  if (one_shot < 0) return error("unknown one-shot; there are pull, staged, ll");
  c.one_shot = static_cast<OneShot>(one_shot);
  if (!values[5].empty() && (!absl::SimpleAtoi(values[5], &c.pieces) || c.pieces < 2))
    return error("pieces is no number above 1");
  if (!values[6].empty() && (!absl::SimpleAtoi(values[6], &c.batch) || c.batch < 1))
    return error("batch is no number above 0");
  if (!values[7].empty() && (!absl::SimpleAtoi(values[7], &c.threads) || c.threads < 2))
    return error("threads is no number above 1");
  if (!values[8].empty() && (!absl::SimpleAtoi(values[8], &c.gemm) || c.gemm < 1))
    return error("gemm is no number above 0");
  if (!values[12].empty() && (!absl::SimpleAtoi(values[12], &c.beside) || c.beside < 1))
    return error("beside is no number above 0");
  if (!values[13].empty() && (!absl::SimpleAtoi(values[13], &c.tiles) || c.tiles < 1))
    return error("tiles is no number above 0");
  const std::pair<size_t, bool*> flags[] = {{9, &c.multicast},   {10, &c.ring},
                                            {11, &c.bulk},       {14, &c.remote_first},
                                            {15, &c.concurrent}, {17, &c.columns}};
  for (const auto& [at, flag] : flags) {
    if (!values[at].empty() && values[at] != "1")
      return error(absl::StrCat("want ", kNames[at], "=1, or nothing"));
    *flag = !values[at].empty();
  }
  if (!values[16].empty() && (!absl::SimpleAtoi(values[16], &c.bucket) || c.bucket < 1))
    return error("bucket is no number above 0");
  if (!values[18].empty() && (!absl::SimpleAtoi(values[18], &c.unroll) || c.unroll < 2))
    return error("unroll is no number above 1");
  return c;
}

absl::StatusOr<Config> ParseConfigOver(absl::string_view words, const Config& base) {
  const auto error = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("config \"", words, "\": ", what));
  };
  const std::string text = Text(base);
  absl::string_view protocol = absl::string_view(text).substr(0, text.find(' '));
  std::map<absl::string_view, absl::string_view> values, said;
  for (absl::string_view word : absl::StrSplit(text, ' ')) {
    const size_t equals = word.find('=');
    if (equals != absl::string_view::npos) values[word.substr(0, equals)] = word.substr(equals + 1);
  }
  for (absl::string_view word : absl::StrSplit(words, absl::ByAnyChar(" \t"), absl::SkipEmpty())) {
    const size_t equals = word.find('=');
    if (equals == absl::string_view::npos) {
      if (Find(kProtocols, word) < 0 || !said.emplace("protocol", word).second)
        return error(
            absl::StrCat("want NAME=NUMBER, and library or generated once, have '", word, "'"));
      protocol = word;
      continue;
    }
    const absl::string_view name = word.substr(0, equals), value = word.substr(equals + 1);
    if (Find(kNames, name) < 0) {
      return error(absl::StrCat(
          "no number is called '", name, "'",
          DidYouMean(name, std::vector<std::string>(std::begin(kNames), std::end(kNames)))));
    }
    if (value.empty() || !said.emplace(name, value).second)
      return error(absl::StrCat("want one value of ", name));
    values[name] = value;
  }
  std::string whole(protocol);
  for (size_t at = 0; at < std::size(kNames); ++at) {
    const absl::string_view name = kNames[at];
    const auto value = values.find(name);
    const absl::string_view usual = Find(kOneByDefault, name) < 0 ? "0" : "1";
    if (value == values.end() || (at >= kAlways && value->second == usual)) continue;
    absl::StrAppend(&whole, " ", name, "=", value->second);
  }
  return ParseConfig(whole);
}

}  // namespace coconet
