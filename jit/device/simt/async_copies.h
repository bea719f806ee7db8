#pragma once

// Bulk copies, which the simulated machine performs at any time before they are awaited, and
// barriers that count their bytes. Part of ptx.h.

namespace coconet {

/// A tensor map: how a matrix lies in global memory, for loads of boxes. 64-byte aligned in a
/// kernel's parameters.
struct alignas(64) TensorMap {
  unsigned long long words[16];
};

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
/// Orders what this thread has done, and what it has acquired, before what accesses memory by the
/// asynchronous proxy and begins later, or by others after the next barrier: bulk copies, and
/// products of warp groups.
static CC_ASKS void FenceAsyncProxy() {
  SimtCalls* const calls = COCONET_SIMT_CALLS;
  calls->fence_async_proxy(calls->machine);
}

/// Initialises a barrier in shared memory: each phase has so many arrivals.
static CC_ASKS void InitBarrier(unsigned long long* barrier, int arrivals) {
  SimtCalls* const calls = COCONET_SIMT_CALLS;
  calls->init_barrier(calls->machine, barrier, arrivals, __builtin_return_address(0));
}
/// Lets bulk copies see the barriers that this thread has initialised.
static CC_ASKS void FenceBarriers() {
  SimtCalls* const calls = COCONET_SIMT_CALLS;
  calls->fence_barriers(calls->machine);
}
/// Arrives; the phase then lasts until `bytes` more have been copied as well.
static CC_ASKS void ArriveAndExpect(unsigned long long* barrier, int bytes) {
  SimtCalls* const calls = COCONET_SIMT_CALLS;
  calls->arrive(calls->machine, barrier, bytes, __builtin_return_address(0));
}
/// Arrives.
static CC_ASKS void Arrive(unsigned long long* barrier) {
  SimtCalls* const calls = COCONET_SIMT_CALLS;
  calls->arrive(calls->machine, barrier, 0, __builtin_return_address(0));
}
/// Whether the phase of that parity, the current one or its predecessor, is over; waits a while.
/// May return false when it is.
static CC_ASKS bool IsOver(unsigned long long* barrier, unsigned parity) {
  SimtCalls* const calls = COCONET_SIMT_CALLS;
  return calls->try_wait(calls->machine, barrier, parity, __builtin_return_address(0));
}
/// Copies `bytes`, a multiple of 16, from global to shared memory, both 16-byte aligned; they count
/// as copied for the barrier's phase.
static CC_ASKS void LoadBulk(void* shared, const void* from, int bytes,
                             unsigned long long* barrier) {
  SimtCalls* const calls = COCONET_SIMT_CALLS;
  calls->load_bulk(calls->machine, shared, from, bytes, barrier, __builtin_return_address(0));
}
/// Begins to load the box of a matrix whose first element is (row, column): each row is 128 bytes
/// long, elements outside the matrix are zeros. It lies in shared memory, aligned to 1,024, as the
/// matrices of wgmma.h, and all its bytes count as copied for the barrier's phase.
static CC_ASKS void LoadBox(void* shared, const TensorMap* map, int column, int row,
                            unsigned long long* barrier) {
  SimtCalls* const calls = COCONET_SIMT_CALLS;
  calls->load_box(calls->machine, shared, map, column, row, nullptr, barrier,
                  __builtin_return_address(0));
}
/// The same by a map of several matrices.
static CC_ASKS void LoadBox(void* shared, const TensorMap* map, int column, int row, int matrix,
                            unsigned long long* barrier) {
  SimtCalls* const calls = COCONET_SIMT_CALLS;
  calls->load_box(calls->machine, shared, map, column, row, &matrix, barrier,
                  __builtin_return_address(0));
}
/// Brings the map to where loads look for it.
CC_DEVICE void PrefetchMap(const TensorMap*) {}

}  // namespace coconet
