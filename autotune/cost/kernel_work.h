#pragma once

#include <cstdint>
#include <vector>

#include "autotune/cost/work.h"
#include "coconet/ir/typed_graph.h"

namespace coconet {

/// Elements and bytes of a tensor of a bound shape on the rank that has most of it.
int64_t ElementsOnRank(const TensorType& type, int ranks);
double BytesOnRank(const TensorType& type, int ranks);

/// Elements of a loop: those in packs, which begin at multiples of kCountedPack, and those before
/// and behind the packs.
struct Lanes {
  double in_packs = 0, alone = 0;
};
/// The lanes of runs of `run` elements, one after the other.
Lanes LanesOf(int64_t elements, int64_t run);

/// WorkOf for a kernel.
Work WorkOfKernel(const TypedGraph& program, const std::vector<NodeId>& kernel, int ranks);

}  // namespace coconet
