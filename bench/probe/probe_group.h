#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "bench/harness/rounds.h"
#include "bench/harness/row.h"
#include "bench/probe/isolated.h"
#include "bench/probe/probe_lines.h"
#include "bench/probe/probe_program.h"
#include "runtime/rank.h"

namespace coconet::bench {

struct ProbeOptions {
  bool verify = true;
  double seconds = 0.5;      // of measuring a line
  int64_t copied_bytes = 0;  // by the copy in the same rounds, of all ranks; 0: none is made
  std::string cubins;        // a folder of carried cubins; "": kernels are compiled here
  std::string cache_dir;     // of binaries
  uint64_t seed = 1;         // of data
  std::function<bool()> interrupted;
  Listener listener;  // on rank 0
};

/// Collective. A copy for MeasureStep; none if it is not wanted or the GPUs are simulated.
absl::StatusOr<std::optional<Contender>> CopyBeside(Rank& rank, const ProbeOptions& options);
/// Collective. Times a step that must move `bytes` on all ranks together (0: not known) in rounds
/// with the copy, if there is one. Sets what the row says of times and speeds, and of the rank.
absl::Status MeasureStep(Rank& rank, Contender step, const std::optional<Contender>& copy,
                         const ProbeOptions& options, int64_t bytes, Row& row);

/// Collective. Runs lines of one program and sizes, whose variants share memory: resolves, compiles
/// and loads all; then verifies and times one after the other. What is wrong with one line becomes
/// its row's error. An error of this call means that the world runs nothing more; lines without a
/// row did not run.
absl::Status ProbeGroup(Rank& rank, const ProbeProgram& program, absl::Span<const ProbeLine> lines,
                        const ProbeOptions& options);

/// The numbers of a line by the names of their words.
using NamedNumbers = std::map<std::string, int64_t>;

/// What other lines are held against, as a line of its own, which has no schedule:
///   copy | bytes=4Gi ranks=1
///   product | M=4096 K=1536 N=12288 dtype=bf16 ranks=2 | | algorithm=0 multiprocessors=56
/// A further one is a row of the table in baselines.cc.
struct ProbeBaseline {
  absl::string_view name, form;
  /// The numbers of a line, "ranks" among them. Errors name the field.
  absl::StatusOr<NamedNumbers> (*parse)(const ProbeLine& line);
  /// Collective. Adds to the row of a line that has these numbers.
  absl::Status (*run)(Rank& rank, const NamedNumbers& numbers, const ProbeOptions& options,
                      Row& row);
};

/// Null: the name is that of a program.
const ProbeBaseline* FindBaseline(absl::string_view name);
std::vector<std::string> BaselineNames();

}  // namespace coconet::bench
