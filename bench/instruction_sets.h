#ifndef COCONET_BENCH_INSTRUCTION_SETS_H_
#define COCONET_BENCH_INSTRUCTION_SETS_H_

#include "bench/kernels.h"

namespace coconet::bench {

// kernels_of_set.cc, compiled for each; where the build is not for x86-64, all are the plain one.
extern const Kernels kernels_x86_64_v4, kernels_x86_64_v3, kernels_plain;

}  // namespace coconet::bench

#endif  // COCONET_BENCH_INSTRUCTION_SETS_H_
