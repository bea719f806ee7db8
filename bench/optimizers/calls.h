#pragma once

#include <cstdint>

namespace coconet::bench {

/// Calls of all threads of this process so far. Linking this library puts counters before the C
/// library's functions.
struct Calls {
  int64_t allocations = 0;  // malloc and its kin, operator new included
  int64_t locks = 0;        // pthread_mutex_lock, std::mutex included; SQLite takes one per call
};
Calls CallsSoFar();

}  // namespace coconet::bench
