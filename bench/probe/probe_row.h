#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "bench/harness/row.h"
#include "bench/probe/probe_lines.h"
#include "runtime/plan.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// The row of a line that has not run yet. Texts and lists that are set later are empty.
Row RowOf(const ProbeLine& line, int ranks);
/// The row of a line that did not run.
Row Failed(const ProbeLine& line, const absl::Status& why, int ranks = 0);
/// Sets what the kernels of a plan take of a multiprocessor.
absl::Status SetKernels(Row& row, const Plan& plan, const Module& module);
/// Collective. Sets how long launches take by the GPU's clock, in order.
absl::Status SetLaunches(Row& row, Rank& rank, BoundPlan& bound);

/// A row as bytes, to be sent to another process of this program, and back.
std::string Encode(const Row& row);
absl::StatusOr<Row> DecodeRow(absl::string_view bytes);

absl::Span<const Column> ProbeColumns();
/// "line 3: 4.86 ms +- 0.3 %, 1771 GB/s, 0.42 of a copy", or its error.
std::string Summary(const Row& row);

}  // namespace coconet::bench
