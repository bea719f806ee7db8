#pragma once

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"

namespace coconet::bench {

/// Private memory as a careful user allocates it: huge pages where possible, every page present,
/// zero-filled, aligned to a huge page when at least that large, else to a page.
class Array {
 public:
  /// ResourceExhausted when memory is short.
  static absl::StatusOr<Array> Allocate(int64_t bytes);
  Array() = default;
  Array(Array&& other) noexcept { *this = std::move(other); }
  Array& operator=(Array&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Array();

  template <class T>
  T* as() const {
    return static_cast<T*>(base_);
  }

 private:
  void* base_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace coconet::bench
