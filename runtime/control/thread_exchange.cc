#include "runtime/control/thread_exchange.h"

namespace coconet {

absl::StatusOr<std::vector<std::string>> ThreadExchange::AllGather(absl::string_view mine) {
  RETURN_IF_ERROR(CheckAllHere(board_, rank_, "exchange"));
  const unsigned round = ++round_;
  Mailboxes::Mailbox& own = mailboxes_->of[rank_];
  own.letter[round % 2] = std::string(mine);
  own.round.store(round, std::memory_order_release);
  std::vector<std::string> all;
  for (int peer = 0; peer < board_.ranks(); ++peer) {
    const Mailboxes::Mailbox& theirs = mailboxes_->of[peer];
    RETURN_IF_ERROR(AwaitPeer(board_, terms_, rank_, peer, theirs.round, round, "exchange",
                              /*is_behind_counts=*/true));
    all.push_back(theirs.letter[round % 2]);
  }
  return all;
}

absl::StatusOr<std::vector<std::shared_ptr<Region>>> ThreadSharing::Share(int64_t bytes) {
  absl::StatusOr<std::shared_ptr<Region>> own = Region::Map(bytes, -1);
  if (absl::Status populated = own.ok() ? (*own)->Populate() : own.status(); !populated.ok())
    own = populated;
  return HandAround(exchange_, group_, own);
}

}  // namespace coconet
