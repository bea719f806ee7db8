#ifndef COCONET_RUNTIME_HOST_GEMM_H_
#define COCONET_RUNTIME_HOST_GEMM_H_

#include <atomic>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/host/matmul.h"
#include "runtime/node/gemm_problem.h"
#include "runtime/plan.h"

namespace coconet {

/// A GemmStep of one rank, with its addresses and everything it needs prepared: a kernel with one
/// block a thread.
class Gemm {
 public:
  /// Whose rearranged b is used: `first`'s, which has run before whenever this runs; else `shares`:
  /// its own, which others use. Where the library has nothing better than b as it lies, that is
  /// used.
  struct Weights {
    bool shares = false;
    const Gemm* first = nullptr;
  };
  /// `a`, `b`, `c`: the buffers' addresses. Requires CheckGemm.
  static absl::StatusOr<std::unique_ptr<Gemm>> Create(const GemmStep& step, int rank, const void* a,
                                                      const void* b, void* c,
                                                      const Weights& weights);

  /// A HostKernel, whose parameter is the Gemm, to be run with step.threads blocks.
  static void Run(const void* gemm, int block, int blocks);
  /// True when a Run has failed: then c is incomplete.
  bool failed() const { return failed_.load(std::memory_order_relaxed); }

 private:
  struct Part {
    GemmProblem problem;
    std::unique_ptr<Matmul> matmul;  // of one batch; null where there is nothing to sum
    std::shared_ptr<MatmulWeights> weights = nullptr;  // null: b as it lies
    bool packs = false;                                // these, before each product
  };
  Gemm(DType dtype, const void* a, const void* b, void* c);
  absl::Status MakeMatmul(Part& part, const Weights& weights);
  std::shared_ptr<MatmulWeights> WeightsFor(const GemmProblem& problem) const;
  /// False when the library failed.
  bool RunPart(const Part& part) const;
  void FillWithZeros(const GemmProblem& problem) const;

  DType dtype_;
  const char* a_;
  const char* b_;
  char* c_;
  std::vector<Part> parts_;
  mutable std::atomic<bool> failed_{false};  // Run gets a const address, as every kernel
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_HOST_GEMM_H_
