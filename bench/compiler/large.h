#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/harness/row.h"
#include "coconet/ir/graph.h"

namespace coconet::bench {

/// One vector through so many elementwise operations, each of which takes the one before it.
Graph ChainProgram(int64_t operations);

/// A vector added up so many times, from left to right.
Graph SumProgram(int64_t terms);
/// p -= g * min(1, 1 / norm) over so many tensors, with the norm of all gradients together.
Graph ClipProgram(int64_t tensors);

/// Derives the schedules of a program, analyses it (InitialSchedule, Describe, Configs), and lowers
/// its plain schedule with the first config, for four ranks; `rounds` times. The row's fields:
/// "case", "operations", "schedules", the fastest times as "derive_s", "analyse_s" and "lower_s"
/// (the plain schedule), "lower_fused_s" (the last one, usually the most fused), "characters" (of
/// that one's kernels), their sum "all_s", and "rounds". Errors are those of deriving and lowering.
absl::StatusOr<Row> MeasureLarge(absl::string_view name, const Graph& program, int rounds);

}  // namespace coconet::bench
