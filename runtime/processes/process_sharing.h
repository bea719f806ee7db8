#pragma once

#include <memory>
#include <vector>

#include "runtime/mesh.h"
#include "runtime/node/memory.h"
#include "runtime/rank.h"

namespace coconet {

/// Shares memory between processes of one node: each makes a memfd, its peers open it as
/// /proc/<pid>/fd/<fd>, and all map it and close it. The memfd has no name in any file system, so
/// nothing is left of it when its processes end in any way. (Passing descriptors over a socket
/// would need a name, a listener and a check of who connects; here the kernel checks that both
/// processes belong to one user.) Ranks that are threads of one process take each other's mapping.
class ProcessSharing final : public Sharing {
 public:
  /// `group`: the ranks that share memory with this one. Ranks of other groups also take part.
  ProcessSharing(Exchange& exchange, int rank, const Members& group)
      : exchange_(exchange), rank_(rank), group_(group) {}

  absl::StatusOr<std::vector<std::shared_ptr<Region>>> Share(int64_t bytes) override {
    return Share(bytes, bytes);
  }
  /// The same, but owners have populated only the first `present` bytes, and reserved no more. Each
  /// owner populates the rest of its own before it writes there.
  absl::StatusOr<std::vector<std::shared_ptr<Region>>> Share(int64_t bytes, int64_t present);

 private:
  Exchange& exchange_;
  int rank_;
  Members group_;
};

}  // namespace coconet
