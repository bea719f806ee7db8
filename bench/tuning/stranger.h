#pragma once

#include <sys/types.h>

#include <cstdint>

namespace coconet::bench {

/// Another program on the machine: a process that computes on one core in spells of random length,
/// with pauses of random length between them, both 0.3 s on average (exponential distributions).
/// Ends with this object, and with its parent.
class Stranger {
 public:
  explicit Stranger(uint64_t seed);
  ~Stranger();
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

 private:
  pid_t child_ = -1;
};

}  // namespace coconet::bench
