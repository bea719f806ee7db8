#pragma once

// Bulk copies by the asynchronous proxy, from sm_90 on. Part of ptx.h.

namespace coconet {

#if __CUDA_ARCH__ >= 900
constexpr bool kCopiesInBulk = true;
/// Copies `bytes`, a multiple of 16, from shared to global memory, both 16-byte aligned, as part of
/// the calling thread's open group.
CC_DEVICE void CopyBulk(void* to, const void* shared, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                   __cvta_generic_to_global(to)),
               "r"(static_cast<unsigned>(__cvta_generic_to_shared(shared))), "r"(bytes)
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
/// Makes this thread's stores to shared memory visible to bulk copies after the next barrier.
CC_DEVICE void FenceForBulkCopies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
#else
constexpr bool kCopiesInBulk = false;
CC_DEVICE void CopyBulk(void*, const void*, int) {}
CC_DEVICE void CloseBulkGroup() {}
template <int kOpen>
CC_DEVICE void AwaitBulkReads() {}
CC_DEVICE void AwaitBulkStores() {}
CC_DEVICE void FenceForBulkCopies() {}
#endif

}  // namespace coconet
