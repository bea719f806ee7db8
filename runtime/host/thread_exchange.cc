#include "runtime/host/thread_exchange.h"

#include <cstring>

#include "coconet/base/status.h"

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
    RETURN_IF_ERROR(AwaitPeer(board_, terms_, rank_, peer, theirs.round, round, "exchange"));
    all.push_back(theirs.letter[round % 2]);
  }
  return all;
}

absl::StatusOr<std::vector<std::shared_ptr<Region>>> ThreadSharing::Share(int64_t bytes) {
  absl::StatusOr<std::shared_ptr<Region>> own = Region::Map(bytes, -1);
  const absl::Status populated = own.ok() ? (*own)->Populate() : own.status();
  RETURN_IF_ERROR(exchange_.Agree(populated));
  const std::shared_ptr<Region>* mine = &*own;
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   exchange_.AllGather({reinterpret_cast<const char*>(&mine), sizeof mine}));
  std::vector<std::shared_ptr<Region>> regions(all.size());
  for (int i = 0; i < group_.size; ++i) {
    const std::string& theirs = all[group_.Rank(i)];
    const std::shared_ptr<Region>* region;
    CC_CHECK(theirs.size() == sizeof region);
    std::memcpy(&region, theirs.data(), sizeof region);
    regions[group_.Rank(i)] = *region;
  }
  RETURN_IF_ERROR(exchange_.Barrier());  // until then peers read *mine
  return regions;
}

}  // namespace coconet
