#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/compiler/kernel_cases.h"
#include "bench/harness/rounds.h"
#include "bench/harness/row.h"
#include "jit/compile/compiler.h"
#include "jit/lower/lower.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// A case's most fused schedule for some ranks and rows, by packs of a vector of f32: one plan with
/// plain stores and one with streaming stores, with their binaries.
struct CompiledKernels {
  struct Form {
    std::string stores;  // "plain", "streaming"
    Lowered lowered = {};
    std::string binary = {};
  };
  std::vector<Form> forms;
  double lower_s = 0;  // of one form
};
absl::StatusOr<CompiledKernels> CompileCase(const KernelCase& c, int64_t rows, int ranks,
                                            int vector_bytes, Compiler& compiler);

/// Collective: every rank runs the kernel on memory of its own, in the same rounds as plain streams
/// of the same bytes, each with plain and with streaming stores, of which the faster counts. Fields
/// besides the common ones: "form", "rows", "gb_s" and "limit_gb_s" of all ranks together,
/// "spread" and "limit_spread", "ours_stores" and "limit_stores".
absl::StatusOr<Row> MeasureKernel(Rank& rank, const KernelCase& c, int64_t rows,
                                  const CompiledKernels& kernels, const RoundTerms& terms);

}  // namespace coconet::bench
