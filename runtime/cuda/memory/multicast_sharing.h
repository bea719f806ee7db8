#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/driver/device.h"
#include "runtime/cuda/memory/allocation.h"
#include "runtime/cuda/memory/handle_passing.h"
#include "runtime/mesh.h"
#include "runtime/rank.h"

namespace coconet {

/// Memory that ranks with a GPU each share by the driver's virtual memory management, with a
/// multicast address on each of them: the node's first rank makes a multicast object, and all ranks
/// bind their memory to it.
class MulticastSharing {
 public:
  /// `sharing`: the ranks that share memory with this one; `node`: those of them on its node.
  MulticastSharing(Exchange& exchange, int rank, const Members& sharing, const Members& node,
                   std::shared_ptr<HandlePassing> passing)
      : exchange_(exchange),
        rank_(rank),
        sharing_(sharing),
        node_(node),
        passing_(std::move(passing)) {}

  struct Shared {
    std::vector<std::shared_ptr<Allocation>> all;  // as GpuSharing::Share returns
    std::shared_ptr<Allocation> multicast;
    std::string note;  // why there is no such memory, on any rank; "": there is
  };
  /// Collective; `device` must be current. Requires an earlier collective call in the world and the
  /// same `bytes` on all ranks. If a driver call fails on one rank, no rank gets memory and the
  /// note says why; returns an error only if the exchange fails.
  absl::StatusOr<Shared> Share(const std::shared_ptr<Device>& device, int64_t bytes);

 private:
  struct Work;
  absl::Status Create(Work& work) const;
  absl::Status Map(const Work& work, Shared& shared) const;

  Exchange& exchange_;
  int rank_;
  Members sharing_, node_;
  std::shared_ptr<HandlePassing> passing_;
};

}  // namespace coconet
