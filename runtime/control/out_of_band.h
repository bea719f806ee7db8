#pragma once

#include <cstddef>

namespace coconet {

/// An all-gather of bytes by which ranks meet, in the shape of UCC's ucc_oob_coll: what any
/// launcher can give. Used while joining, by the joining thread only.
struct OutOfBand {
  int rank = 0;
  int ranks = 1;
  void* context = nullptr;  // passed to every function
  /// Begins to gather `bytes` bytes of each rank, by rank, into `all`; sets *request. 0, else it
  /// failed. A call that blocks until all ranks have come is admissible; then a rank that never
  /// comes is its own to report.
  int (*all_gather)(void* context, const void* mine, void* all, size_t bytes,
                    void** request) = nullptr;
  /// 0: complete; 1: in progress; else failed. Null: all_gather has completed when it returns.
  int (*test)(void* context, void* request) = nullptr;
  /// Releases a request, complete or not. May be null.
  void (*release)(void* context, void* request) = nullptr;
  /// After the deadline: a rank that `request` waits for; -1: not known. May be null.
  int (*absent)(void* context, void* request) = nullptr;
  /// The caller's words for its last failure. May be null, may return null.
  const char* (*error)(void* context) = nullptr;
};

}  // namespace coconet
