#pragma once

#include <string>
#include <vector>

#include "bench/harness/row.h"
#include "bench/machine_code/kernels.h"

namespace coconet::bench {

/// A kernel of a variant and its machine code for one architecture.
struct CountedKernel {
  KernelOrigin origin;
  std::string architecture;
  KernelFacts facts;
};

/// The loop over packs that a kernel spends its time in: that of the most instructions.
const LoopFacts* MainLoop(const KernelFacts& facts);
/// Machine instructions an element: of the whole text of the loop, rare parts included.
double InstructionsPerElement(const LoopFacts& loop);

/// What the counts must be. Its row is printed whether it holds or not.
struct CountBar {
  std::string what, wanted, found;
  bool met = false;
  bool asserted = false;  // by machine_code_test
};
// The bars, and which of them machine_code_test asserts: those that the kernels have reached.
inline constexpr bool kAssertsNarrow = true, kAssertsInFlight = true, kAssertsAdam = true,
                      kAssertsAllReduce = true, kAssertsBulk = true;
inline constexpr int kBarNarrow = 0;
inline constexpr int kBarBytesInFlight = 128;  // a thread
inline constexpr int kBarRegisters = 96;
inline constexpr double kBarAdam = 56;          // instructions an element
inline constexpr double kBarAllReduce = 10;     // likewise
inline constexpr int kBarBulkBytes = 32 << 10;  // in flight a block

/// Empty for what no kernel is there.
std::vector<CountBar> BarsOf(const std::vector<CountedKernel>& kernels);

std::string BarsText(const std::vector<CountBar>& bars);
/// One line a kernel.
std::string KernelsText(const std::vector<CountedKernel>& kernels);
/// Accesses under 4 bytes in loops over packs, by their places, with the workloads that have them.
std::string NarrowText(const std::vector<CountedKernel>& kernels);
/// The rows of the bars, then of the kernels with their loops.
std::vector<Row> RowsOf(const std::vector<CountBar>& bars,
                        const std::vector<CountedKernel>& kernels);

}  // namespace coconet::bench
