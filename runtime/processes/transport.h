#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/control/board.h"
#include "runtime/control/rank_place.h"
#include "runtime/mesh.h"
#include "runtime/node/memory.h"
#include "runtime/node/wait.h"
#include "runtime/processes/collectives/peer_traffic.h"
#include "runtime/rank.h"

namespace coconet {

/// How the ranks of a world, which an external launcher started as processes or threads, reach each
/// other before they share memory, and where they share none. One object per rank.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Topology::library.
  virtual std::string library() const = 0;
  virtual LibraryThreads threads() const { return LibraryThreads::kAny; }

  /// The exchange by which ranks meet, whose waits have the deadline.
  virtual std::unique_ptr<Exchange> Meet(const WaitTerms& terms) = 0;
  /// Collective. A text that all ranks of this machine, and only these, have in common.
  virtual absl::StatusOr<std::string> Machine() = 0;
  /// Says where all ranks are (Place::machines).
  virtual void SetMachines(const std::vector<int>& /*machines*/) {}
  /// Whether ranks that are all threads of one process use a ThreadWorld instead of this transport
  /// once they have met.
  virtual bool AdmitsThreadWorld() const { return false; }
  /// The ranks that have one board.
  virtual Members BoardGroup(const Mesh& mesh) const = 0;

  /// Bytes that the ranks of a board group share for Settle.
  virtual int64_t SharedBytes(const Mesh& /*mesh*/) const { return 0; }

  /// The site that is known once the ranks have met.
  struct Site {
    const Mesh& mesh;
    WaitTerms terms;  // for peers on this machine
    double timeout_s;
    Board board;
    /// The memory of each rank of the board group, by world rank; SharedBytes of it are the
    /// transport's, from `offset`, a multiple of a page.
    const std::vector<std::shared_ptr<Region>>& regions;
    int64_t offset;
  };
  /// The connections that the ranks use from then on.
  struct Settled {
    std::unique_ptr<Exchange> exchange;
    Board board;  // tells ranks that do not read it, too
  };
  /// Collective.
  virtual absl::StatusOr<Settled> Settle(std::unique_ptr<Exchange> met, const Site& site) = 0;
  /// After Settle. Messages of this rank and its peers in `group`, on a lane.
  virtual std::unique_ptr<PeerTraffic> MakeTraffic(int lane, Group group, int most) = 0;

  /// The rank has left the world; `failed`: because of an error, so that peers may be missing. Else
  /// collective.
  virtual void End(bool failed) = 0;
};

}  // namespace coconet
