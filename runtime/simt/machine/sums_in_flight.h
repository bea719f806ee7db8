#pragma once

#include <cstddef>

#include "runtime/simt/threads/block.h"
#include "runtime/simt/threads/reporter.h"

namespace coconet {

/// Sums of products in arrays of threads. While a product is in flight its sums hold a NaN, and an
/// access of them is a mistake. A fence must lie between an access and the next product.
class SumsInFlight {
 public:
  explicit SumsInFlight(Reporter& reporter) : reporter_(reporter) {}

  /// The thread's part of a fence (PTX ISA, wgmma.fence). Called on the thread.
  static void Fence(SimtThread& thread);
  /// Checks that a fence orders the thread's accesses of `sums` before a product that it begins.
  void CheckFenced(SimtThread& thread, const float* sums, int count, const void* at);
  /// Begins a product at sums that CheckFenced has passed.
  static void Begin(SimtThread& thread, float* sums, int count, const void* at);
  /// The sums there, which a product has begun at.
  static ThreadSums& Find(SimtThread& thread, const float* sums);
  /// Notes that a product of these sums has been awaited. Behind the last one gives the thread its
  /// values, and checks that nobody wrote there before.
  void End(SimtThread& running, SimtThread& thread, ThreadSums& sums);
  /// An access by the thread within the part of its stack that is watched.
  void Access(SimtThread& thread, const void* p, size_t bytes, bool writes, const void* at);
  /// Reports products that an ended thread did not await.
  void CheckNone(const SimtThread& thread);

 private:
  static void Watch(SumsOfThread& sums);

  Reporter& reporter_;
};

}  // namespace coconet
