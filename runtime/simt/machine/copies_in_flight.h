#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/simt/machine/access_checker.h"
#include "runtime/simt/memory/simt_memory.h"
#include "runtime/simt/threads/block.h"
#include "runtime/simt/threads/reporter.h"
#include "runtime/simt/threads/scheduler.h"

namespace coconet {

/// The first element of a box; `matrix`: of a load of three dimensions.
struct SimtBoxAt {
  int column = 0, row = 0;
  std::optional<int> matrix = {};
};

/// Asynchronous copies from and to shared memory. Copies that threads await by group read at once
/// or as late as they may, and store as late as they may. Bulk copies to shared memory complete at
/// any time, in parts, as bytes of a barrier. Until a thread has awaited a copy, the copy's
/// accesses are ordered with no others, also not with those of its own thread.
class CopiesInFlight {
 public:
  CopiesInFlight(SimtMemory& memory, SimtScheduler& scheduler, AccessChecker& checker,
                 Reporter& reporter)
      : memory_(memory), scheduler_(scheduler), checker_(checker), reporter_(reporter) {}

  /// Begins a bulk copy from shared memory.
  void BeginBulk(SimtThread& thread, char* to, const char* from, size_t bytes, const void* at);
  /// Begins a copy to shared memory, in pieces of 16 bytes: bytes beyond `bytes` become zero.
  void BeginAsync(SimtThread& thread, char* to, const char* from, size_t bytes, const void* at);
  /// Ends the reads, and if `stores` the stores, of all closed groups but the last `open`.
  void Await(SimtThread& thread, SimtThread::Copies& copies, int open, bool stores);
  /// A proxy fence: the asynchronous proxy sees the thread's writes, and all that it has acquired.
  static void Fence(SimtThread& thread);

  /// Begins a bulk copy to shared memory, as bytes of `barrier`, which is at `barrier_at`.
  void BeginLoad(SimtThread& thread, char* to, const char* from, size_t bytes,
                 const char* barrier_at, SimtBarrier& barrier, const void* at);
  /// The same for a box of a matrix, with swizzles of 128 bytes; `map` has the bytes of a
  /// SimtTensorMap.
  void BeginBox(SimtThread& thread, char* to, const void* map, const SimtBoxAt& box,
                const char* barrier_at, SimtBarrier& barrier, const void* at);
  /// Sometimes completes a part of some load.
  void LoadSome();
  /// Completes a part of some load. False if no load is in flight.
  bool LoadOne();
  bool any_loading() const { return loading_ > 0; }
  /// Notes that the thread has seen the barrier's phase end: the loads of that phase, and of
  /// earlier ones, become the thread's accesses. False if other threads had seen all of them.
  bool EndLoads(const SimtThread& thread, const SimtBarrier& barrier, uint64_t phase);

  /// Reports copies that an ended thread did not await.
  void CheckNone(SimtThread& thread);
  /// Reports loads of a block that no thread awaited; its threads have ended.
  void CheckNoLoads(const SimtBlock& block);

 private:
  /// Reports a copy whose ends or bytes are no multiples of 16.
  void CheckAligned(SimtThread& thread, const CopyInFlight::Stretch& stretch, const void* at);
  /// `number`: of the copy's group, which its epoch tells.
  void Begin(SimtThread& thread, bool bulk, int number, CopyInFlight& copy);
  /// Stores what the copy has read.
  static void Store(const CopyInFlight& copy);
  /// A load in two parts, which complete by themselves.
  using Parts = std::array<std::vector<CopyInFlight::Stretch>, 2>;
  void BeginParts(SimtThread& thread, Parts parts, const char* barrier_at, SimtBarrier& barrier,
                  const void* at);
  SimtTensorMap ReadMap(SimtThread& thread, const char* to, const void* map, const void* at);
  static void Read(CopyInFlight& copy);
  void Load(BulkLoad& load);
  /// Turns the copy's accesses of these bytes into the thread's.
  void EndAccess(const SimtThread& thread, const CopyInFlight& copy, const char* p, size_t bytes);
  void EndReads(const SimtThread& thread, const CopyInFlight& copy);
  void EndWrites(const SimtThread& thread, const CopyInFlight& copy);
  void ReportUnfinished(const SimtThread& thread, const CopyInFlight& copy);

  SimtMemory& memory_;
  SimtScheduler& scheduler_;
  AccessChecker& checker_;
  Reporter& reporter_;
  std::vector<BulkLoad> loads_;  // of all blocks, that no thread has awaited
  size_t loading_ = 0;           // of these, those that go on
};

}  // namespace coconet
