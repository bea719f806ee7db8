#include "runtime/node/board.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace coconet {

struct Board::Header {
  alignas(64) std::atomic<int> first_left;  // 1 + the rank that left first; 0: none
};

struct Board::Notice {
  enum State : int { kHere, kFinished, kLeaving, kLeft };
  alignas(64) std::atomic<int> state;
  char why[1020];
  alignas(64) std::atomic<unsigned> arrivals;
  std::atomic<int> awaited;  // 1 + the rank; 0: none
};

int64_t Board::Bytes(int ranks) { return sizeof(Header) + ranks * sizeof(Notice); }

Board::Board(void* memory, int ranks)
    : header_(static_cast<Header*>(memory)),
      notices_(reinterpret_cast<Notice*>(static_cast<char*>(memory) + sizeof(Header))),
      ranks_(ranks) {
  static_assert(std::atomic<int>::is_always_lock_free, "processes share it");
}

Board Board::Telling(std::function<void(const absl::Status&)> tell) const {
  Board telling = *this;
  telling.tell_ = std::move(tell);
  return telling;
}

std::atomic<unsigned>& Board::arrivals(int rank) { return notices_[rank].arrivals; }

void Board::NoteWait(int rank, int peer) {
  notices_[rank].awaited.store(1 + peer, std::memory_order_relaxed);
}

int Board::Awaited(int rank) const {
  return notices_[rank].awaited.load(std::memory_order_relaxed) - 1;
}

int Board::Suspect(int rank, int peer) const {
  int suspect = peer;
  for (int hops = 0; hops < ranks_; ++hops) {
    const int next = Awaited(suspect);
    if (next < 0 || next == suspect) return suspect;
    if (next == rank) break;
    suspect = next;
  }
  return peer;  // a circular wait, caused by `peer` or by a rank outside the circle
}

void Board::Leave(int rank, const absl::Status& why) {
  Notice& notice = notices_[rank];
  int here = Notice::kHere;
  if (!notice.state.compare_exchange_strong(here, Notice::kLeaving)) return;
  const std::string text = why.ToString();
  const size_t size = std::min(text.size(), sizeof(notice.why) - 1);
  std::memcpy(notice.why, text.data(), size);
  notice.why[size] = '\0';
  notice.state.store(Notice::kLeft, std::memory_order_release);
  int none = 0;
  header_->first_left.compare_exchange_strong(none, 1 + rank);
  if (tell_) tell_(why);
}

void Board::Finish(int rank) {
  int here = Notice::kHere;
  notices_[rank].state.compare_exchange_strong(here, Notice::kFinished);
}

bool Board::IsHere(int rank) const { return notices_[rank].state.load() == Notice::kHere; }

bool Board::InVain(int peer) const {
  return header_->first_left.load(std::memory_order_acquire) != 0 ||
         notices_[peer].state.load(std::memory_order_acquire) == Notice::kFinished;
}

absl::Status Board::Left() const {
  const int first = header_->first_left.load();
  if (first == 0) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("rank ", first - 1, " left: ", notices_[first - 1].why));
}

absl::Status Board::Gone(int peer) const {
  if (absl::Status left = Left(); !left.ok()) return left;
  if (notices_[peer].state.load(std::memory_order_acquire) != Notice::kFinished)
    return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("rank ", peer, " has finished"));
}

absl::Status CheckAllHere(const Board& board, int rank, absl::string_view what) {
  const absl::Status left = board.Left();
  if (left.ok()) return left;
  return absl::AbortedError(absl::StrCat(what, " on rank ", rank, ": ", left.message()));
}

absl::Status AwaitPeer(Board& board, const WaitTerms& terms, int rank, int peer,
                       const std::atomic<unsigned>& flag, unsigned epoch, absl::string_view what) {
  const auto ready = [&] { return Reached(flag.load(std::memory_order_acquire), epoch); };
  ObservedWait observed;
  const auto in_vain = [&] {
    observed.Begin(ready);
    board.NoteWait(rank, peer);
    return board.InVain(peer);
  };
  const WaitEnd end = WaitUntil(terms, ready, in_vain);
  if (end == WaitEnd::kReady) {
    board.NoteWait(rank, -1);
    return absl::OkStatus();
  }
  const std::string where = absl::StrCat(what, " on rank ", rank, ": ");
  const absl::Status failure =
      end == WaitEnd::kInVain
          ? absl::AbortedError(absl::StrCat(where, board.Gone(peer).message()))
          : absl::DeadlineExceededError(absl::StrCat(where, WaitedFor(terms.timeout_ns, peer),
                                                     MayBeDead(peer, board.Suspect(rank, peer))));
  board.Leave(rank, failure);
  return failure;
}

std::string WaitedFor(int64_t timeout_ns, int peer) {
  return absl::StrCat("waited ", timeout_ns * 1e-9, " s for rank ", peer);
}

std::string MayBeDead(int peer, int suspect) {
  return absl::StrCat(
      suspect == peer ? "" : absl::StrCat("; rank ", peer, " waits for rank ", suspect), "; rank ",
      suspect, " ", kDeadlineAdvice);
}

}  // namespace coconet
