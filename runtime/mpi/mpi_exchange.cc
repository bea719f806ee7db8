#include "runtime/mpi/mpi_exchange.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <numeric>

#include "absl/algorithm/container.h"
#include "coconet/base/status.h"
#include "runtime/mpi/mpi_status.h"

namespace coconet {
namespace {

// A message's size and first bytes: most messages fit, and then need one collective only.
struct Envelope {
  static constexpr int kRoom = 248;
  int64_t size;
  char text[kRoom];
};

WaitTerms GraceOf(const WaitTerms& terms) {
  return {.spins = 0, .timeout_ns = terms.timeout_ns / kGrace};
}

/// For messages of ranks that have all sent theirs, one of which may have died since.
WaitTerms LastCall(const WaitTerms& terms) {
  return {.spins = 0, .timeout_ns = std::min(terms.timeout_ns / kGrace, int64_t{1000000000})};
}

}  // namespace

absl::StatusOr<std::vector<std::string>> MpiExchange::AllGather(absl::string_view mine) {
  RETURN_IF_ERROR(first_error_);
  if (board_.has_value()) {
    RETURN_IF_ERROR(CheckAllHere(*board_, rank_, "exchange"));
    board_->arrivals(rank_).fetch_add(1, std::memory_order_release);
  }
  auto round = std::make_unique<Round>();
  absl::StatusOr<std::vector<std::string>> all = Gather(mine, *round);
  if (all.ok()) return all;
  // Leaked: MPI cannot cancel a collective, and may write to its buffers until the process ends.
  static auto& kept = *new std::vector<std::unique_ptr<Round>>();
  kept.push_back(std::move(round));
  first_error_ = WithContext(all.status(), absl::StrCat("exchange on rank ", rank_));
  if (board_.has_value()) board_->Leave(rank_, first_error_);
  return first_error_;
}

absl::StatusOr<std::vector<std::string>> MpiExchange::Gather(absl::string_view mine, Round& round) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, GatherEnvelopes(mine, round));
  std::vector<std::string> all;
  if (absl::c_all_of(sizes, [](int64_t size) { return size <= Envelope::kRoom; })) {
    for (int peer = 0; peer < size_; ++peer) {
      const char* theirs = round.envelopes.data() + peer * sizeof(Envelope);
      all.emplace_back(theirs + offsetof(Envelope, text), sizes[peer]);
    }
    return all;
  }
  RETURN_IF_ERROR(GatherLetters(mine, sizes, round));
  const char* next = round.letters.data();
  for (int64_t size : sizes) {
    all.emplace_back(next, size);
    next += size;
  }
  return all;
}

absl::StatusOr<std::vector<int64_t>> MpiExchange::GatherEnvelopes(absl::string_view mine,
                                                                  Round& round) {
  Envelope own{.size = static_cast<int64_t>(mine.size()), .text = {}};
  std::memcpy(own.text, mine.data(), std::min<size_t>(mine.size(), Envelope::kRoom));
  round.sent.assign(reinterpret_cast<char*>(&own), reinterpret_cast<char*>(&own + 1));
  round.envelopes.resize(size_ * sizeof own);
  RETURN_IF_MPI(Iallgather, round.sent.data(), sizeof own, MPI_BYTE, round.envelopes.data(),
                sizeof own, MPI_BYTE, comm_, &round.request);
  RETURN_IF_ERROR(Await(round));
  std::vector<int64_t> sizes(size_);
  for (int peer = 0; peer < size_; ++peer)
    std::memcpy(&sizes[peer], round.envelopes.data() + peer * sizeof own, sizeof(int64_t));
  return sizes;
}

absl::Status MpiExchange::GatherLetters(absl::string_view mine, const std::vector<int64_t>& sizes,
                                        Round& round) {
  const int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  if (total > std::numeric_limits<int>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("messages of ", total, " bytes; want less than 2 GiB together"));
  }
  round.sent.assign(mine.begin(), mine.end());
  round.counts.assign(sizes.begin(), sizes.end());
  round.begins.resize(size_);
  std::exclusive_scan(round.counts.begin(), round.counts.end(), round.begins.begin(), 0);
  round.letters.resize(total);
  RETURN_IF_MPI(Iallgatherv, round.sent.data(), round.counts[rank_], MPI_BYTE, round.letters.data(),
                round.counts.data(), round.begins.data(), MPI_BYTE, comm_, &round.request);
  return Await(round);
}

absl::Status MpiExchange::Await(Round& round) {
  absl::Status status;
  int done = 0;
  const auto ready = [&] {
    status = ToStatus(MPI_Test(&round.request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    return done != 0 || !status.ok();
  };
  std::optional<LongWait> wait;
  if (board_.has_value()) wait.emplace(*board_, rank_, terms_.timeout_ns);
  const auto in_vain = [&] {
    hearsay_.listen();
    return wait.has_value() && wait->InVainForAll(node_, AbsentHere());
  };
  WaitEnd end = WaitUntil(terms_, ready, in_vain);
  if (end == WaitEnd::kDeadline && AbsentHere() < 0) {
    // Says that this rank waits, for no peer in particular; all ranks that wait have said so by the
    // end of the grace period.
    hearsay_.note(rank_);
    end = WaitUntil(GraceOf(terms_), ready, in_vain);
    if (end == WaitEnd::kReady) hearsay_.note(-1);
  }
  // A rank may leave because of what this exchange told it, before MPI has told others.
  if (end == WaitEnd::kInVain && node_.size == size_ && AbsentHere() < 0)
    end = WaitUntil(LastCall(terms_), ready, [] { return false; });
  if (end == WaitEnd::kReady) return status;
  if (board_.has_value() && !board_->Left().ok()) return board_->Left();
  const int absent = AbsentHere() >= 0 ? AbsentHere() : AbsentElsewhere();
  if (absent >= 0)
    return absl::DeadlineExceededError(
        absl::StrCat(WaitedFor(terms_.timeout_ns, absent), MayBeDead(absent, absent),
                     board_.has_value() ? board_->CallsOf(rank_, absent) : ""));
  return absl::DeadlineExceededError(absl::StrCat("waited ", terms_.timeout_ns * 1e-9,
                                                  " s for the other ranks; one ", kDeadlineAdvice));
}

int MpiExchange::AbsentHere() {
  if (!board_.has_value()) return -1;
  const unsigned mine = board_->arrivals(rank_).load(std::memory_order_acquire);
  for (int i = 0; i < node_.size; ++i) {
    if (!Reached(board_->arrivals(node_.Rank(i)).load(std::memory_order_acquire), mine))
      return node_.Rank(i);
  }
  return -1;
}

int MpiExchange::AbsentElsewhere() {
  for (int peer = 0; board_.has_value() && peer < size_; ++peer) {
    const bool here = node_.first <= peer && peer < node_.first + node_.size;
    if (!here && board_->Awaited(peer) < 0) return peer;
  }
  return -1;
}

}  // namespace coconet
