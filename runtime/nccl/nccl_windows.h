#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/driver/stream_library.h"
#include "runtime/mesh.h"
#include "runtime/nccl/nccl_api.h"
#include "runtime/nccl/nccl_link.h"

namespace coconet {

/// Memory that NCCL allocates and maps for all ranks of a communicator of its own, among ranks that
/// share memory. Since 2.29 NCCL has a function for peers' addresses; 2.28.9 has them only in an
/// internal structure for kernels, which is read here. Other versions are refused.
class NcclWindows final : public MemoryWindows {
 public:
  NcclWindows(const NcclApi& nccl, const StreamLibraryTerms& terms, const Members& group,
              std::shared_ptr<NcclLink> link)
      : nccl_(nccl),
        driver_(terms.driver),
        exchange_(terms.exchange),
        rank_(terms.rank),
        ranks_(terms.mesh.size()),
        group_(group),
        link_(std::move(link)) {}

  absl::StatusOr<MemoryWindow> Open(int64_t bytes) override;

 private:
  /// This rank's memory and NCCL's window over all ranks; NCCL writes `window` when all have come.
  struct Part {
    void* memory = nullptr;
    NcclWindow window = nullptr;
  };
  absl::Status Register(Part& part, int64_t bytes);
  absl::StatusOr<std::vector<void*>> AddressesOf(const Part& part) const;
  absl::StatusOr<void*> AddressOf(const Part& part, int peer) const;
  void Close(std::list<Part>::iterator part);

  const NcclApi& nccl_;
  const DriverApi& driver_;
  Exchange& exchange_;
  int rank_, ranks_;
  Members group_;
  std::list<Part> parts_;  // outlives the link, which may still write to an aborted part
  std::shared_ptr<NcclLink> link_;
};

/// OpenMemoryWindows by NCCL. Unimplemented for versions whose window addresses are unknown.
absl::StatusOr<std::unique_ptr<MemoryWindows>> OpenNcclWindows(const NcclApi& nccl,
                                                               const StreamLibraryTerms& terms);

}  // namespace coconet
