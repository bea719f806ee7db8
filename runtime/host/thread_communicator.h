#ifndef COCONET_RUNTIME_HOST_THREAD_COMMUNICATOR_H_
#define COCONET_RUNTIME_HOST_THREAD_COMMUNICATOR_H_

#include <atomic>
#include <memory>
#include <vector>

#include "runtime/host/board.h"
#include "runtime/host/wait.h"
#include "runtime/rank.h"

namespace coconet {

/// What each rank shows its peers during a collective.
struct Desks {
  struct alignas(64) Desk {
    std::atomic<unsigned> ready;  // `in` and `out` are those of this call
    const void* in;
    void* out;
    alignas(64) std::atomic<unsigned> done;  // this rank touches no memory of its peers any more
  };
  explicit Desks(int ranks) : of(ranks) {}
  std::vector<Desk> of;  // by rank
};

/// The plain library tier between the threads of one process: each rank reduces its part of the elements, in the order
/// of ranks, straight from and to its peers' buffers.
class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(int rank, std::shared_ptr<Desks> desks, Board board, WaitTerms terms);

  absl::string_view name() const override { return "thread"; }
  absl::Status AllReduce(const void* in, void* out, int64_t count, DType dtype, ReduceKind kind) override;
  absl::Status ReduceScatter(const void* in, void* out, int64_t count, DType dtype, ReduceKind kind) override;
  absl::Status AllGather(const void* in, void* out, int64_t count, DType dtype) override;

 private:
  absl::Status Begin(const void* in, void* out, absl::string_view what);
  absl::Status End(absl::string_view what);
  absl::Status AwaitAll(std::atomic<unsigned> Desks::Desk::*flag, absl::string_view what);
  /// Ends a call that failed: returns when no peer touches this rank's buffers any more.
  absl::Status Retreat(const absl::Status& why);

  int rank_;
  int size_;
  std::shared_ptr<Desks> desks_;
  Board board_;
  WaitTerms terms_;
  unsigned call_ = 0;
  std::vector<const void*> ins_;  // by rank, of the call under way
  std::vector<void*> outs_;
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_HOST_THREAD_COMMUNICATOR_H_
