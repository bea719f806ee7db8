#include "runtime/control/board.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/control/wire_notices.h"

namespace coconet {
namespace {

constexpr int64_t kFirstLineNs = 10'000'000'000;
constexpr int64_t kShowNs = 200'000'000;  // a wait after which other nodes hear what is called
constexpr int64_t kAheadNs = 100'000'000;
constexpr unsigned kPollsPerClockRead = 32;
constexpr unsigned kPollsPerComparison = 8;

constexpr absl::string_view kCallDifferently = "the ranks call differently: ";

int64_t NowNs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

}  // namespace

struct Board::Header {
  alignas(64) std::atomic<int> first_left;  // 1 + the rank that left first; 0: none
};

struct Board::Notice {
  enum State : int { kHere, kFinished, kLeaving, kLeft };
  alignas(64) std::atomic<int> state;
  char why[1020];
  alignas(64) std::atomic<unsigned> arrivals;
  std::atomic<int> awaited;  // 1 + the rank; 0: none
  CallLog calls;
};

int64_t Board::Bytes(int ranks) { return sizeof(Header) + ranks * sizeof(Notice); }

Board::Board(void* memory, int ranks)
    : header_(static_cast<Header*>(memory)),
      notices_(reinterpret_cast<Notice*>(static_cast<char*>(memory) + sizeof(Header))),
      ranks_(ranks) {
  static_assert(std::atomic<int>::is_always_lock_free, "processes share it");
}

Board Board::With(std::shared_ptr<WireNotices> notices) const {
  Board with = *this;
  with.wire_notices_ = std::move(notices);
  return with;
}

void Board::ReceiveNotices() const {
  if (wire_notices_ != nullptr) wire_notices_->Receive();
}

std::atomic<unsigned>& Board::arrivals(int rank) const { return notices_[rank].arrivals; }

CallLog& Board::calls(int rank) const { return notices_[rank].calls; }

void Board::ShowCalls(int rank) const {
  if (wire_notices_ != nullptr) wire_notices_->ShowCalls(calls(rank));
}

bool Board::IsAhead(int rank, int peer) const { return calls(peer).begun() > calls(rank).begun(); }

bool Board::Diverged(int rank, int peer, bool is_behind_counts) {
  const CallLog &mine = calls(rank), &theirs = calls(peer);
  const bool differ = (is_behind_counts && IsAhead(rank, peer)) || Differ(mine, theirs);
  if (!differ) return false;
  Mismatched(rank, peer).IgnoreError();
  return true;
}

absl::Status Board::Mismatched(int rank, int peer) {
  const bool is_first = rank < peer;
  const int one = is_first ? rank : peer, other = is_first ? peer : rank;
  const absl::Status why = CallDifferently(DifferenceOf(one, calls(one), other, calls(other)));
  Leave(rank, why);
  return why;
}

std::string Board::CallsOf(int rank, int peer) const {
  const CallLog &mine = calls(rank), &theirs = calls(peer);
  if (mine.begun() == 0) return "";
  return absl::StrCat("; rank ", rank, " makes ", mine.Words(mine.begun()), "; rank ", peer,
                      " has come to ", theirs.Words(theirs.begun()));
}

void Board::NoteWait(int rank, int peer) {
  notices_[rank].awaited.store(1 + peer, std::memory_order_relaxed);
}

int Board::Awaited(int rank) const {
  return notices_[rank].awaited.load(std::memory_order_relaxed) - 1;
}

void Board::ShowWait(int rank, int peer) {
  NoteWait(rank, peer);
  if (wire_notices_ != nullptr) wire_notices_->ShowWait(peer);
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
  const std::string text = AreCallingDifferently(why) ? std::string(why.message()) : why.ToString();
  const size_t size = std::min(text.size(), sizeof(notice.why) - 1);
  std::memcpy(notice.why, text.data(), size);
  notice.why[size] = '\0';
  notice.state.store(Notice::kLeft, std::memory_order_release);
  int none = 0;
  header_->first_left.compare_exchange_strong(none, 1 + rank);
  if (wire_notices_ != nullptr) wire_notices_->Abort(why);
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
  if (absl::StartsWith(notices_[first - 1].why, kCallDifferently))
    return absl::AbortedError(notices_[first - 1].why);
  return absl::AbortedError(absl::StrCat("rank ", first - 1, " left: ", notices_[first - 1].why));
}

int Board::FirstLeft() const { return header_->first_left.load() - 1; }

absl::Status Board::Gone(int peer) const {
  if (absl::Status left = Left(); !left.ok()) return left;
  if (notices_[peer].state.load(std::memory_order_acquire) != Notice::kFinished)
    return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("rank ", peer, " has finished"));
}

absl::Status CallDifferently(absl::string_view difference) {
  return absl::AbortedError(
      absl::StrCat(kCallDifferently, difference,
                   "; want the same calls in the same order on all ranks, also where one skips a "
                   "batch, saves, evaluates or ends"));
}

bool AreCallingDifferently(const absl::Status& left) {
  return absl::StartsWith(left.message(), kCallDifferently);
}

bool LongWait::InVain(int peer, bool is_behind_counts) {
  board_->NoteWait(rank_, peer);
  Tell(peer, /*shows=*/false);
  return board_->InVain(peer) ||
         (polls_ % kPollsPerComparison == 0 &&
          board_->Diverged(rank_, peer, is_behind_counts && StaysAhead(peer)));
}

bool LongWait::InVainForAll(const Members& mapped, int awaited) {
  Tell(awaited, /*shows=*/true);
  if (!board_->Left().ok()) return true;
  for (int peer = 0; peer < board_->ranks(); ++peer) {
    // What is heard of others may be late.
    const int from = peer - mapped.first;
    const bool maps = from >= 0 && from % mapped.stride == 0 && from / mapped.stride < mapped.size;
    if (peer != rank_ && board_->Diverged(rank_, peer, maps && StaysAhead(peer))) return true;
  }
  return false;
}

bool LongWait::StaysAhead(int peer) {
  if (!board_->IsAhead(rank_, peer)) return false;
  const int64_t now = NowNs();
  if (ahead_ns_ == 0) ahead_ns_ = now;
  return now - ahead_ns_ >= kAheadNs;
}

void LongWait::Tell(int peer, bool shows) {
  if (polls_++ % kPollsPerClockRead != 0) return;
  const int64_t now = NowNs();
  if (start_ns_ == 0) {
    start_ns_ = now;
    line_ns_ = std::min(kFirstLineNs, timeout_ns_ / 4);
  }
  const int64_t waited = now - start_ns_;
  if (shows && !shown_ && waited >= kShowNs) {
    shown_ = true;
    board_->ShowCalls(rank_);
  }
  if (waited < line_ns_ || peer < 0) return;
  line_ns_ = 2 * waited;
  const int suspect = board_->Suspect(rank_, peer);
  std::fprintf(
      stderr, "%s\n",
      absl::StrCat("coconet: rank ", rank_, " has waited ", waited / 1'000'000'000, " s for rank ",
                   peer, suspect == peer ? "" : absl::StrCat(", which waits for rank ", suspect),
                   ", and waits up to ", timeout_ns_ * 1e-9, " s", board_->CallsOf(rank_, suspect))
          .c_str());
}

absl::Status CheckAllHere(const Board& board, int rank, absl::string_view what) {
  const absl::Status left = board.Left();
  if (left.ok()) return left;
  return absl::AbortedError(
      absl::StrCat(what, " on rank ", rank, ": ", left.message(),
                   AreCallingDifferently(left) ? "" : board.CallsOf(rank, board.FirstLeft())));
}

absl::Status AwaitPeer(Board& board, const WaitTerms& terms, int rank, int peer,
                       const std::atomic<unsigned>& flag, unsigned epoch, absl::string_view what,
                       bool is_behind_counts) {
  const auto ready = [&] { return Reached(flag.load(std::memory_order_acquire), epoch); };
  ObservedWait observed;
  LongWait wait(board, rank, terms.timeout_ns);
  const auto in_vain = [&] {
    observed.Begin(ready);
    return wait.InVain(peer, is_behind_counts);
  };
  const WaitEnd end = WaitUntil(terms, ready, in_vain);
  if (end == WaitEnd::kReady) {
    board.NoteWait(rank, -1);
    return absl::OkStatus();
  }
  const std::string where = absl::StrCat(what, " on rank ", rank, ": ");
  const absl::Status gone = board.Gone(peer);
  const int suspect = board.Suspect(rank, peer);
  absl::Status failure;
  if (end == WaitEnd::kDeadline) {
    failure = absl::DeadlineExceededError(absl::StrCat(where, WaitedFor(terms.timeout_ns, peer),
                                                       MayBeDead(peer, suspect),
                                                       board.CallsOf(rank, suspect)));
  } else if (AreCallingDifferently(gone)) {
    failure = gone;
  } else {
    failure = absl::AbortedError(absl::StrCat(where, gone.message(), board.CallsOf(rank, peer)));
  }
  board.Leave(rank, failure);
  return failure;
}

absl::Status WhyBroken(const Board& board, const absl::Status& broken) {
  const auto left = [&] {
    board.ReceiveNotices();
    return !board.Left().ok();
  };
  const WaitTerms terms{.spins = 0, .timeout_ns = 500'000'000};
  return WaitUntil(terms, left, [] { return false; }) == WaitEnd::kReady ? board.Left() : broken;
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
