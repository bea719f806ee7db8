#pragma once

#include <cstdint>

namespace coconet {

/// From this size on libraries store results with streaming (non-temporal) stores, which do not
/// load the lines that they overwrite. Smaller results stay in a cache for their reader.
inline constexpr int64_t kStreamedBytes = int64_t{1} << 18;

/// memcpy. `streams`: by streaming stores, if the processor has them and the copy is of 512 bytes
/// or more; then StreamFence must come before another thread is told that the bytes are there.
void CopyBytes(void* to, const void* from, int64_t bytes, bool streams);
void StreamFence();

}  // namespace coconet
