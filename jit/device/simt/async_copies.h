#pragma once

// Bulk copies, which the simulated machine performs at any time before they are awaited.
// Part of ptx.h.

namespace coconet {

constexpr bool kCopiesInBulk = true;
/// Copies `bytes`, a multiple of 16, from shared to global memory, both 16-byte aligned, as part of
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
/// Waits until all of this thread's groups but the last kOpen have read their shared memory.
template <int kOpen>
CC_DEVICE void AwaitBulkReads() {
  AwaitBulk(kOpen, false);
}
/// Waits until all of this thread's groups are stored. The thread's later releases are ordered
/// after these stores.
CC_DEVICE void AwaitBulkStores() { AwaitBulk(0, true); }
/// Makes this thread's stores to shared memory visible to bulk copies after the next barrier.
static CC_ASKS void FenceForBulkCopies() {
  SimtCalls* const calls = COCONET_SIMT_CALLS;
  calls->fence_bulk(calls->machine);
}

}  // namespace coconet
