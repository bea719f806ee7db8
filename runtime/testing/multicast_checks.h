#pragma once

#include "absl/status/status.h"
#include "runtime/rank.h"

namespace coconet {

/// Checks worlds of HostDriver with multicast: a multicast address, wherever it begins in a line,
/// stands for the memory of all ranks of the node, and each rank sees what others write there.
absl::Status CheckMulticast(Rank& rank);

}  // namespace coconet
