#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace coconet {

/// Folders in which the system describes its memory; tests use others.
struct MemoryFiles {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
};

/// Bytes that this process may still allocate before the machine, or one of the process's control
/// groups, runs out of memory, less a reserve. INT64_MAX when neither states a limit.
int64_t AvailableBytes(const MemoryFiles& files = {});

/// Bytes of this machine's memory, or the limit of one of the process's control groups if that is
/// less; 0 when neither is stated. Does not change while others use memory.
int64_t MemoryLimitBytes(const MemoryFiles& files = {});

/// MemoryLimitBytes, as it was when this process first asked.
int64_t MemoryLimitHere();

/// OK when `ranks` x `bytes` fit; else ResourceExhausted, with the sizes. Small allocations are
/// checked together. Thread-safe.
absl::Status CheckFits(int ranks, int64_t bytes);

/// "1.5 GiB"
std::string SizeText(int64_t bytes);

}  // namespace coconet
