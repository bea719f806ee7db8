#ifndef COCONET_RUNTIME_TESTING_KERNELS_H_
#define COCONET_RUNTIME_TESTING_KERNELS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/kernel_abi.h"
#include "runtime/rank.h"

namespace coconet {

/// Kernels written by hand, and a module that holds them: "one_shot_sum", "pass_on", "add_up" and
/// "nothing".
class HandWritten final : public Module {
 public:
  absl::StatusOr<void*> Symbol(absl::string_view name) const override;
};

/// out = sum over the ranks of a node of in, f32[count]: one step of kernel "one_shot_sum" over
/// buffers "in" (symmetric), "out", and the flags and epochs it needs.
Plan OneShotSum(const Mesh& mesh, int64_t count, int blocks);

/// out = the in, f32[count], of the rank at this one's place of the stage before, zeros in the
/// first: one step of kernel "pass_on", which stores in the memory of the stage after.
Plan PassOn(const Mesh& mesh, int64_t count, int blocks);

/// values[to] = 1 + the sum of values[of[0]], values[of[1]], ..., modulo 1009, in buffer `values`
/// of i64; kernel "add_up". Without a lock: who runs it too early gets another sum.
KernelStep AddUp(int values, int to, const std::vector<int>& of);

}  // namespace coconet

#endif  // COCONET_RUNTIME_TESTING_KERNELS_H_
