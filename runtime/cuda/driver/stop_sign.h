#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/cuda/driver/device.h"
#include "runtime/node/memory.h"

namespace coconet {

/// Tells a rank's kernels to give up: a word and a reason, in host memory that all ranks which
/// share memory map, as threads or as processes.
class StopSign {
 public:
  static int64_t Bytes();
  /// `region`: Bytes() long, zero-filled at first.
  explicit StopSign(std::shared_ptr<Region> region) : region_(std::move(region)) {}
  ~StopSign();
  StopSign(const StopSign&) = delete;
  StopSign& operator=(const StopSign&) = delete;

  /// Called by the rank that owns the sign. Makes the word readable for its kernels and returns its
  /// device address.
  absl::StatusOr<unsigned*> Open(std::shared_ptr<Device> device);

  /// 0: not set; else 1 + the world rank that gave up first.
  unsigned Load() const;
  /// No effect if the word is already set.
  void Set(unsigned value);
  /// Clears word and reason. Called by the rank that owns the sign, while no rank can set it.
  void Clear();
  /// Called by the rank that owns the sign, before it sets any other rank's word.
  void SetWhy(absl::string_view why);
  std::string why() const;

 private:
  struct Board;
  Board& board() const;

  std::shared_ptr<Region> region_;
  std::shared_ptr<Device> device_;  // whose kernels read the word; null: none
};

}  // namespace coconet
