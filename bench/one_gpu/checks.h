#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "autotune/search/choice.h"
#include "runtime/cuda/cuda_rank.h"
#include "runtime/nccl/nccl_api.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// A machine with one GPU: the real driver and NCCL, or those of tests.
struct OneGpu {
  CudaLibraries libraries;              // without NCCL
  absl::StatusOr<const NcclApi*> nccl;  // or why there is none
  bool fake = false;
};

// What one GPU suffices for. Each returns what it found, in words, or an error. Each is called in a
// process of its own, which has not used the driver yet: some fork.

/// Two processes that reach each other's memory by the driver's IPC handles.
absl::StatusOr<std::string> CheckIpc(const OneGpu& gpu);
/// Two processes that map each other's memory by file handles.
absl::StatusOr<std::string> CheckFileHandles(const OneGpu& gpu);
/// NCCL's collectives between two processes of one GPU, and what is left when one of them leaves.
absl::StatusOr<std::string> CheckNcclOfTwo(const OneGpu& gpu);
/// A communicator of one rank: init, a sum, abort.
absl::StatusOr<std::string> CheckNcclOfOne(const OneGpu& gpu);
/// What the driver says to a multicast object of one device; passes whatever it says.
absl::StatusOr<std::string> CheckMulticastOfOne(const OneGpu& gpu);
/// A kernel that reads an address without memory ends its rank with DataLoss.
absl::StatusOr<std::string> CheckFault(const OneGpu& gpu);
/// A rank that waits for a late one gives up at its deadline.
absl::StatusOr<std::string> CheckLateRank(const OneGpu& gpu);

/// A variant of a small program, bound on a rank to memory of its own.
struct BoundVariant {
  std::vector<std::unique_ptr<Memory>> memory;
  std::unique_ptr<Module> module;
  std::unique_ptr<BoundPlan> plan;  // destroyed before both
};
/// Collective. Adam over a thousand elements. `replaced` may put other memory in a buffer's place;
/// `timeout_s` as of Rank::Bind.
absl::StatusOr<BoundVariant> BindAdam(
    Rank& rank, const Choice& choice, double timeout_s,
    const std::function<void(std::vector<std::unique_ptr<Memory>>& memory)>& replaced = nullptr);

}  // namespace coconet::bench
