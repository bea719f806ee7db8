#pragma once

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "coconet/base/status.h"
#include "runtime/control/board.h"
#include "runtime/node/memory.h"
#include "runtime/node/wait.h"
#include "runtime/rank.h"

namespace coconet {

/// One mailbox per thread rank, which its owner writes and all ranks read.
struct Mailboxes {
  struct alignas(64) Mailbox {
    std::atomic<unsigned> round;
    /// The bytes of odd and even rounds: a writer is at most one round ahead of a reader.
    std::string letter[2];
  };
  explicit Mailboxes(int ranks) : of(ranks) {}
  std::vector<Mailbox> of;  // by rank
};

/// Exchange between the threads of one process.
class ThreadExchange final : public Exchange {
 public:
  ThreadExchange(int rank, std::shared_ptr<Mailboxes> mailboxes, Board board, WaitTerms terms)
      : rank_(rank), mailboxes_(std::move(mailboxes)), board_(board), terms_(terms) {}

  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view mine) override;

 private:
  int rank_;
  std::shared_ptr<Mailboxes> mailboxes_;
  Board board_;
  WaitTerms terms_;
  unsigned round_ = 0;
};

/// Collective, between threads of one process. Returns by world rank what each rank of `group`
/// passes, null for the others; on failure the first error on every rank.
template <class T>
absl::StatusOr<std::vector<std::shared_ptr<T>>> HandAround(
    Exchange& exchange, const Members& group, const absl::StatusOr<std::shared_ptr<T>>& mine) {
  RETURN_IF_ERROR(exchange.Agree(mine.status()));
  const std::shared_ptr<T>* own = &*mine;
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   exchange.AllGather({reinterpret_cast<const char*>(&own), sizeof own}));
  std::vector<std::shared_ptr<T>> of(all.size());
  for (int i = 0; i < group.size; ++i) {
    const std::string& letter = all[group.Rank(i)];
    const std::shared_ptr<T>* theirs;
    CC_CHECK(letter.size() == sizeof theirs);
    std::memcpy(&theirs, letter.data(), sizeof theirs);
    of[group.Rank(i)] = *theirs;
  }
  RETURN_IF_ERROR(exchange.Barrier());  // peers read *own until then
  return of;
}

/// Threads address each other's memory directly, so only the regions are handed around, within each
/// group that shares memory.
class ThreadSharing final : public Sharing {
 public:
  ThreadSharing(Exchange& exchange, const Members& group) : exchange_(exchange), group_(group) {}
  absl::StatusOr<std::vector<std::shared_ptr<Region>>> Share(int64_t bytes) override;

 private:
  Exchange& exchange_;
  Members group_;
};

}  // namespace coconet
