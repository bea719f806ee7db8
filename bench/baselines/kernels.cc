#include "bench/baselines/kernels.h"

namespace coconet::bench {

const Kernels& BestKernels() {
#if defined(__x86_64__)
  static const Kernels& best = __builtin_cpu_supports("x86-64-v4")   ? kernels_x86_64_v4
                               : __builtin_cpu_supports("x86-64-v3") ? kernels_x86_64_v3
                                                                     : kernels_plain;
  return best;
#else
  return kernels_plain;
#endif
}

}  // namespace coconet::bench
