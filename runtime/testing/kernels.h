#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/kernel_abi.h"
#include "runtime/rank.h"

namespace coconet {

/// Hand-written kernels "one_shot_sum", "pass_on", "add_up" and "nothing", and a module of them.
class HandWritten final : public Module {
 public:
  absl::StatusOr<void*> Symbol(absl::string_view name) const override;
};

/// out = the sum of in, f32[count], over the ranks of a node: one step of kernel "one_shot_sum"
/// with buffers "in" (symmetric), "out", flags and epochs.
Plan OneShotSum(const Mesh& mesh, int64_t count, int blocks);

/// out = in, f32[count], of the same rank of the previous stage; zeros in the first stage. One step
/// of kernel "pass_on", which stores in memory of the next stage.
Plan PassOn(const Mesh& mesh, int64_t count, int blocks);

/// values[to] = 1 + the sum of values[of[0]], values[of[1]], ..., modulo 1009, in buffer `values`
/// of i64; kernel "add_up". Without a lock: run too early, it gets another sum.
KernelStep AddUp(int values, int to, const std::vector<int>& of);

}  // namespace coconet
