#pragma once

#include <functional>

#include "absl/status/status.h"
#include "runtime/rank.h"

namespace coconet {

// Checks of kernels that send to the next stage: bodies for RunWorld that return what went wrong.

/// Sends several times with different values, with 1 and 3 blocks, in two bound plans at once. If
/// stages share no memory, Bind refuses with the expected message.
absl::Status CheckSendsInKernels(Rank& rank);
/// Runs such a kernel `steps` times; calls before(step) before each.
absl::Status RunSendSteps(Rank& rank, int steps, double timeout_s,
                          const std::function<absl::Status(int)>& before);

}  // namespace coconet
