#include "runtime/control/called_exchange.h"

#include <cstring>

#include "absl/strings/str_cat.h"

#include "coconet/base/status.h"

namespace coconet {
namespace {

/// Begins each message; behind it are `words` bytes of the call, then the message.
struct Header {
  uint64_t number, digest, words;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> CalledExchange::AllGather(absl::string_view mine) {
  const CallLog& calls = board_.calls(rank_);
  const uint64_t number = calls.begun();
  const std::string words = number == 0 ? "" : calls.Words(number);
  const Header own{number, calls.DigestOf(number), words.size()};
  std::string message(reinterpret_cast<const char*>(&own), sizeof own);
  message.append(words);
  message.append(mine.data(), mine.size());
  ASSIGN_OR_RETURN(std::vector<std::string> all, exchange_->AllGather(message));
  std::vector<Header> headers(all.size());
  for (size_t peer = 0; peer < all.size(); ++peer) {
    CC_CHECK(all[peer].size() >= sizeof own);
    std::memcpy(&headers[peer], all[peer].data(), sizeof own);
    CC_CHECK(all[peer].size() >= sizeof own + headers[peer].words);
  }
  for (size_t peer = 1; peer < all.size(); ++peer) {
    const Header &first = headers[0], &theirs = headers[peer];
    if (theirs.number == first.number && theirs.digest == first.digest) continue;
    const auto words_of = [&](size_t of) {
      return headers[of].words == 0 ? "no call" : all[of].substr(sizeof own, headers[of].words);
    };
    const absl::Status why = CallDifferently(
        absl::StrCat("rank 0 makes ", words_of(0), "; rank ", peer, " makes ", words_of(peer)));
    board_.Leave(rank_, why);
    return why;
  }
  for (size_t peer = 0; peer < all.size(); ++peer)
    all[peer].erase(0, sizeof own + headers[peer].words);
  return all;
}

}  // namespace coconet
