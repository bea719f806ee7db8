#ifndef COCONET_RUNTIME_CUDA_DRIVER_RETAINED_H_
#define COCONET_RUNTIME_CUDA_DRIVER_RETAINED_H_

#include <memory>
#include <utility>
#include <vector>

namespace coconet {

/// What peers of a process that is one rank may still use when it itself has no use for it. It goes
/// when all have come to the next call of Share, of this world or the process's next: they have
/// given it up before. Of the one thread that is the process's rank.
inline std::vector<std::shared_ptr<void>>& Retained() {
  static auto* retained = new std::vector<std::shared_ptr<void>>;
  return *retained;
}

/// Lets it go, and what is retained because of that.
inline void ReleaseRetained() {
  while (!Retained().empty()) std::exchange(Retained(), {}).clear();
}

/// The same, which is retained when nobody here holds it any more.
template <class T>
std::shared_ptr<T> RetainedLater(std::shared_ptr<T> used) {
  T* address = used.get();
  return std::shared_ptr<T>(address, [used = std::move(used)](T*) { Retained().push_back(used); });
}

}  // namespace coconet

#endif  // COCONET_RUNTIME_CUDA_DRIVER_RETAINED_H_
