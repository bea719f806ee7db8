#pragma once

#include "absl/status/status.h"
#include "runtime/rank.h"

namespace coconet {

/// A rank's place in a world, from when it joins until it leaves. Used by one thread at a time.
class Membership {
 public:
  /// Leaves the world; what was made of the rank is gone by then. Peers' waits for this rank end
  /// with Aborted.
  virtual ~Membership() = default;
  virtual Rank& rank() = 0;
  /// Leaves the world because of an error, which the peers' waits return.
  virtual void Leave(const absl::Status& why) = 0;
};

}  // namespace coconet
