#ifndef COCONET_RUNTIME_TESTING_MULTICAST_CHECKS_H_
#define COCONET_RUNTIME_TESTING_MULTICAST_CHECKS_H_

#include "absl/status/status.h"
#include "runtime/rank.h"

namespace coconet {

/// Of worlds on the driver of tests that have multicast: an address of memory, wherever it begins
/// in a line, stands for that of all ranks of the node, each of which sees what others write there.
absl::Status CheckMulticast(Rank& rank);

}  // namespace coconet

#endif  // COCONET_RUNTIME_TESTING_MULTICAST_CHECKS_H_
