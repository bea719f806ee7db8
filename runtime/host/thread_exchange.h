#ifndef COCONET_RUNTIME_HOST_THREAD_EXCHANGE_H_
#define COCONET_RUNTIME_HOST_THREAD_EXCHANGE_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "runtime/host/board.h"
#include "runtime/host/memory.h"
#include "runtime/host/wait.h"
#include "runtime/rank.h"

namespace coconet {

/// What the thread ranks of a world write for each other, in one slot a rank.
struct Mailboxes {
  struct alignas(64) Mailbox {
    std::atomic<unsigned> round;
    std::string letter[2];  // of odd and even rounds: a writer is at most one round ahead of a reader
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

/// Threads see each other's memory as it is; the regions only need to be handed around, between those that share memory.
class ThreadSharing final : public Sharing {
 public:
  ThreadSharing(Exchange& exchange, const Members& group) : exchange_(exchange), group_(group) {}
  absl::StatusOr<std::vector<std::shared_ptr<Region>>> Share(int64_t bytes) override;

 private:
  Exchange& exchange_;
  Members group_;
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_HOST_THREAD_EXCHANGE_H_
