#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/node/memory.h"

namespace coconet::bench {

/// Private memory as a careful user allocates it: huge pages where possible, every page present,
/// zero-filled, aligned to a huge page when at least that large, else to a page.
class Array {
 public:
  /// ResourceExhausted when memory is short.
  static absl::StatusOr<Array> Allocate(int64_t bytes);

  template <class T>
  T* as() const {
    return static_cast<T*>(region_ == nullptr ? nullptr : region_->base());
  }

 private:
  std::shared_ptr<Region> region_;
};

}  // namespace coconet::bench
