#ifndef COCONET_RUNTIME_TESTING_KERNELS_H_
#define COCONET_RUNTIME_TESTING_KERNELS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/kernel_abi.h"
#include "runtime/rank.h"

namespace coconet {

/// Kernels written by hand, and a module that holds them: "one_shot_sum" and "nothing".
class HandWritten final : public Module {
 public:
  absl::StatusOr<void*> Symbol(absl::string_view name) const override;
};

/// out = sum over ranks of in, f32[count]: one step of kernel "one_shot_sum" over buffers "in" (symmetric), "out",
/// and the flags and epochs it needs.
Plan OneShotSum(int ranks, int64_t count, int blocks);

}  // namespace coconet

#endif  // COCONET_RUNTIME_TESTING_KERNELS_H_
