#ifndef COCONET_RUNTIME_CUDA_DRIVER_STOP_SIGN_H_
#define COCONET_RUNTIME_CUDA_DRIVER_STOP_SIGN_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/cuda/driver/device.h"
#include "runtime/node/memory.h"

namespace coconet {

/// How ranks that share memory tell a rank's kernels to give up: a word and a reason, in memory of
/// the host that all of them map, as threads or as processes.
class StopSign {
 public:
  static int64_t Bytes();
  /// `region`: Bytes(), zero-filled at first.
  explicit StopSign(std::shared_ptr<Region> region) : region_(std::move(region)) {}
  ~StopSign();
  StopSign(const StopSign&) = delete;
  StopSign& operator=(const StopSign&) = delete;

  /// On the rank whose it is: lets its kernels read the word, at the address that it returns.
  absl::StatusOr<unsigned*> Open(std::shared_ptr<Device> device);

  /// 0; 1 + the world rank that gave up first.
  unsigned Load() const;
  /// Does nothing where it is set already.
  void Set(unsigned value);
  /// Of that rank alone; to be there before any other's word is set.
  void SetWhy(absl::string_view why);
  std::string why() const;

 private:
  struct Board;
  Board& board() const;

  std::shared_ptr<Region> region_;
  std::shared_ptr<Device> device_;  // that reads it; null: none does
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_CUDA_DRIVER_STOP_SIGN_H_
