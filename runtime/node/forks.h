#pragma once

#include <atomic>
#include <cstdint>

namespace coconet {

/// Memory that ranks of several processes share stays shared in the children of fork(): a child
/// that writes to weights there would write to its parent's. What callers can write is copied
/// instead: a child has the content of the moment of the fork, as it has of private memory, and
/// neither process sees what the other writes. Children that are forked before the content changes
/// share one copy, page by page until they write. All functions are thread-safe.

/// Registers `bytes` bytes of a mapping that processes share, which begins and ends at pages.
void AddShared(void* begin, int64_t bytes);
/// Call this before unmapping it. No effect for other addresses.
void RemoveShared(void* begin);

/// Gives children that are forked from now on a copy of the whole shared mapping around `address`.
/// If there is no memory for a copy, they have no access to the mapping, and a line on stderr says
/// so. No effect for an address outside of all such mappings: the system copies private memory.
void CopyInChildren(const void* address);

namespace forks_internal {
extern std::atomic<bool> has_copies;
void DropCopies();
}  // namespace forks_internal

/// Drops the parent's reference to the copies once the content has changed and no further child can
/// share them. Costs a load if there are none.
inline void DropForkCopies() {
  if (forks_internal::has_copies.load(std::memory_order_relaxed)) forks_internal::DropCopies();
}

}  // namespace coconet
