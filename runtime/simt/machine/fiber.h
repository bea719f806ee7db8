#ifndef COCONET_RUNTIME_SIMT_MACHINE_FIBER_H_
#define COCONET_RUNTIME_SIMT_MACHINE_FIBER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace coconet {

/// Stacks of one size with a page below each that nobody may touch. Not thread-safe.
class StackPool {
 public:
  static constexpr size_t kBytes =
      64 << 10;  // of kernels that call nothing deep; only pages that were touched take memory

  StackPool() = default;
  ~StackPool();
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  /// The lowest address of a stack of kBytes; null where the machine has no room.
  char* Take();
  void Give(char* stack) { free_.push_back(stack); }

 private:
  static constexpr int kAtOnce = 64;  // stacks of one mapping

  std::vector<void*> mappings_;
  std::vector<char*> free_;
};

/// A function on a stack of its own, which stops in the middle and goes on later. Switched by
/// Boost.Context. One that is never resumed again is just forgotten: nothing on its stack is
/// destroyed. Not thread-safe; resumed by one thread of the system at a time.
class Fiber {
 public:
  using Body = void (*)(void* argument);

  /// Runs body(argument) when it is first resumed.
  void Start(char* stack, Body body, void* argument);
  /// Goes on where it stopped, until it stops again or ends.
  void Resume();
  /// Called on the fiber: back to who resumed it.
  void Stop();
  bool ended() const { return ended_; }

 private:
  struct Entry;

  void* context_ = nullptr;  // of the fiber, while it does not run
  void* resumer_ = nullptr;  // of who resumed it, while it runs
  Body body_ = nullptr;
  void* argument_ = nullptr;
  bool ended_ = false;
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_SIMT_MACHINE_FIBER_H_
