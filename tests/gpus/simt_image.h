#pragma once

#include <string>
#include <vector>

#include "runtime/simt_options.h"

namespace coconet {

/// The binary of kernels for simulated threads. Reports a failure of the compiler to the test.
std::string SimtImage(const char* kernels);

/// Three of each order.
std::vector<SimtOptions> SimtInterleavings();

}  // namespace coconet
