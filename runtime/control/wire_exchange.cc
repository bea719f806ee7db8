#include "runtime/control/wire_exchange.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {

struct WireExchange::Round {
  std::string sent;
  std::vector<std::string> received;          // by rank; of the size that is expected
  std::vector<Wire::Ticket> sends, receives;  // by rank
};

WireExchange::WireExchange(std::shared_ptr<Wire> wire, int tag, int rank, int size, Board board,
                           const Members& node, Hearsay hearsay, WaitTerms terms)
    : FramedExchange(size),
      wire_(std::move(wire)),
      tag_(tag),
      rank_(rank),
      board_(std::move(board)),
      node_(node),
      hearsay_(std::move(hearsay)),
      terms_(terms) {}

absl::StatusOr<std::vector<std::string>> WireExchange::Gather(absl::string_view mine,
                                                              const std::vector<int64_t>& sizes) {
  RETURN_IF_ERROR(first_error_);
  RETURN_IF_ERROR(CheckAllHere(board_, rank_, "exchange"));
  auto round = std::make_unique<Round>();
  round->sent = std::string(mine);
  for (const int64_t size : sizes) round->received.emplace_back(size, '\0');
  absl::Status status = Trade(*round);
  if (status.ok()) {
    round->received[rank_] = std::move(round->sent);
    return std::move(round->received);
  }
  round.release();  // leaked: the wire may write to it until the process ends
  if (!absl::IsDeadlineExceeded(status)) status = WhyBroken(board_, hearsay_, status);
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
    hearsay_.listen();
    return wait.InVainForAll(node_, awaited);
  };
  const WaitEnd end = WaitUntil(terms_, ready, in_vain);
  if (end == WaitEnd::kReady) return status;
  if (end == WaitEnd::kInVain) return board_.Left();
  return absl::DeadlineExceededError(absl::StrCat(WaitedFor(terms_.timeout_ns, awaited),
                                                  MayBeDead(awaited, awaited),
                                                  board_.CallsOf(rank_, awaited)));
}

}  // namespace coconet
