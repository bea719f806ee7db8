#include "runtime/control/wire_exchange.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {

struct WireExchange::Round {
  std::string sent;
  std::vector<std::string> sizes, letters;    // received, by rank
  std::vector<Wire::Ticket> sends, receives;  // by rank
};

WireExchange::WireExchange(std::shared_ptr<Wire> wire, int tag, int rank, int size, Board board,
                           const Members& node, Hearsay hearsay, WaitTerms terms)
    : wire_(std::move(wire)),
      tag_(tag),
      rank_(rank),
      size_(size),
      board_(std::move(board)),
      node_(node),
      hearsay_(std::move(hearsay)),
      terms_(terms) {}

absl::StatusOr<std::vector<std::string>> WireExchange::AllGather(absl::string_view mine) {
  RETURN_IF_ERROR(first_error_);
  RETURN_IF_ERROR(CheckAllHere(board_, rank_, "exchange"));
  auto round = std::make_unique<Round>();
  absl::StatusOr<std::vector<std::string>> all = Gather(mine, *round);
  if (all.ok()) return all;
  round.release();  // leaked: the wire may write to it until the process ends
  const bool is_late = absl::IsDeadlineExceeded(all.status());
  first_error_ = WithContext(is_late ? all.status() : WhyBroken(board_, hearsay_, all.status()),
                             absl::StrCat("exchange on rank ", rank_));
  board_.Leave(rank_, first_error_);
  return first_error_;
}

absl::StatusOr<std::vector<std::string>> WireExchange::Gather(absl::string_view mine,
                                                              Round& round) {
  const auto size = static_cast<uint64_t>(mine.size());
  round.sizes.assign(size_, std::string(sizeof size, '\0'));
  RETURN_IF_ERROR(Trade({reinterpret_cast<const char*>(&size), sizeof size}, round.sizes, round));
  bool any = false;
  round.letters.resize(size_);
  for (int peer = 0; peer < size_; ++peer) {
    uint64_t theirs = size;
    if (peer != rank_) std::memcpy(&theirs, round.sizes[peer].data(), sizeof theirs);
    round.letters[peer].resize(theirs);
    any |= theirs > 0;
  }
  if (any) RETURN_IF_ERROR(Trade(mine, round.letters, round));
  round.letters[rank_] = std::string(mine);
  return std::move(round.letters);
}

absl::Status WireExchange::Trade(absl::string_view mine, std::vector<std::string>& theirs,
                                 Round& round) {
  round.sent = std::string(mine);
  round.sends.assign(size_, {});
  round.receives.assign(size_, {});
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    if (!theirs[peer].empty()) {
      RETURN_IF_ERROR(wire_->Receive(peer, tag_, theirs[peer].data(),
                                     static_cast<int64_t>(theirs[peer].size()),
                                     round.receives[peer]));
    }
    if (!mine.empty()) {
      RETURN_IF_ERROR(wire_->Send(peer, tag_, round.sent.data(), static_cast<int64_t>(mine.size()),
                                  round.sends[peer]));
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
      for (int peer = 0; peer < size_ && status.ok(); ++peer) {
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
