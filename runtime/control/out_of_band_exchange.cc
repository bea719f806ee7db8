#include "runtime/control/out_of_band_exchange.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "runtime/control/board.h"

namespace coconet {

absl::StatusOr<std::vector<std::string>> OutOfBandExchange::Gather(
    absl::string_view mine, const std::vector<int64_t>& sizes) {
  RETURN_IF_ERROR(first_error_);
  const int64_t longest = *std::max_element(sizes.begin(), sizes.end());
  std::string padded(mine);
  padded.resize(longest);
  const absl::StatusOr<std::string> gathered = GatherEqual(padded);
  first_error_ = WithContext(gathered.status(), absl::StrCat("Join on rank ", way_.rank));
  RETURN_IF_ERROR(first_error_);
  std::vector<std::string> all;
  for (int peer = 0; peer < way_.ranks; ++peer)
    all.push_back(gathered->substr(peer * longest, sizes[peer]));
  return all;
}

absl::StatusOr<std::string> OutOfBandExchange::GatherEqual(absl::string_view mine) {
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
