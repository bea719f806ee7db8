#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/kernel_abi.h"
#include "runtime/simt/machine/machine.h"
#include "runtime/simt/simt_module.h"
#include "runtime/simt_abi.h"

namespace coconet {

/// A machine of two ranks, without streams and hosts, for kernels of one module. All kernels have
/// the same arguments.
class SimtLab {
 public:
  /// The kernels' arguments.
  struct Params {
    Control* control;
    unsigned* a;      // `n` words
    unsigned* flag;   // two
    uint64_t* words;  // two
    int64_t n;
    struct alignas(64) Map {
      uint64_t words[16];
    } maps[2];  // of tensors; kernels may leave them out
  };

  /// `image`: a binary of the simt dialect. Initially the arguments' memory is zero.
  SimtLab(const std::string& image, const SimtOptions& options, int64_t n = 64);

  SimtMachine& machine() { return *machine_; }
  Params& params() { return params_; }
  /// Makes one of the arguments' maps.
  void SetMap(int number, SimtTensorMap map);
  /// Uninitialised memory.
  unsigned* Fresh(size_t words);
  /// Launches a kernel that is ordered behind `after` only, not behind other launches.
  /// `shared_bytes`: dynamic shared memory of a block.
  std::shared_ptr<SimtLaunch> Launch(const char* kernel, int rank, int blocks, int threads,
                                     const SimtLaunch* after = nullptr, size_t shared_bytes = 0);
  /// Runs until all launches have ended, or a mistake is found: returns its text, or "".
  std::string Run();
  /// Launches the kernel on rank 0 and runs.
  std::string Run(const char* kernel, int blocks, int threads, size_t shared_bytes = 0);

 private:
  template <class T>
  T* Zeros(size_t count);

  std::unique_ptr<SimtMachine> machine_;
  std::unique_ptr<SimtModule> module_;
  std::shared_ptr<const Clock> start_ = std::make_shared<Clock>();
  Params params_;
};

}  // namespace coconet
