#ifndef COCONET_JIT_DEVICE_CUDA_ASYNC_COPIES_H_
#define COCONET_JIT_DEVICE_CUDA_ASYNC_COPIES_H_

// Copies by the asynchronous proxy: from sm_90 on. Part of ptx.h.

namespace coconet {

#if __CUDA_ARCH__ >= 900
constexpr bool kCopiesInBulk = true;
/// `bytes`, a multiple of 16, from shared memory to global memory, both at multiples of 16; one of
/// the calling thread's open group.
CC_DEVICE void CopyBulk(void* to, const void* shared, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                   __cvta_generic_to_global(to)),
               "r"(static_cast<unsigned>(__cvta_generic_to_shared(shared))), "r"(bytes)
               : "memory");
}
CC_DEVICE void CloseBulkGroup() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/// All of this thread's groups but the last kOpen have read their shared memory.
template <int kOpen>
CC_DEVICE void AwaitBulkReads() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kOpen) : "memory");
}
/// All of them have been stored, as far as this thread sees; and what it releases from now on comes
/// behind that.
CC_DEVICE void AwaitBulkStores() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  asm volatile("fence.proxy.async;" ::: "memory");
}
/// What this thread stored in shared memory is there for bulk copies that come behind a barrier.
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

#endif  // COCONET_JIT_DEVICE_CUDA_ASYNC_COPIES_H_
