#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "bench/gpu/gpu_copy.h"
#include "bench/probe/probe_lines.h"
#include "bench/probe/probe_program.h"
#include "bench/probe/probe_result.h"
#include "runtime/rank.h"

namespace coconet::bench {

struct ProbeOptions {
  bool verify = true;
  double seconds = 0.5;      // of measuring a line
  int64_t copied_bytes = 0;  // by the copy in the same rounds, of all ranks; 0: none is made
  std::string cubins;        // a folder of carried cubins; "": kernels are compiled here
  std::string cache_dir;     // of binaries
  uint64_t seed = 1;         // of data
  std::function<bool()> interrupted;                       // may be empty
  std::function<void(int line)> begins;                    // on rank 0, before a line runs
  std::function<void(const ProbeResult& result)> is_done;  // on rank 0, after it
};

/// Collective. A copy for MeasureStep; null where none is wanted or the GPUs are simulated.
absl::StatusOr<std::unique_ptr<CopyContender>> MakeCopy(Rank& rank, const ProbeOptions& options);
/// Collective. Times `run` in rounds with the copy, which may be null: times and samples of the
/// result, and the copy's speed.
absl::Status MeasureStep(Rank& rank, std::function<absl::Status(int64_t steps)> run,
                         CopyContender* copy, const ProbeOptions& options, ProbeResult& result);

/// Collective. Runs lines of one program and sizes, whose variants share memory: resolves, compiles
/// and loads all; then verifies and times one after the other. What is wrong with one line becomes
/// its result's error. An error of this call means that the world runs nothing more; lines without
/// a result did not run.
absl::Status ProbeGroup(Rank& rank, const ProbeProgram& program, absl::Span<const ProbeLine> lines,
                        const ProbeOptions& options);

/// The sources that running a line takes, those that verify it at small sizes included. Errors name
/// the field.
absl::StatusOr<std::vector<std::string>> SourcesOf(const ProbeLine& line,
                                                   const ProbeProgram& program,
                                                   const AssumedWorld& world);

}  // namespace coconet::bench
