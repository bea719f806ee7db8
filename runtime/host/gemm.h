#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/host/matmul.h"
#include "runtime/host/rows_matmul.h"
#include "runtime/node/gemm_problem.h"
#include "runtime/plan.h"

namespace coconet {

/// The values of GemmStep::candidate on hosts. A product for which a way does not exist takes the
/// first.
enum class GemmWay : int {
  kPlain,   // b as it is stored
  kPacked,  // b in the order that the library prefers, rearranged once for all steps that share it
  kGemm,    // of f32: the library's sgemm, which may differ from its matmul
};
inline constexpr int kGemmWays = 3;

/// A bound GemmStep of one rank: addresses known, everything allocated. A kernel with one
/// block per thread.
class Gemm {
 public:
  /// `a`, `b`, `c`: addresses of the buffers, of a and b with those of their scales; `counts`: of
  /// step.rows' buffer, or null. `first`: the product whose rearranged copy of b is used, and which
  /// always runs earlier; null: none. Requires CheckGemm.
  static absl::StatusOr<std::unique_ptr<Gemm>> Create(const GemmStep& step, int rank,
                                                      MatmulOperand a, MatmulOperand b, void* c,
                                                      const int32_t* counts, const Gemm* first);

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
  Gemm(const GemmStep& step, MatmulOperand a, MatmulOperand b, void* c);
  absl::Status MakeMatmul(Part& part, GemmWay way, const Gemm* first);
  std::shared_ptr<MatmulWeights> WeightsFor(const GemmProblem& problem) const;
  /// Returns false when the library fails.
  bool RunPart(Part& part);
  bool RunRowsInUse(Part& part);
  /// Matrix t of an operand, and its scales.
  MatmulOperand OperandA(const GemmProblem& p, int64_t t) const;
  MatmulOperand OperandB(const GemmProblem& p, int64_t t) const;
  void FillWithZeros(const GemmProblem& problem) const;

  DType dtype_;
  std::optional<DType> float8_a_, float8_b_;
  int64_t a_size_, b_size_, c_size_;  // bytes of an element
  MatmulOperand a_, b_;
  char* c_;
  GemmStep::Rows rows_;
  const int32_t* counts_ = nullptr;
  std::vector<Part> parts_;  // each is used by one thread
  std::atomic<bool> failed_{false};
};

}  // namespace coconet
