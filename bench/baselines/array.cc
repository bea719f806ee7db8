#include "bench/baselines/array.h"

#include <cstring>

#include "coconet/base/status.h"

namespace coconet::bench {

absl::StatusOr<Array> Array::Allocate(int64_t bytes) {
  Array array;
  ASSIGN_OR_RETURN(array.region_, Region::Map(bytes, /*fd=*/-1));
  std::memset(array.region_->base(), 0, array.region_->bytes());
  return array;
}

}  // namespace coconet::bench
