#pragma once

#include <cstdint>

namespace coconet {

/// Results from so many bytes on leave a core's cache before anybody reads them: storing past the
/// cache saves loading their lines first.
inline constexpr int64_t kStreamedBytes = int64_t{1} << 18;

/// memcpy whose stores go past the caches, where the processor has such stores and the run is long
/// enough. Other threads may see them late: StreamFence comes before whatever tells them.
void StreamCopy(void* to, const void* from, int64_t bytes);
void StreamFence();

}  // namespace coconet
