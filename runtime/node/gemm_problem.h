#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/plan.h"

namespace coconet {

/// Where a batch of matrices lies in its buffer, in elements: (i, j) of batch t is at begin + t *
/// batch + i * row + j * col. Either `row` or `col` is 1.
struct MatrixView {
  int64_t begin = 0, batch = 0, row = 0, col = 1;
  MatrixView At(int64_t t, int64_t i, int64_t j) const {
    return {begin + t * batch + i * row + j * col, batch, row, col};
  }
  bool operator==(const MatrixView&) const = default;
};

/// Where the scales of a batch of matrices lie in their buffer: that of element (i, j) of batch t
/// is at begin + t * batch + (first_row + i) / block_rows * row + (first_col + j) / block_cols *
/// col.
struct ScaleView {
  int64_t begin = 0, batch = 0, row = 0, col = 0;
  int64_t block_rows = 1, block_cols = 1, first_row = 0, first_col = 0;
  ScaleView At(int64_t t, int64_t i, int64_t j) const {
    ScaleView view = *this;
    view.begin += t * batch;
    view.first_row += i;
    view.first_col += j;
    return view;
  }
  bool operator==(const ScaleView&) const = default;
};

/// The part of a GemmStep that one rank or one of its threads computes: for each t < batch,
/// c(t)[m, n] = a(t)[m, k] . b(t)[k, n].
struct GemmProblem {
  int64_t batch = 0, m = 0, n = 0, k = 0;
  MatrixView a, b, c;
  std::optional<ScaleView> scales_a = std::nullopt, scales_b = std::nullopt;
  bool operator==(const GemmProblem&) const = default;
};

/// OK when the step stays inside `buffers` on every rank and its c overlaps neither itself, a nor
/// b; else InvalidArgument.
absl::Status CheckGemm(const GemmStep& step, absl::Span<const Buffer> buffers);

/// The problem of `rank`. Requires CheckGemm. Consecutive batches are merged into one tall matrix.
GemmProblem ProblemOf(const GemmStep& step, int rank);

/// OK when step.candidate < count; else OutOfRange.
absl::Status CheckCandidate(const GemmStep& step, int count);

/// Cuts `whole` into `parts` problems of about equal work; some may be empty.
std::vector<GemmProblem> CutEvenly(const GemmProblem& whole, int parts);
/// The same, but each part has columns of all rows.
std::vector<GemmProblem> CutColumns(const GemmProblem& whole, int parts);

}  // namespace coconet
