#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/kernel_abi.h"
#include "runtime/node/wait.h"

namespace coconet {

/// The threads that run blocks 1, 2, ... of a rank's kernels. Used by the rank's thread only.
class Team {
 public:
  /// Blocks 0, 1, ... of this rank run on cores[0], cores[1], ... (modulo); empty: not pinned.
  explicit Team(std::vector<int> cores) : cores_(std::move(cores)) {}
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Starts threads until there are `blocks` - 1.
  void Grow(int blocks);

  /// Calls the kernel once per block, concurrently; block 0 runs on the calling thread. Requires
  /// Grow(blocks).
  void Run(HostKernel kernel, const void* params, int blocks, const WaitTerms& terms);

 private:
  struct alignas(64) Worker {
    HostKernel kernel = nullptr;  // null: the thread ends
    const void* params = nullptr;
    int blocks = 0;
    WaitTerms terms;
    std::atomic<unsigned> job{0};
    alignas(64) std::atomic<unsigned> done{0};
    std::thread thread;
  };
  static void Work(Worker& worker, int block);

  std::vector<int> cores_;
  std::vector<std::unique_ptr<Worker>> workers_;  // workers_[i] runs block i + 1
};

}  // namespace coconet
