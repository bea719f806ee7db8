#pragma once

// Bulk copies by the asynchronous proxy, and barriers that count their bytes, from sm_90 on. Part
// of ptx.h.

namespace coconet {

/// A tensor map: how a matrix lies in global memory, for loads of boxes. 64-byte aligned in a
/// kernel's parameters.
struct alignas(64) TensorMap {
  unsigned long long words[16];
};

CC_DEVICE unsigned SharedAddress(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

#if __CUDA_ARCH__ >= 900
constexpr bool kCopiesInBulk = true;
/// Copies `bytes`, a multiple of 16, from shared to global memory, both 16-byte aligned, as part of
/// the calling thread's open group.
CC_DEVICE void CopyBulk(void* to, const void* shared, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                   __cvta_generic_to_global(to)),
               "r"(SharedAddress(shared)), "r"(bytes)
               : "memory");
}
CC_DEVICE void CloseBulkGroup() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/// Waits until all of this thread's groups but the last kOpen have read their shared memory.
template <int kOpen>
CC_DEVICE void AwaitBulkReads() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kOpen) : "memory");
}
/// Waits until all of this thread's groups are stored. The thread's later releases are ordered
/// after these stores.
CC_DEVICE void AwaitBulkStores() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  asm volatile("fence.proxy.async;" ::: "memory");
}
/// Orders what this thread has done, and what it has acquired, before what accesses memory by the
/// asynchronous proxy and begins later, or by others after the next barrier: bulk copies, and
/// products of warp groups.
CC_DEVICE void FenceAsyncProxy() { asm volatile("fence.proxy.async;" ::: "memory"); }

/// Initialises a barrier in shared memory: each phase has so many arrivals.
CC_DEVICE void InitBarrier(unsigned long long* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(SharedAddress(barrier)),
               "r"(arrivals)
               : "memory");
}
/// Lets bulk copies see the barriers that this thread has initialised.
CC_DEVICE void FenceBarriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
/// Arrives; the phase then lasts until `bytes` more have been copied as well.
CC_DEVICE void ArriveAndExpect(unsigned long long* barrier, int bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SharedAddress(barrier)),
      "r"(bytes)
      : "memory");
}
/// Arrives.
CC_DEVICE void Arrive(unsigned long long* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(SharedAddress(barrier)) : "memory");
}
/// Whether the phase of that parity, the current one or its predecessor, is over; waits a while.
/// May return false when it is.
CC_DEVICE bool IsOver(unsigned long long* barrier, unsigned parity) {
  unsigned over;
  asm volatile(
      "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; "
      "}"
      : "=r"(over)
      : "r"(SharedAddress(barrier)), "r"(parity)
      : "memory");
  return over != 0;
}
/// Copies `bytes`, a multiple of 16, from global to shared memory, both 16-byte aligned; they count
/// as copied for the barrier's phase.
CC_DEVICE void LoadBulk(void* shared, const void* from, int bytes, unsigned long long* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(SharedAddress(shared)),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(SharedAddress(barrier))
      : "memory");
}
/// Begins to load the box of a matrix whose first element is (row, column): each row is 128 bytes
/// long, elements outside the matrix are zeros. It lies in shared memory, aligned to 1,024, as the
/// matrices of wgmma.h, and all its bytes count as copied for the barrier's phase.
CC_DEVICE void LoadBox(void* shared, const TensorMap* map, int column, int row,
                       unsigned long long* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4}], [%2];" ::"r"(SharedAddress(shared)),
      "l"(map), "r"(SharedAddress(barrier)), "r"(column), "r"(row)
      : "memory");
}
/// The same by a map of several matrices.
CC_DEVICE void LoadBox(void* shared, const TensorMap* map, int column, int row, int matrix,
                       unsigned long long* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4, %5}], [%2];" ::"r"(SharedAddress(shared)),
      "l"(map), "r"(SharedAddress(barrier)), "r"(column), "r"(row), "r"(matrix)
      : "memory");
}
/// Brings the map to where loads look for it.
CC_DEVICE void PrefetchMap(const TensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
#else
constexpr bool kCopiesInBulk = false;
CC_DEVICE void CopyBulk(void*, const void*, int) {}
CC_DEVICE void CloseBulkGroup() {}
template <int kOpen>
CC_DEVICE void AwaitBulkReads() {}
CC_DEVICE void AwaitBulkStores() {}
CC_DEVICE void FenceAsyncProxy() {}
CC_DEVICE void InitBarrier(unsigned long long*, int) {}
CC_DEVICE void FenceBarriers() {}
CC_DEVICE void ArriveAndExpect(unsigned long long*, int) {}
CC_DEVICE void Arrive(unsigned long long*) {}
CC_DEVICE bool IsOver(unsigned long long*, unsigned) { return true; }
CC_DEVICE void LoadBulk(void*, const void*, int, unsigned long long*) {}
CC_DEVICE void LoadBox(void*, const TensorMap*, int, int, unsigned long long*) {}
CC_DEVICE void LoadBox(void*, const TensorMap*, int, int, int, unsigned long long*) {}
CC_DEVICE void PrefetchMap(const TensorMap*) {}
#endif

}  // namespace coconet
