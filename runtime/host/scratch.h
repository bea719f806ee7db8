#ifndef COCONET_RUNTIME_HOST_SCRATCH_H_
#define COCONET_RUNTIME_HOST_SCRATCH_H_

#include <cstdint>
#include <memory>
#include <new>

namespace coconet {

/// A thread's scratch memory of `count` elements: page-aligned, uninitialised.
template <class T>
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(int64_t count)
      : data_(static_cast<T*>(::operator new(count * sizeof(T), kPage))) {}
  T* data() const { return data_.get(); }

 private:
  static constexpr std::align_val_t kPage{4096};
  struct Free {
    void operator()(T* data) const { ::operator delete(data, kPage); }
  };
  std::unique_ptr<T, Free> data_;
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_HOST_SCRATCH_H_
