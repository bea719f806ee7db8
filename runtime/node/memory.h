#ifndef COCONET_RUNTIME_NODE_MEMORY_H_
#define COCONET_RUNTIME_NODE_MEMORY_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/rank.h"

namespace coconet {

inline constexpr int64_t kHugePage = int64_t{2} << 20;

/// A mapping, unmapped when destroyed: page-aligned, and to 2 MiB when that large.
class Region {
 public:
  /// What `bytes` take in whole pages: huge ones, if that large.
  static int64_t Rounded(int64_t bytes);
  /// Maps Rounded(bytes) of `fd`, or of anonymous private memory when it is -1. No page is there
  /// yet.
  static absl::StatusOr<std::shared_ptr<Region>> Map(int64_t bytes, int fd);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  void* base() const { return base_; }
  int64_t bytes() const { return bytes_; }

  /// Makes every page present on the calling thread's NUMA node, zero-filled, so that no later
  /// access can fail or fault; huge pages where they can be had. ResourceExhausted as soon as the
  /// machine runs low, whoever else is allocating.
  absl::Status Populate();
  /// Maps pages that are present already, so that later accesses do not fault. Best effort.
  void Prefault();

 private:
  Region(void* base, int64_t bytes) : base_(base), bytes_(bytes) {}

  void* base_;
  int64_t bytes_;
};

/// Device memory of the host backend.
class HostMemory final : public Memory {
 public:
  /// `regions`: by rank; null for ranks whose memory this one does not see. They live until the
  /// last rank that maps them lets go, so no destructor waits for a peer.
  HostMemory(int rank, int64_t bytes, bool symmetric, std::vector<std::shared_ptr<Region>> regions);

 private:
  std::vector<std::shared_ptr<Region>> regions_;
};

/// How a rank's memory becomes visible to its peers: what worlds of threads and of processes do
/// differently.
class Sharing {
 public:
  virtual ~Sharing() = default;
  /// Collective; the ranks agree on `bytes` already. Returns, by world rank, the regions of those
  /// that share memory, each populated by its owner, and null for the others; or on every rank the
  /// first error.
  virtual absl::StatusOr<std::vector<std::shared_ptr<Region>>> Share(int64_t bytes) = 0;
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_NODE_MEMORY_H_
