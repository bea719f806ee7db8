#include "runtime/processes/shared_traffic.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {

int64_t SharedTraffic::Bytes(int ranks) { return ranks * static_cast<int64_t>(sizeof(Ring)); }

SharedTraffic::SharedTraffic(std::vector<std::shared_ptr<Region>> regions, int64_t offset, int rank,
                             Board board, WaitTerms terms)
    : regions_(std::move(regions)),
      offset_(offset),
      rank_(rank),
      board_(std::move(board)),
      terms_(terms) {
  static_assert(std::atomic<uint64_t>::is_always_lock_free, "processes share it");
}

SharedTraffic::Ring& SharedTraffic::RingOf(int receiver, int sender) const {
  char* base = static_cast<char*>(regions_[receiver]->base()) + offset_;
  return reinterpret_cast<Ring*>(base)[sender];
}

struct SharedTraffic::Course {
  SharedTraffic& traffic;
  const Streams& streams;
  Fill fill;
  Take take;
  std::vector<int64_t> sent = std::vector<int64_t>(streams.outs.size());  // pieces, by stream
  int64_t taken = 0;                                                      // pieces of every stream
  int64_t longest_in = 0;

  static int64_t PiecesOf(int64_t bytes) { return (bytes + kSlotBytes - 1) / kSlotBytes; }
  static int64_t BytesOf(int64_t bytes, int64_t piece) {
    return std::clamp<int64_t>(bytes - piece * kSlotBytes, 0, kSlotBytes);
  }
  bool done() const { return Unsent() < 0 && taken == longest_in; }
  int Unsent() const;   // a peer that has not been sent everything; -1: none
  int Missing() const;  // a peer whose next piece has not come; -1: none
  int Stray() const;    // a peer whose next piece, which has come, is of another step; -1: none
  bool Send();
  bool Receive();
};

int SharedTraffic::Course::Unsent() const {
  for (size_t i = 0; i < sent.size(); ++i) {
    if (sent[i] < PiecesOf(streams.outs[i].bytes)) return streams.outs[i].peer;
  }
  return -1;
}

int SharedTraffic::Course::Missing() const {
  for (const Streams::In& in : streams.ins) {
    if (BytesOf(in.bytes, taken) == 0) continue;
    const Ring& ring = traffic.RingOf(traffic.rank_, in.peer);
    if (ring.sent.load(std::memory_order_acquire) == ring.taken.load(std::memory_order_relaxed))
      return in.peer;
  }
  return -1;
}

int SharedTraffic::Course::Stray() const {
  for (const Streams::In& in : streams.ins) {
    if (BytesOf(in.bytes, taken) == 0) continue;
    const Ring& ring = traffic.RingOf(traffic.rank_, in.peer);
    const uint64_t next = ring.taken.load(std::memory_order_relaxed);
    if (ring.sent.load(std::memory_order_acquire) != next &&
        ring.steps[next % kSlots] != traffic.step_)
      return in.peer;
  }
  return -1;
}

/// Fills free slots; true when there were any.
bool SharedTraffic::Course::Send() {
  bool moved = false;
  for (size_t i = 0; i < sent.size(); ++i) {
    const Streams::Out& out = streams.outs[i];
    Ring& ring = traffic.RingOf(out.peer, traffic.rank_);
    while (sent[i] < PiecesOf(out.bytes)) {
      const uint64_t number = ring.sent.load(std::memory_order_relaxed);
      if (number - ring.taken.load(std::memory_order_acquire) == kSlots) break;
      const int64_t begin = sent[i] * kSlotBytes, bytes = BytesOf(out.bytes, sent[i]);
      char* slot = ring.slots[number % kSlots];
      if (out.data != nullptr)
        std::memcpy(slot, out.data + begin, bytes);
      else
        fill(i, begin, {slot, static_cast<size_t>(bytes)});
      ring.steps[number % kSlots] = traffic.step_;
      ring.sent.store(number + 1, std::memory_order_release);
      ++sent[i];
      moved = true;
    }
  }
  return moved;
}

/// Takes the next piece of every stream, once all have come.
bool SharedTraffic::Course::Receive() {
  if (taken == longest_in || Missing() >= 0 || Stray() >= 0) return false;
  std::vector<absl::Span<const char>>& pieces = traffic.pieces_;
  pieces.clear();
  for (const Streams::In& in : streams.ins) {
    const Ring& ring = traffic.RingOf(traffic.rank_, in.peer);
    pieces.emplace_back(ring.slots[ring.taken.load(std::memory_order_relaxed) % kSlots],
                        BytesOf(in.bytes, taken));
  }
  take(taken * kSlotBytes, pieces);
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (!pieces[i].empty())
      traffic.RingOf(traffic.rank_, streams.ins[i].peer)
          .taken.fetch_add(1, std::memory_order_release);
  }
  ++taken;
  return true;
}

absl::Status SharedTraffic::Move(absl::string_view what, const Streams& streams, Fill fill,
                                 Take take) {
  RETURN_IF_ERROR(first_error_);
  RETURN_IF_ERROR(CheckAllHere(board_, rank_, what));
  Course course{.traffic = *this, .streams = streams, .fill = fill, .take = take};
  for (const Streams::In& in : streams.ins)
    course.longest_in = std::max(course.longest_in, Course::PiecesOf(in.bytes));
  while (!course.done()) {
    int peer = -1;
    LongWait wait(board_, rank_, terms_.timeout_ns);
    const auto moves = [&] {
      const bool sent = course.Send();
      return course.Receive() || sent;
    };
    const auto in_vain = [&] {
      if (course.Stray() >= 0) board_.Mismatched(rank_, course.Stray()).IgnoreError();
      peer = course.Missing() >= 0 ? course.Missing() : course.Unsent();
      return peer >= 0 ? wait.InVain(peer) : !board_.Left().ok();
    };
    const WaitEnd end = WaitUntil(terms_, moves, in_vain);
    if (end == WaitEnd::kReady) {
      if (peer >= 0) board_.NoteWait(rank_, -1);
      continue;
    }
    if (end == WaitEnd::kInVain) return Failed(what, peer < 0 ? board_.Left() : board_.Gone(peer));
    const int suspect = board_.Suspect(rank_, peer);
    return Failed(what, absl::DeadlineExceededError(absl::StrCat(WaitedFor(terms_.timeout_ns, peer),
                                                                 MayBeDead(peer, suspect),
                                                                 board_.CallsOf(rank_, suspect))));
  }
  return absl::OkStatus();
}

absl::Status SharedTraffic::Failed(absl::string_view what, const absl::Status& why) {
  first_error_ = WithContext(why, absl::StrCat(what, " on rank ", rank_));
  board_.Leave(rank_, first_error_);
  return first_error_;
}

}  // namespace coconet
