#ifndef COCONET_RUNTIME_CUDA_MEMORY_MULTICAST_SHARING_H_
#define COCONET_RUNTIME_CUDA_MEMORY_MULTICAST_SHARING_H_

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

/// Memory that ranks with a GPU each share by the driver's virtual memory management, and that has,
/// on each of them, an address of the memory of all ranks of the node at once: of a multicast
/// object, which the first of them makes, and all bind their memory to.
class MulticastSharing {
 public:
  /// `sharing`: who reaches each other's memory; `node`: this rank's, among them.
  MulticastSharing(Exchange& exchange, int rank, const Members& sharing, const Members& node,
                   std::shared_ptr<HandlePassing> passing)
      : exchange_(exchange),
        rank_(rank),
        sharing_(sharing),
        node_(node),
        passing_(std::move(passing)) {}

  struct Shared {
    std::vector<std::shared_ptr<Allocation>> all;  // as of GpuSharing::Share
    std::shared_ptr<Allocation> multicast;
    std::string note;  // why there is none of it, on any rank; "": there is
  };
  /// Collective, after another call that was; the ranks agree on `bytes` already. Where a call of
  /// the driver fails on one rank, none has anything; an error is one of the exchange alone.
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

#endif  // COCONET_RUNTIME_CUDA_MEMORY_MULTICAST_SHARING_H_
