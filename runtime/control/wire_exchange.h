#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/control/board.h"
#include "runtime/control/framed_exchange.h"
#include "runtime/control/wire.h"
#include "runtime/mesh.h"
#include "runtime/node/wait.h"

namespace coconet {

/// Exchange by messages from each rank to every other.
class WireExchange final : public FramedExchange {
 public:
  /// `tag` has no other user. `node`: the ranks that read `board`.
  WireExchange(std::shared_ptr<Wire> wire, int tag, int rank, int size, Board board,
               const Members& node, WaitTerms terms);

 private:
  /// What a wire accesses during a round.
  struct Round;
  absl::StatusOr<std::vector<std::string>> Gather(absl::string_view mine,
                                                  const std::vector<int64_t>& sizes) override;
  absl::Status Trade(Round& round);
  absl::Status Await(Round& round);
  /// Whether all ranks of the world map the board and have come to this gather.
  bool AllHaveCome() const;

  std::shared_ptr<Wire> wire_;
  int tag_;
  int rank_;
  Board board_;
  Members node_;
  WaitTerms terms_;
  absl::Status first_error_;
};

}  // namespace coconet
