#include "runtime/processes/collectives/message_traffic.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr int64_t kWindow = 16;                    // messages of a stream in flight
constexpr int64_t kMostBytes = int64_t{60} << 10;  // per message: Open MPI's eager limit over TCP
constexpr int64_t kLeastBytes = int64_t{16} << 10;
// Messages of different steps have different tags, as a rule: MPI has 2^15 of them.
constexpr int kTagsOfSteps = 500, kTagsOfRank = 64;
constexpr int64_t kBytesUnderWay = int64_t{8} << 20;  // per direction, for all streams of a rank

/// Bytes per message for ranks with `width` streams per direction; a multiple of
/// every element size.
int64_t PieceBytes(int width) {
  return std::clamp(kBytesUnderWay / (kWindow * std::max(width, 1)) / 64 * 64, kLeastBytes,
                    kMostBytes);
}

}  // namespace

struct MessageTraffic::Depot {
  explicit Depot(int most)
      : memory(new char[2 * std::max(kBytesUnderWay, kWindow * std::max(most, 1) * kLeastBytes)]),
        receives(kWindow * most),
        sends(kWindow * most),
        pieces(most) {}

  std::unique_ptr<char[]> memory;              // pages beyond the widths in use are never touched
  std::vector<Wire::Ticket> receives, sends;   // by place in the window, then by stream
  std::vector<absl::Span<const char>> pieces;  // by stream
};

/// The state of one Move. Piece p of every stream occupies place p % kWindow of the window.
struct MessageTraffic::Course {
  MessageTraffic& traffic;
  const Streams& streams;
  int64_t piece_bytes = PieceBytes(streams.width);
  int64_t pieces = 0;
  int64_t posted = 0, taken = 0, sent = 0;  // pieces

  explicit Course(MessageTraffic& traffic, const Streams& streams)
      : traffic(traffic), streams(streams) {
    int64_t longest = 0;
    for (const Streams::Out& out : streams.outs) longest = std::max(longest, out.bytes);
    for (const Streams::In& in : streams.ins) longest = std::max(longest, in.bytes);
    pieces = (longest + piece_bytes - 1) / piece_bytes;
  }
  bool done() const { return std::min(taken, sent) == pieces; }
  int64_t BytesOf(int64_t bytes, int64_t piece) const {
    return std::clamp<int64_t>(bytes - piece * piece_bytes, 0, piece_bytes);
  }
  size_t ins() const { return streams.ins.size(); }
  size_t outs() const { return streams.outs.size(); }
  Wire::Ticket* Receives(int64_t piece) const {
    return &traffic.depot_->receives[piece % kWindow * ins()];
  }
  Wire::Ticket* Sends(int64_t piece) const {
    return &traffic.depot_->sends[piece % kWindow * outs()];
  }
  /// The piece's memory in the depot: receive buffers first, then send buffers.
  char* Place(int64_t piece, size_t stream) const {
    return traffic.depot_->memory.get() +
           (piece % kWindow * (ins() + outs()) + stream) * piece_bytes;
  }

  absl::Status Post(Fill fill);
  void TakePiece(Take take);
  absl::Status TestAll(absl::Span<Wire::Ticket> tickets, bool& complete);
  absl::Status Advance(Fill fill, Take take, bool& moved);
  int PeerAwaited() const;  // from which, or to which, a message has not passed
};

absl::Status MessageTraffic::Course::Post(Fill fill) {
  for (size_t i = 0; i < ins(); ++i) {
    const int64_t bytes = BytesOf(streams.ins[i].bytes, posted);
    if (bytes == 0) continue;
    RETURN_IF_ERROR(traffic.wire_->Receive(streams.ins[i].peer, traffic.Tag(), Place(posted, i),
                                           bytes, Receives(posted)[i]));
  }
  for (size_t i = 0; i < outs(); ++i) {
    const Streams::Out& out = streams.outs[i];
    const int64_t bytes = BytesOf(out.bytes, posted);
    if (bytes == 0) continue;
    char* place = Place(posted, ins() + i);
    if (out.data != nullptr)
      std::memcpy(place, out.data + posted * piece_bytes, bytes);
    else
      fill(i, posted * piece_bytes, {place, static_cast<size_t>(bytes)});
    RETURN_IF_ERROR(traffic.wire_->Send(out.peer, traffic.Tag(), place, bytes, Sends(posted)[i]));
  }
  ++posted;
  return absl::OkStatus();
}

void MessageTraffic::Course::TakePiece(Take take) {
  for (size_t i = 0; i < ins(); ++i) {
    traffic.depot_->pieces[i] = {Place(taken, i),
                                 static_cast<size_t>(BytesOf(streams.ins[i].bytes, taken))};
  }
  take(taken * piece_bytes, absl::MakeSpan(traffic.depot_->pieces).first(ins()));
  ++taken;
}

absl::Status MessageTraffic::Course::Advance(Fill fill, Take take, bool& moved) {
  if (posted < std::min(pieces, std::min(taken, sent) + kWindow)) {
    RETURN_IF_ERROR(Post(fill));
    moved = true;
  }
  bool complete = false;
  if (taken < posted) {
    RETURN_IF_ERROR(TestAll({Receives(taken), ins()}, complete));
    if (complete) TakePiece(take);
    moved |= complete;
  }
  if (sent < posted) {
    RETURN_IF_ERROR(TestAll({Sends(sent), outs()}, complete));
    sent += complete;
    moved |= complete;
  }
  return absl::OkStatus();
}

absl::Status MessageTraffic::Course::TestAll(absl::Span<Wire::Ticket> tickets, bool& complete) {
  complete = true;
  for (Wire::Ticket& ticket : tickets) {
    bool done = false;
    RETURN_IF_ERROR(traffic.wire_->Test(ticket, done));
    complete &= done;
  }
  return absl::OkStatus();
}

int MessageTraffic::Course::PeerAwaited() const {
  for (size_t i = 0; taken < posted && i < ins(); ++i) {
    if (Receives(taken)[i].handle != 0) return streams.ins[i].peer;
  }
  for (size_t i = 0; sent < posted && i < outs(); ++i) {
    if (Sends(sent)[i].handle != 0) return streams.outs[i].peer;
  }
  return traffic.rank_;  // everything has arrived since
}

MessageTraffic::MessageTraffic(std::shared_ptr<Wire> wire, int tag, int rank, int most,
                               double timeout_s, Board board)
    : wire_(std::move(wire)),
      tag_(tag),
      rank_(rank),
      timeout_ns_(static_cast<int64_t>(timeout_s * 1e9)),
      board_(std::move(board)),
      depot_(std::make_unique<Depot>(most)) {}

MessageTraffic::~MessageTraffic() = default;

int MessageTraffic::Tag() const {
  return tag_ + kTagsOfRank * static_cast<int>(step_ % kTagsOfSteps);
}

absl::Status MessageTraffic::Move(absl::string_view what, const Streams& streams, Fill fill,
                                  Take take) {
  RETURN_IF_ERROR(first_error_);
  RETURN_IF_ERROR(CheckAllHere(board_, rank_, what));
  Course course(*this, streams);
  Dozer dozer(timeout_ns_);
  LongWait wait(board_, rank_, timeout_ns_);
  bool noted = false;
  const auto note = [&](int peer) {
    noted = peer >= 0;
    board_.ShowWait(rank_, peer);
  };
  while (!course.done()) {
    bool moved = false;
    if (absl::Status status = course.Advance(fill, take, moved); !status.ok())
      return Failed(what, WhyBroken(board_, status));
    if (moved) {
      if (noted) note(-1);
      dozer = Dozer(timeout_ns_);
      wait = LongWait(board_, rank_, timeout_ns_);
      continue;
    }
    board_.ReceiveNotices();
    const int peer = course.PeerAwaited();
    if (wait.InVainForAll({}, peer)) return Failed(what, board_.Left());
    if (dozer.Pause()) continue;
    if (noted) {
      const std::string suspect = MayBeDead(peer, board_.Suspect(rank_, peer));
      return Failed(what, absl::DeadlineExceededError(absl::StrCat(
                              WaitedFor(timeout_ns_, peer), suspect, board_.CallsOf(rank_, peer))));
    }
    note(peer);
    dozer = Dozer(timeout_ns_ / kGrace);
  }
  return absl::OkStatus();
}

absl::Status MessageTraffic::Failed(absl::string_view what, const absl::Status& why) {
  depot_.release();  // leaked: the wire may use it until the process ends
  first_error_ = WithContext(why, absl::StrCat(what, " on rank ", rank_));
  board_.Leave(rank_, first_error_);
  return first_error_;
}

}  // namespace coconet
