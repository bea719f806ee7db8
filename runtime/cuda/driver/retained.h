#ifndef COCONET_RUNTIME_CUDA_DRIVER_RETAINED_H_
#define COCONET_RUNTIME_CUDA_DRIVER_RETAINED_H_

#include <memory>
#include <utility>
#include <vector>

namespace coconet {

/// Memory that peers of this process, which is one rank, may still use after it itself has dropped
/// it. It is released when all ranks have reached the next call of Share, of this world or of the
/// process's next one; by then peers have dropped it. Only the process's rank thread may call this.
inline std::vector<std::shared_ptr<void>>& Retained() {
  static auto* retained = new std::vector<std::shared_ptr<void>>;
  return *retained;
}

/// Drops retained memory, and memory that is retained in consequence.
inline void ReleaseRetained() {
  while (!Retained().empty()) std::exchange(Retained(), {}).clear();
}

/// The same object; retained when its last owner in this process drops it.
template <class T>
std::shared_ptr<T> RetainedLater(std::shared_ptr<T> used) {
  T* address = used.get();
  return std::shared_ptr<T>(address, [used = std::move(used)](T*) { Retained().push_back(used); });
}

}  // namespace coconet

#endif  // COCONET_RUNTIME_CUDA_DRIVER_RETAINED_H_
