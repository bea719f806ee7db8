#ifndef COCONET_JIT_DEVICE_SIMT_ASYNC_COPIES_H_
#define COCONET_JIT_DEVICE_SIMT_ASYNC_COPIES_H_

// Copies that the machine does when it likes, until somebody waits for them. Part of ptx.h.

namespace coconet {

constexpr bool kCopiesInBulk = true;
/// `bytes`, a multiple of 16, from shared memory to global memory, both at multiples of 16; one of
/// the calling thread's open group.
static CC_ASKS void CopyBulk(void* to, const void* shared, int bytes) {
  SimtCalls* const calls = COCONET_SIMT_CALLS;
  calls->copy_bulk(calls->machine, to, shared, bytes, __builtin_return_address(0));
}
static CC_ASKS void CloseBulkGroup() {
  SimtCalls* const calls = COCONET_SIMT_CALLS;
  calls->close_bulk_group(calls->machine);
}
static CC_ASKS void AwaitBulk(int open, bool stores) {
  SimtCalls* const calls = COCONET_SIMT_CALLS;
  calls->await_bulk(calls->machine, open, stores);
}
/// All of this thread's groups but the last kOpen have read their shared memory.
template <int kOpen>
CC_DEVICE void AwaitBulkReads() {
  AwaitBulk(kOpen, false);
}
/// All of them have been stored, as far as this thread sees; and what it releases from now on comes
/// behind that.
CC_DEVICE void AwaitBulkStores() { AwaitBulk(0, true); }
/// What this thread stored in shared memory is there for bulk copies that come behind a barrier.
static CC_ASKS void FenceForBulkCopies() {
  SimtCalls* const calls = COCONET_SIMT_CALLS;
  calls->fence_bulk(calls->machine);
}

}  // namespace coconet

#endif  // COCONET_JIT_DEVICE_SIMT_ASYNC_COPIES_H_
