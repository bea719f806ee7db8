#pragma once

#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/status/statusor.h"
#include "coconet/base/status.h"
#include "runtime/node/memory.h"

namespace coconet::bench {

/// Private memory as a careful user allocates it: huge pages where possible, every page present,
/// zero-filled, aligned to a huge page when at least that large, else to a page.
class Array {
 public:
  /// ResourceExhausted when memory is short.
  static absl::StatusOr<Array> Allocate(int64_t bytes) {
    Array array;
    ASSIGN_OR_RETURN(array.region_, Region::Map(bytes, /*fd=*/-1));
    std::memset(array.region_->base(), 0, array.region_->bytes());
    return array;
  }

  template <class T>
  T* as() const {
    return static_cast<T*>(region_ == nullptr ? nullptr : region_->base());
  }

 private:
  std::shared_ptr<Region> region_;
};

}  // namespace coconet::bench
