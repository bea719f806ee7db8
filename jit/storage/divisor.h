#pragma once

#include <cstdint>
#include <vector>

#include "runtime/plan.h"

namespace coconet {

/// The words of a Divisor of the kernel dialect, which divides by `by` without a division: see
/// jit/device/elementwise.h. `by` is from 0 to 2^62; kernels divide by none that is 0.
std::vector<Arg> DivisorWords(int64_t by);

}  // namespace coconet
