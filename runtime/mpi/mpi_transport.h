#pragma once

#include <mpi.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/control/wire_notices.h"
#include "runtime/processes/transport.h"

namespace coconet {

/// The ranks of an MPI communicator.
class MpiTransport final : public Transport {
 public:
  /// Collective, and blocks until all ranks have come. Duplicates `comm`, an intracommunicator.
  static absl::StatusOr<std::unique_ptr<Transport>> Over(MPI_Comm comm);

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string library() const override;
  /// As MPI was initialised.
  LibraryThreads threads() const override;
  std::unique_ptr<Exchange> Meet(const WaitTerms& terms) override;
  absl::StatusOr<std::string> Machine() override;
  Members BoardGroup(const Mesh& mesh) const override { return SharingMemory(mesh, rank_); }
  absl::StatusOr<Settled> Settle(std::unique_ptr<Exchange> met, const Site& site) override;
  std::unique_ptr<PeerTraffic> MakeTraffic(int lane, Group group, int most) override;
  /// Leaves the communicators as they are after a failure, since freeing them is collective.
  void End(bool failed) override;

 private:
  MpiTransport() = default;
  absl::Status Duplicate(MPI_Comm comm);
  /// Between all ranks, of which `node` read `board`.
  std::unique_ptr<Exchange> MakeExchange(const Board& board, const Members& node,
                                         const WaitTerms& terms) const;

  /// One communicator per use, so that messages of different uses never match.
  MPI_Comm exchange_ = MPI_COMM_NULL;  // of exchange and notices
  MPI_Comm traffic_ = MPI_COMM_NULL;   // of messages of all libraries; each library has a tag
  int rank_ = 0;
  int size_ = 1;
  double timeout_s_ = 0;
  std::shared_ptr<Region> meeting_;  // of this rank's board while the ranks have none in common
  std::optional<Board> board_;
  std::shared_ptr<WireNotices> notices_;
};

}  // namespace coconet
