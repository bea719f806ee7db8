#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/machine_code/facts.h"
#include "coconet/base/dtype.h"
#include "jit/compile/testing/cubin.h"
#include "tests/kernels/kernel_set.h"

namespace coconet::bench {

/// A kernel that a workload's variant launches.
struct KernelOrigin {
  std::string symbol;
  std::string workload;
  DType dtype{};
  int ranks = 0;
  std::string schedule;  // Describe
  std::string label;     // of the kernel in it: "fuse(RS, C)"
  std::string config;    // what decides about the text
  int threads = 0;
  bool bulk = false;
};

/// What to collect. Empty lists: all of them.
struct Selection {
  std::vector<std::string> workloads;
  std::vector<DType> dtypes;
  std::vector<int> ranks;
  /// All schedules of every workload and all configs that differ in their text; else those
  /// schedules that win, and of their configs those that load packs of different sizes.
  bool every = false;
};

/// The kernels of all that is selected, and where each comes from.
struct CollectedKernels {
  KernelSet set;
  std::vector<KernelOrigin> origins;
};
absl::StatusOr<CollectedKernels> CollectKernels(const Selection& selection);

/// A kernel of a variant and its machine code for one architecture.
struct CountedKernel {
  KernelOrigin origin;
  std::string architecture;
  KernelResources resources;
  std::vector<LoopFacts> loops;
};

/// Compiles the kernels for `architecture`, on all cores, and reads their machine code; of each
/// origin, in their order. Unavailable, saying what to do, without NVRTC or nvdisasm.
absl::StatusOr<std::vector<CountedKernel>> ReadMachineCode(const CollectedKernels& kernels,
                                                           absl::string_view architecture,
                                                           const std::string& cache_dir);

}  // namespace coconet::bench
