#ifndef COCONET_RUNTIME_NODE_BUDGET_H_
#define COCONET_RUNTIME_NODE_BUDGET_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace coconet {

/// Where the system says what memory it has; other folders in tests.
struct MemoryFiles {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
};

/// Bytes that this process may still take before the machine, or a control group that it is in,
/// runs out of memory and kills somebody, less a reserve. INT64_MAX where nothing says.
int64_t AvailableBytes(const MemoryFiles& files = {});

/// OK when `ranks` x `bytes` fit; else ResourceExhausted, with the sizes. Small allocations are
/// checked together. Thread-safe.
absl::Status CheckFits(int ranks, int64_t bytes);

/// "1.5 GiB"
std::string SizeText(int64_t bytes);

}  // namespace coconet

#endif  // COCONET_RUNTIME_NODE_BUDGET_H_
