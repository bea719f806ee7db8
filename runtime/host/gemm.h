#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/host/matmul.h"
#include "runtime/host/rows_matmul.h"
#include "runtime/node/gemm_problem.h"
#include "runtime/plan.h"

namespace coconet {

/// A bound GemmStep of one rank: addresses known, everything allocated. A kernel with one
/// block per thread.
class Gemm {
 public:
  /// Which rearranged copy of b is used: that of `first`, which always runs earlier; else,
  /// with `shares`, an own one that later products share. b itself, where the library has
  /// no better order.
  struct Weights {
    bool shares = false;
    const Gemm* first = nullptr;
  };
  /// `a`, `b`, `c`: addresses of the buffers; `counts`: of that of step.rows, null without.
  /// Requires CheckGemm.
  static absl::StatusOr<std::unique_ptr<Gemm>> Create(const GemmStep& step, int rank, const void* a,
                                                      const void* b, void* c, const int32_t* counts,
                                                      const Weights& weights);

  /// A HostKernel whose parameter is the Gemm. Must be called with step.threads blocks.
  static void Run(const void* gemm, int block, int blocks);
  /// True when a Run has failed; c is then incomplete.
  bool failed() const { return failed_.load(std::memory_order_relaxed); }

 private:
  struct Part {
    GemmProblem problem;
    std::unique_ptr<Matmul> matmul;                    // of one batch; null: c becomes zeros
    std::unique_ptr<RowsMatmul> of_rows = nullptr;     // instead of `matmul`, with counts
    std::vector<Range> ranges = {};                    // scratch: of rows in use
    std::shared_ptr<MatmulWeights> weights = nullptr;  // null: b as stored
    bool packs = false;                                // rearranges b into `weights` in each Run
  };
  Gemm(DType dtype, const void* a, const void* b, void* c);
  absl::Status MakeMatmul(Part& part, const Weights& weights);
  std::shared_ptr<MatmulWeights> WeightsFor(const GemmProblem& problem) const;
  /// Returns false when the library fails.
  bool RunPart(Part& part);
  bool RunRowsInUse(Part& part);
  void FillWithZeros(const GemmProblem& problem) const;

  DType dtype_;
  const char* a_;
  const char* b_;
  char* c_;
  GemmStep::Rows rows_;
  const int32_t* counts_ = nullptr;
  std::vector<Part> parts_;  // each is used by one thread
  std::atomic<bool> failed_{false};
};

}  // namespace coconet
