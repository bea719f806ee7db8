#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "bench/harness/row.h"

namespace coconet::bench {

/// A kernel of a plan, and what it takes of a multiprocessor.
struct ProbedKernel {
  std::string label;
  int blocks = 0, threads = 0;
  bool has_footprint = false;  // false: not on a GPU
  int registers = 0, resident_blocks = 0;
  int64_t shared_bytes = 0, stack_bytes = 0;
};

/// What running a line has shown.
struct ProbeResult {
  int line = 0;
  std::string text;      // the line
  std::string schedule;  // in words
  std::string trace, config, protocol;
  int ranks = 0;
  std::string device, note;                // Topology::device, Topology::note
  std::string verified;                    // "at 5 small sizes"; "" : not verified
  double us = 0, low_us = 0, high_us = 0;  // of a step: median, and its 95 % confidence interval
  int samples = 0;
  int64_t bytes = 0;     // that a step must move, on all ranks together; 0: not known
  double copy_gb_s = 0;  // of a copy in the same rounds; 0: none was measured
  double flops = 0;      // of a product, on all ranks together
  std::vector<ProbedKernel> kernels;
  std::vector<std::pair<std::string, double>> launches_us;  // by the GPU's clock, in order
  std::string error;                                        // why it did not run; then times are 0

  double gb_s() const { return us > 0 ? 1e-3 * static_cast<double>(bytes) / us : 0; }
  double of_copy() const { return copy_gb_s > 0 ? gb_s() / copy_gb_s : 0; }
};

/// As bytes, between the processes of one program.
std::string Encode(const ProbeResult& result);
absl::StatusOr<ProbeResult> DecodeProbeResult(absl::string_view bytes);

Row RowOf(const ProbeResult& result);
absl::Span<const Column> ProbeColumns();
/// "line 3: 4.86 ms +- 0.3 %, 1771 GB/s, 0.42 of a copy", or its error.
std::string Summary(const ProbeResult& result);

}  // namespace coconet::bench
