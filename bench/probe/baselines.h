#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/probe/probe_group.h"
#include "bench/probe/probe_lines.h"
#include "bench/probe/probe_result.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// NAME=VALUE words of a line's field.
class NamedNumbers {
 public:
  /// `known` names all that may be there. Errors name the field, the word, and the nearest known.
  static absl::StatusOr<NamedNumbers> Parse(absl::string_view field, absl::string_view text,
                                            const std::vector<std::string>& known);
  /// A size as sweep spells it, from `least` to `most`; `otherwise` where it is not there, and
  /// where there is none InvalidArgument.
  absl::StatusOr<int64_t> Number(absl::string_view name, int64_t least, int64_t most,
                                 std::optional<int64_t> otherwise = std::nullopt) const;
  /// "" where it is not there.
  std::string Text(absl::string_view name) const;

 private:
  std::string field_;
  std::vector<std::pair<std::string, std::string>> words_;
};

/// What other lines are held against, as a line of its own, which has no schedule:
///   copy | bytes=4Gi ranks=1
///   product | M=4096 K=1536 N=12288 dtype=bf16 ranks=2 | | algorithm=0 multiprocessors=56
/// A further one is a row of the table in baselines.cc.
struct ProbeBaseline {
  absl::string_view name, form;
  /// The ranks that the line wants. Errors name the field.
  absl::StatusOr<int> (*ranks)(const ProbeLine& line);
  /// Collective.
  absl::StatusOr<ProbeResult> (*run)(Rank& rank, const ProbeLine& line,
                                     const ProbeOptions& options);
};

/// Null: the name is that of a program.
const ProbeBaseline* FindBaseline(absl::string_view name);
std::vector<std::string> BaselineNames();

}  // namespace coconet::bench
