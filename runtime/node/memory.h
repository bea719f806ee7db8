#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/rank.h"

namespace coconet {

inline constexpr int64_t kHugePage = int64_t{2} << 20;

/// A mapping, unmapped by the destructor. Aligned to a page, or to 2 MiB when at least that large.
class Region {
 public:
  /// `bytes` rounded up to whole pages, huge ones from 2 MiB on.
  static int64_t Rounded(int64_t bytes);
  /// Maps Rounded(bytes) of `fd`, or of anonymous private memory if `fd` is -1. No page is present
  /// yet.
  static absl::StatusOr<std::shared_ptr<Region>> Map(int64_t bytes, int fd);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  void* base() const { return base_; }
  int64_t bytes() const { return bytes_; }

  /// Makes every page present on the calling thread's NUMA node and zero-filled, in huge pages if
  /// possible, so that no later access can fail or fault. ResourceExhausted as soon as the
  /// machine's available memory falls below the reserve, even if others allocate it.
  absl::Status Populate() { return Populate(0, bytes_); }
  /// Populates a part that begins at a page.
  absl::Status Populate(int64_t begin, int64_t bytes);
  /// Maps pages of a part that are already present, so that later accesses do not fault. Best
  /// effort.
  void Prefault(int64_t begin, int64_t bytes);

 private:
  Region(void* base, int64_t bytes) : base_(base), bytes_(bytes) {}

  void* base_;
  int64_t bytes_;
};

/// Device memory of the host backend.
class HostMemory final : public Memory {
 public:
  /// `regions`: by rank; null if this rank shares no memory. A region lives until the last rank
  /// that maps it drops it, so no destructor waits for a peer.
  HostMemory(int rank, int64_t bytes, bool symmetric, std::vector<std::shared_ptr<Region>> regions);

 private:
  std::vector<std::shared_ptr<Region>> regions_;
};

/// How a rank's memory becomes visible to its peers; worlds of threads and of processes differ.
class Sharing {
 public:
  virtual ~Sharing() = default;
  /// Collective; requires the same `bytes` on all ranks. Returns regions by world rank, each
  /// populated by its owner; null for ranks that share no memory. On failure, the first error on
  /// every rank.
  virtual absl::StatusOr<std::vector<std::shared_ptr<Region>>> Share(int64_t bytes) = 0;
};

}  // namespace coconet
