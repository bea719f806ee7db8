#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "coconet/ir/op.h"
#include "jit/config/config.h"
#include "jit/config/target.h"
#include "jit/expressions/kernel_text.h"
#include "jit/launches/pieces.h"
#include "jit/launches/placed_launches.h"
#include "jit/storage/buffers.h"
#include "runtime/plan.h"

namespace coconet {

/// A launch's one collective, as a library does it.
struct LibraryCall {
  /// One step; more if the elements are in several ranges, of a piece or of the parts of nodes.
  std::vector<CollectiveStep> steps;
  /// For an all-to-all of GPUs, or of columns: the kernels that copy its operand to the blocks that
  /// a library takes, and the blocks that it brings to its result.
  std::optional<EmittedKernel> before = {}, after = {};
};

/// The call for the whole launch, or for one piece of an overlap's tensors. Adds to `table` the
/// buffers that it needs for itself.
LibraryCall LibraryCallOf(const PlacedLaunches& u, const PlacedLaunch& launch, const Config& config,
                          const Target& target, const Piece* piece, BufferTable& table);

/// The bytes that a step of a library moves on one rank.
int64_t LibraryBytes(const CollectiveStep& step, const Target& target);

}  // namespace coconet
