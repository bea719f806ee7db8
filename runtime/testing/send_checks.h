#ifndef COCONET_RUNTIME_TESTING_SEND_CHECKS_H_
#define COCONET_RUNTIME_TESTING_SEND_CHECKS_H_

#include <functional>

#include "absl/status/status.h"
#include "runtime/rank.h"

namespace coconet {

// Of kernels that send to the next stage; bodies for RunWorld that return what went wrong.

/// Several times over, with other values each, with 1 and 3 blocks, in two bound plans at once; in
/// words refused where stages share no memory.
absl::Status CheckSendsInKernels(Rank& rank);
/// Runs such a kernel `steps` times; before each of them calls `before` with its number.
absl::Status RunSendSteps(Rank& rank, int steps, double timeout_s,
                          const std::function<absl::Status(int)>& before);

}  // namespace coconet

#endif  // COCONET_RUNTIME_TESTING_SEND_CHECKS_H_
