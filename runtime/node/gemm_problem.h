#ifndef COCONET_RUNTIME_NODE_GEMM_PROBLEM_H_
#define COCONET_RUNTIME_NODE_GEMM_PROBLEM_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "coconet/base/dtype.h"
#include "runtime/plan.h"

namespace coconet {

/// Where the elements of a batch of matrices are, counted from the start of their buffer: (i, j) of
/// batch t is at begin + t * batch + i * row + j * col, and one of `row` and `col` is 1.
struct MatrixView {
  int64_t begin = 0, batch = 0, row = 0, col = 1;
  MatrixView At(int64_t t, int64_t i, int64_t j) const {
    return {begin + t * batch + i * row + j * col, batch, row, col};
  }
  bool operator==(const MatrixView&) const = default;
};

/// What one rank, or one of its threads, computes of a GemmStep: for each t < batch, c(t)[m, n] =
/// a(t)[m, k] . b(t)[k, n].
struct GemmProblem {
  int64_t batch = 0, m = 0, n = 0, k = 0;
  MatrixView a, b, c;
  bool operator==(const GemmProblem&) const = default;
};

/// OK when the step reads and writes inside `buffers` on every rank, and no element of c is written
/// twice or read; else InvalidArgument.
absl::Status CheckGemm(const GemmStep& step, absl::Span<const Buffer> buffers);

/// Requires CheckGemm. A batch that is one tall matrix becomes one.
GemmProblem ProblemOf(const GemmStep& step, int rank);

/// OK when the step's candidate is one of the `count` that there are; else OutOfRange.
absl::Status CheckCandidate(const GemmStep& step, int count);

/// As many problems as `parts`, which together are `whole`, of about the same work; some may be
/// empty.
std::vector<GemmProblem> Cut(const GemmProblem& whole, int parts);

}  // namespace coconet

#endif  // COCONET_RUNTIME_NODE_GEMM_PROBLEM_H_
