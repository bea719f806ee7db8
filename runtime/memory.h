#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace coconet {

/// Memory that the host cannot address. Thread-safe.
class FarSpace {
 public:
  virtual ~FarSpace() = default;
  /// The CUDA device ordinal of its GPU.
  virtual int gpu() const = 0;
  /// Copies between this memory and the host's, in either direction, or within this memory; returns
  /// when done.
  virtual absl::Status Copy(const void* from, int64_t bytes, void* to) const = 0;
};

/// Device memory. Zero-filled, aligned to 2 MiB when that large, else to 64 bytes.
class Memory {
 public:
  virtual ~Memory() = default;  // collective for symmetric memory: peers may still be using it
  void* own() const { return peers_[rank_]; }
  /// The memory of world rank `rank`, as this rank addresses it. Null if the two ranks share no
  /// memory (mesh.h), and, for memory that is not symmetric, for every other rank.
  void* peer(int rank) const { return peers_[rank]; }
  /// The multicast address of all ranks of the node, for multimem instructions of this rank's
  /// kernels only; null if there is none.
  void* multicast() const { return multicast_; }
  int rank() const { return rank_; }  // whose it is, in the world
  int64_t bytes() const { return bytes_; }
  bool symmetric() const { return symmetric_; }
  /// Null if the host can address own().
  const std::shared_ptr<const FarSpace>& space() const { return space_; }

  /// Copies `bytes` bytes at `offset` of this rank's own memory to, or from, host memory. Must not
  /// run while a plan uses them.
  absl::Status Read(int64_t offset, int64_t bytes, void* to) const;
  absl::Status Write(int64_t offset, int64_t bytes, const void* from);
  /// Repeats the first `bytes` bytes of this rank's own memory behind them, as far as `end`. Must
  /// not run while a plan uses them.
  absl::Status Repeat(int64_t bytes, int64_t end);

 protected:
  Memory(int rank, int64_t bytes, bool symmetric, std::vector<void*> peers,
         std::shared_ptr<const FarSpace> space = nullptr, void* multicast = nullptr)
      : rank_(rank),
        bytes_(bytes),
        symmetric_(symmetric),
        peers_(std::move(peers)),
        space_(std::move(space)),
        multicast_(multicast) {}
  int rank_;
  int64_t bytes_;
  bool symmetric_;
  std::vector<void*> peers_;
  std::shared_ptr<const FarSpace> space_;
  void* multicast_;
};

/// The first bytes of a rank's own memory, readable and writable by the host: the memory itself if
/// the host can address it, else a copy.
class HostView {
 public:
  /// With the current content.
  static absl::StatusOr<HostView> Of(Memory& memory, int64_t bytes);
  /// With unspecified content, for a caller that overwrites all of it.
  static HostView Blank(Memory& memory, int64_t bytes);

  char* data() { return copy_ == nullptr ? static_cast<char*>(memory_->own()) : copy_.get(); }
  /// Writes the copy back, if there is one.
  absl::Status Store();

 private:
  HostView(Memory& memory, int64_t bytes, std::unique_ptr<char[]> copy)
      : memory_(&memory), bytes_(bytes), copy_(std::move(copy)) {}

  Memory* memory_;
  int64_t bytes_;
  std::unique_ptr<char[]> copy_;
};

}  // namespace coconet
