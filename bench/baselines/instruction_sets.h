#pragma once

#include "bench/baselines/kernels.h"

namespace coconet::bench {

// The tables of kernels_of_set.cc, one per instruction set; all plain unless built for x86-64.
extern const Kernels kernels_x86_64_v4, kernels_x86_64_v3, kernels_plain;

}  // namespace coconet::bench
