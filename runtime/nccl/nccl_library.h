#pragma once

#include <array>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/driver/stream_library.h"
#include "runtime/mesh.h"
#include "runtime/nccl/nccl_api.h"
#include "runtime/nccl/nccl_link.h"
#include "runtime/plan.h"

namespace coconet {

/// The collectives of one lane, by NCCL. NCCL rounds sums of f16 and bf16 after each addition,
/// while plans require one rounding: it takes such sums of two ranks only.
class NcclLibrary final : public StreamLibrary {
 public:
  /// The links of a rank; null for groups of one rank.
  struct Links {
    std::array<std::shared_ptr<NcclLink>, kGroups> of_group;
    std::shared_ptr<NcclLink> column;  // over pipeline stages, for sends
  };
  NcclLibrary(const NcclApi& nccl, const DriverApi& driver, Links links)
      : nccl_(nccl), driver_(driver), links_(std::move(links)) {}

  bool Takes(const CollectiveStep& step) const override;
  int multiprocessors() const override { return NcclLink::kMultiprocessors; }
  absl::Status Enqueue(const CollectiveStep& step, const void* in, void* out, CUstream stream,
                       const std::function<bool()>& stopped) override;
  absl::Status Check() override;
  void Abort(const absl::Status& why) override;

 private:
  struct Operands {
    const char* in;
    char* out;
    cudaStream_t stream;
  };
  NcclLink* LinkOf(const CollectiveStep& step) const;
  absl::Status Begin(const CollectiveStep& step, const NcclLink& link, const Operands& at) const;
  /// The part of `step` that needs no peer: copies of a group of one rank, and zeros.
  absl::Status EnqueueOwn(const CollectiveStep& step, const NcclLink* link,
                          const Operands& at) const;

  const NcclApi& nccl_;
  const DriverApi& driver_;
  Links links_;
  absl::Status aborted_;
};

/// OpenNcclLibraries over a given NCCL, which must outlive the result, or the reason why
/// there is none.
absl::StatusOr<StreamLibraries> OpenNcclLibrariesOver(const absl::StatusOr<const NcclApi*>& nccl,
                                                      const StreamLibraryTerms& terms);

}  // namespace coconet
