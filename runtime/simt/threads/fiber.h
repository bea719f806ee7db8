#pragma once

#include <cstddef>
#include <vector>

namespace coconet {

/// Stacks of one size, each above a guard page. Not thread-safe.
class StackPool {
 public:
  /// Kernels do not call deeply; only pages that are touched take memory.
  static constexpr size_t kBytes = 64 << 10;

  StackPool() = default;
  ~StackPool();
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  /// The lowest address of a stack of kBytes; null if the system has no memory.
  char* Take();
  void Give(char* stack) { free_.push_back(stack); }

 private:
  static constexpr int kAtOnce = 64;  // stacks per mapping

  std::vector<void*> mappings_;
  std::vector<char*> free_;
};

/// A function on its own stack, which can stop in the middle and go on later (Boost.Context). A
/// fiber that is not resumed to its end is dropped: objects on its stack are not destroyed. Not
/// thread-safe; one thread of the host resumes it at a time.
class Fiber {
 public:
  using Body = void (*)(void* argument);

  /// Runs body(argument) when it is first resumed.
  void Start(char* stack, Body body, void* argument);
  /// Continues where it stopped; returns when it stops again or ends.
  void Resume();
  /// Called on the fiber: returns to the resumer.
  void Stop();
  bool ended() const { return ended_; }

 private:
  struct Entry;

  void* context_ = nullptr;  // the fiber's context, while it does not run
  void* resumer_ = nullptr;  // the resumer's context, while it runs
  Body body_ = nullptr;
  void* argument_ = nullptr;
  bool ended_ = false;
};

}  // namespace coconet
