#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autotune/search/variants.h"
#include "coconet/ir/graph.h"
#include "jit/config/config.h"

namespace coconet {

/// Names variants of a program as records, tables and people write them.
struct Choice {
  /// A schedule's words ("RS; fuse(C); AG p"), its trace ("split(%4, 0); fuse(%2 %3)"), or the text
  /// of a combination of parts; "" or "*": none is named.
  std::string schedule;
  /// A config's text, or some of its words ("vec=4 threads=512"); the plainest config of the
  /// schedule has the rest. "" or "*": none is named.
  std::string config;
  bool empty() const;
};

/// Finds the variants that choices name. They need not be among those that a search tries: a trace
/// that replays, and a legal config, suffice. Errors are InvalidArgument and say what was found and
/// what is nearest to it.
class Chooser {
 public:
  /// `program` is bound. `go_on` as of DeriveOptions; may be null.
  Chooser(Graph program, const ConfigSpace& space, std::function<bool()> go_on = nullptr);

  /// One variant: the baseline's schedule if none is named, the plainest config if none is named.
  absl::StatusOr<Variant> One(const Choice& choice);
  /// Every variant that fits: each schedule with the words, with each of its configs if none is
  /// named. The first is the baseline.
  absl::StatusOr<VariantSet> All(const Choice& choice);

 private:
  const std::vector<Schedule>& Derived();
  /// The schedules that the text names; an error if there are none.
  absl::StatusOr<std::vector<Schedule>> Named(absl::string_view text);
  absl::Status NoneHas(absl::string_view text, absl::string_view why, bool by_trace);
  absl::StatusOr<Schedule> Baseline();
  absl::StatusOr<Config> ConfigNamed(const Schedule& schedule, absl::string_view text) const;
  absl::StatusOr<Variant> Combined(const Choice& choice) const;

  const Graph program_;
  const ConfigSpace space_;
  const std::function<bool()> go_on_;
  std::optional<std::vector<Schedule>> derived_;
  absl::Status deriving_;  // why there are none
};

}  // namespace coconet
