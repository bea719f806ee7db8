#pragma once

#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "jit/compile/compiler.h"

namespace coconet {

/// The cores of the process's main thread. Threads of ranks are pinned to fewer.
cpu_set_t OwnCores();

/// Threads that compile sources, one per core, and the results. Thread-safe.
class CompilePool {
 public:
  /// Starts the threads. `compiler`, `sources` and `stop`, the compiler's CompilerOptions::stop,
  /// outlive the pool. `stop` may be null.
  CompilePool(Compiler& compiler, absl::Span<const KernelSource> sources, const cpu_set_t& cores,
              std::atomic<bool>* stop);
  /// Stops unless it is idle, and waits for running compiles. An idle pool leaves `stop` to others.
  ~CompilePool();
  CompilePool(const CompilePool&) = delete;
  CompilePool& operator=(const CompilePool&) = delete;

  /// Returns how many sources are compiled, when all are, or after one heart beat.
  int Wait();
  bool Idle();
  /// Starts no further compile, and ends running ones by `stop`.
  void Stop();
  /// The path of the binary per source; Cancelled for sources that were not begun. Requires Idle.
  const std::vector<absl::StatusOr<std::string>>& binaries() const { return binaries_; }
  /// Warnings of the compiler's cache. Requires Idle.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void Work();

  Compiler& compiler_;
  const absl::Span<const KernelSource> sources_;
  const cpu_set_t cores_;
  std::atomic<bool>* const stop_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable finished_;
  size_t next_ = 0, idle_ = 0;
  int done_ = 0;
  std::vector<absl::StatusOr<std::string>> binaries_;
  std::vector<std::string> notes_;
  std::vector<std::thread> threads_;
};

}  // namespace coconet
