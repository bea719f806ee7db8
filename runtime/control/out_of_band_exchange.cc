#include "runtime/control/out_of_band_exchange.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "runtime/control/board.h"

namespace coconet {
namespace {

/// A message's size and first bytes: most messages fit, and then need one all-gather only.
struct Envelope {
  static constexpr size_t kRoom = 248;
  int64_t size;
  char text[kRoom];
};

}  // namespace

absl::StatusOr<std::vector<std::string>> OutOfBandExchange::AllGather(absl::string_view mine) {
  RETURN_IF_ERROR(first_error_);
  Envelope own{.size = static_cast<int64_t>(mine.size()), .text = {}};
  std::memcpy(own.text, mine.data(), std::min(mine.size(), Envelope::kRoom));
  absl::StatusOr<std::string> gathered = Gather({reinterpret_cast<const char*>(&own), sizeof own});
  std::vector<int64_t> sizes(way_.ranks);
  std::vector<std::string> all(way_.ranks);
  size_t longest = 0;
  for (int peer = 0; gathered.ok() && peer < way_.ranks; ++peer) {
    Envelope theirs;
    std::memcpy(&theirs, gathered->data() + peer * sizeof theirs, sizeof theirs);
    sizes[peer] = theirs.size;
    longest = std::max<size_t>(longest, theirs.size);
    all[peer].assign(theirs.text, std::min<size_t>(theirs.size, Envelope::kRoom));
  }
  if (gathered.ok() && longest > Envelope::kRoom) {
    std::string padded(mine);
    padded.resize(longest);
    gathered = Gather(padded);
    for (int peer = 0; gathered.ok() && peer < way_.ranks; ++peer)
      all[peer] = gathered->substr(peer * longest, sizes[peer]);
  }
  first_error_ = WithContext(gathered.status(), absl::StrCat("Join on rank ", way_.rank));
  RETURN_IF_ERROR(first_error_);
  return all;
}

absl::StatusOr<std::string> OutOfBandExchange::Gather(absl::string_view mine) {
  std::string all(mine.size() * way_.ranks, '\0');
  void* request = nullptr;
  if (way_.all_gather(way_.context, mine.data(), all.data(), mine.size(), &request) != 0)
    return Failed("its all-gather did not begin");
  const absl::Status done = way_.test == nullptr ? absl::OkStatus() : Await(request);
  if (way_.release != nullptr) way_.release(way_.context, request);
  RETURN_IF_ERROR(done);
  if (std::memcmp(all.data() + way_.rank * mine.size(), mine.data(), mine.size()) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "out of band: want the bytes of rank ", way_.rank,
        " at its place; the all-gather put others there. Are the ranks' numbers right?"));
  }
  return all;
}

absl::Status OutOfBandExchange::Await(void* request) const {
  int state = 1;
  const auto ended = [&] {
    state = way_.test(way_.context, request);
    return state != 1;
  };
  const WaitEnd end = WaitUntil(terms_, ended, [] { return false; });
  if (end == WaitEnd::kReady)
    return state == 0 ? absl::OkStatus() : Failed("its all-gather failed");
  const int absent = way_.absent == nullptr ? -1 : way_.absent(way_.context, request);
  if (absent >= 0 && absent < way_.ranks)
    return absl::DeadlineExceededError(
        absl::StrCat(WaitedFor(terms_.timeout_ns, absent), MayBeDead(absent, absent)));
  return absl::DeadlineExceededError(absl::StrCat("waited ", terms_.timeout_ns * 1e-9,
                                                  " s for the other ranks; one ", kDeadlineAdvice));
}

absl::Status OutOfBandExchange::Failed(absl::string_view what) const {
  const char* words = way_.error == nullptr ? nullptr : way_.error(way_.context);
  return absl::UnavailableError(absl::StrCat("out of band: ", what, words == nullptr ? "" : ": ",
                                             words == nullptr ? "" : words));
}

}  // namespace coconet
