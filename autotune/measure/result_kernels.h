#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "autotune/measure/tensors.h"
#include "coconet/base/dtype.h"
#include "runtime/rank.h"

namespace coconet {

/// Compares, samples and digests long results in the memory of a rank's GPU, by one kernel, so that
/// they need not be copied to the host. Calls other than Make are not collective, and must not run
/// while a plan uses the memory. Not thread-safe.
class ResultKernels {
 public:
  /// Elements that Differing reports together.
  static constexpr int64_t kBlock = 4096;

  /// The kernel's text, in the dialect of the rank's compiler.
  static std::string Source();
  /// Collective. `module` is compiled from Source.
  static absl::StatusOr<std::unique_ptr<ResultKernels>> Make(Rank& rank,
                                                             std::unique_ptr<Module> module);

  /// A digest of the first `elements` elements. Different elements have different digests, except
  /// with a probability of 2^-64. All NaNs are equal unless `to_the_bit`.
  absl::StatusOr<uint64_t> Digest(const Memory& memory, DType dtype, int64_t elements,
                                  bool to_the_bit);
  /// Copies the elements at these places of the storage to the host, one after the other.
  absl::Status Gather(const Memory& memory, DType dtype, absl::Span<const int64_t> places,
                      char* to);
  /// The elements at these positions of a share, one after the other.
  absl::StatusOr<std::vector<Number>> Values(const Memory& memory, DType dtype,
                                             const StorageOfShare& share,
                                             absl::Span<const int64_t> positions);
  /// Copies a share, by position, to memory beside it. ResourceExhausted if it does not fit in an
  /// eighth of the rank's memory, together with what was kept before.
  absl::StatusOr<std::unique_ptr<Memory>> Keep(const Memory& memory, DType dtype,
                                               const StorageOfShare& share);
  /// The blocks of kBlock positions, ascending, with an element that differs in bits from the kept
  /// share's, and by more than `limit` (in f64; integers: by any amount).
  absl::StatusOr<std::vector<int64_t>> Differing(const Memory& memory, const Memory& kept,
                                                 DType dtype, const StorageOfShare& share,
                                                 double limit);

 private:
  ResultKernels(Rank& rank, std::unique_ptr<Module> module)
      : rank_(rank), module_(std::move(module)) {}
  absl::Status Bind();

  Rank& rank_;
  std::unique_ptr<Module> module_;
  int64_t threads_ = 1;     // of all blocks
  int64_t kept_bytes_ = 0;  // that Keep has given
  Plan plan_;
  std::unique_ptr<Memory> work_, places_, found_;
  std::unique_ptr<BoundPlan> bound_;  // destroyed before what it is bound to
};

}  // namespace coconet
