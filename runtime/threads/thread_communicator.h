#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "runtime/control/board.h"
#include "runtime/mesh.h"
#include "runtime/node/wait.h"
#include "runtime/rank.h"

namespace coconet {

/// What each rank publishes for its peers during a collective or a send.
struct Desks {
  struct alignas(64) Desk {
    std::atomic<unsigned> ready;  // number of the call that `in` and `out` belong to
    const void* in;
    void* out;
    uint64_t step;  // Communicator::Announce
    alignas(
        64) std::atomic<unsigned> done;  // last call in which this rank is done with peers' memory
  };
  explicit Desks(int ranks) : of_group(ranks), of_column(ranks) {}
  std::vector<Desk> of_group;   // by world rank, for collectives of a group
  std::vector<Desk> of_column;  // by world rank, for sends between pipeline stages
};

/// Library collectives between the threads of one process: each rank reduces its part of the
/// elements, in rank order, directly from and to its peers' buffers.
class ThreadCommunicator final : public Communicator {
 public:
  /// `desks`: shared by all ranks; one per kind of group and lane.
  ThreadCommunicator(const Mesh& mesh, Group group, int rank, std::shared_ptr<Desks> desks,
                     Board board, WaitTerms terms);

  absl::string_view name() const override { return "thread"; }
  void Announce(uint64_t step) override { step_ = step; }
  absl::Status Run(const CollectiveStep& step, const void* in, void* out) override;
  absl::Status AllToAlls(absl::Span<const AllToAllCall> calls) override;

 private:
  /// The desks of ranks that communicate, and the number of their current call.
  struct Table {
    Members members;
    std::vector<Desks::Desk>* desks;
    unsigned call = 0;
    Desks::Desk& Of(int index) const { return (*desks)[members.Rank(index)]; }
  };
  absl::Status Send(const CollectiveStep& step, const void* in, void* out);
  /// This rank's part of `step`, between Begin and End.
  void Compute(const CollectiveStep& step, void* out);
  /// Opens a collective of the group and waits for all its ranks.
  absl::Status Begin(const void* in, void* out, absl::string_view what);
  absl::Status End(absl::string_view what);
  absl::Status Open(Table& table, const void* in, void* out, absl::string_view what);
  absl::Status Await(const Table& table, int index, std::atomic<unsigned> Desks::Desk::* flag,
                     absl::string_view what);
  absl::Status AwaitAll(std::atomic<unsigned> Desks::Desk::* flag, absl::string_view what);
  /// Aborted if rank `index` is in another step.
  absl::Status CheckStep(const Table& table, int index);
  /// Ends a failed call: returns once no peer accesses this rank's buffers.
  absl::Status Retreat(const Table& table, const absl::Status& why);

  int rank_;   // world rank
  int size_;   // of the group
  int index_;  // in the group
  std::shared_ptr<Desks> desks_;
  Table group_;
  Table column_;
  uint64_t step_ = 0;
  Board board_;
  WaitTerms terms_;
  std::vector<const void*> ins_;  // operands of the current call, by index in the group
  std::vector<void*> outs_;
};

}  // namespace coconet
