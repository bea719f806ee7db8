#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/harness/row.h"
#include "bench/probe/probe_group.h"
#include "bench/probe/probe_lines.h"
#include "runtime/rank.h"

namespace coconet::bench {

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
