#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "bench/harness/row.h"

namespace coconet::bench {

/// Lowers the most fused schedule of a training step of GPT-2 of so many layers for two ranks, and
/// compiles its kernels for this processor, from nothing, three times. The row's fields: "layers",
/// "operations", "kernels" (distinct ones), "compile_s" (the fastest).
absl::StatusOr<Row> MeasureLayers(int64_t layers);

}  // namespace coconet::bench
