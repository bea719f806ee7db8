#pragma once

#include <string>
#include <vector>

#include "bench/harness/row.h"
#include "bench/machine_code/kernels.h"

namespace coconet::bench {

/// The loop over packs that a kernel spends its time in: that of the most instructions; null if it
/// has none.
const LoopFacts* MainLoop(const CountedKernel& kernel);

/// What the counts must be: rows of "case", "bar" (what is wanted), "found" and "met", for the
/// kernels that are there.
std::vector<Row> BarRowsOf(const std::vector<CountedKernel>& kernels);
/// A kernel with its main loop, and all loops as "loops".
Row RowOf(const CountedKernel& kernel);

/// Accesses under 4 bytes in loops over packs, by their places, with the workloads that have them.
std::string NarrowText(const std::vector<CountedKernel>& kernels);

}  // namespace coconet::bench
