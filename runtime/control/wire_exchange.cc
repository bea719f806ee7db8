#include "runtime/control/wire_exchange.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {

namespace {

/// For messages of ranks that have all sent theirs, one of which may have died since.
WaitTerms LastCall(const WaitTerms& terms) {
  return {.spins = 0, .timeout_ns = std::min(terms.timeout_ns / kGrace, int64_t{1000000000})};
}

}  // namespace

struct WireExchange::Round {
  std::string sent;
  std::vector<std::string> received;          // by rank; of the size that is expected
  std::vector<Wire::Ticket> sends, receives;  // by rank
};

WireExchange::WireExchange(std::shared_ptr<Wire> wire, int tag, int rank, int size, Board board,
                           const Members& node, WaitTerms terms)
    : FramedExchange(size),
      wire_(std::move(wire)),
      tag_(tag),
      rank_(rank),
      board_(std::move(board)),
      node_(node),
      terms_(terms) {}

absl::StatusOr<std::vector<std::string>> WireExchange::Gather(absl::string_view mine,
                                                              const std::vector<int64_t>& sizes) {
  RETURN_IF_ERROR(first_error_);
  RETURN_IF_ERROR(CheckAllHere(board_, rank_, "exchange"));
  board_.arrivals(rank_).fetch_add(1, std::memory_order_release);
  auto round = std::make_unique<Round>();
  round->sent = std::string(mine);
  for (const int64_t size : sizes) round->received.emplace_back(size, '\0');
  absl::Status status = Trade(*round);
  if (status.ok()) {
    round->received[rank_] = std::move(round->sent);
    return std::move(round->received);
  }
  round.release();  // leaked: the wire may write to it until the process ends
  if (!absl::IsDeadlineExceeded(status)) status = WhyBroken(board_, status);
  first_error_ = WithContext(status, absl::StrCat("exchange on rank ", rank_));
  board_.Leave(rank_, first_error_);
  return first_error_;
}

absl::Status WireExchange::Trade(Round& round) {
  round.sends.resize(ranks());
  round.receives.resize(ranks());
  for (int peer = 0; peer < ranks(); ++peer) {
    std::string& theirs = round.received[peer];
    if (peer != rank_ && !theirs.empty()) {
      RETURN_IF_ERROR(wire_->Receive(peer, tag_, theirs.data(), static_cast<int64_t>(theirs.size()),
                                     round.receives[peer]));
    }
    if (peer != rank_ && !round.sent.empty()) {
      RETURN_IF_ERROR(wire_->Send(peer, tag_, round.sent.data(),
                                  static_cast<int64_t>(round.sent.size()), round.sends[peer]));
    }
  }
  return Await(round);
}

absl::Status WireExchange::Await(Round& round) {
  absl::Status status;
  int awaited = -1;
  const auto ready = [&] {
    awaited = -1;
    for (std::vector<Wire::Ticket>* tickets : {&round.receives, &round.sends}) {
      for (int peer = 0; peer < ranks() && status.ok(); ++peer) {
        bool done = false;
        status = wire_->Test((*tickets)[peer], done);
        if (!done && awaited < 0) awaited = peer;
      }
    }
    return awaited < 0 || !status.ok();
  };
  LongWait wait(board_, rank_, terms_.timeout_ns);
  const auto in_vain = [&] {
    board_.ReceiveNotices();
    return wait.InVainForAll(node_, awaited);
  };
  WaitEnd end = WaitUntil(terms_, ready, in_vain);
  // A rank may leave because of what this exchange told it, before its message comes here.
  if (end == WaitEnd::kInVain && AllHaveCome())
    end = WaitUntil(LastCall(terms_), ready, [] { return false; });
  if (end == WaitEnd::kReady) return status;
  if (!board_.Left().ok()) return board_.Left();
  return absl::DeadlineExceededError(absl::StrCat(WaitedFor(terms_.timeout_ns, awaited),
                                                  MayBeDead(awaited, awaited),
                                                  board_.CallsOf(rank_, awaited)));
}

bool WireExchange::AllHaveCome() const {
  if (node_.size != ranks()) return false;
  const unsigned mine = board_.arrivals(rank_).load(std::memory_order_acquire);
  for (int peer = 0; peer < ranks(); ++peer) {
    if (!Reached(board_.arrivals(peer).load(std::memory_order_acquire), mine)) return false;
  }
  return true;
}

}  // namespace coconet
