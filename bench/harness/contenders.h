#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "bench/harness/finding.h"
#include "bench/harness/rounds.h"
#include "bench/harness/tuned_contender.h"
#include "coconet/ir/graph.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// What a rank of a worker finds: the times of sides in the same rounds, and facts about them.
class Contenders {
 public:
  using Run = std::function<absl::Status(int64_t steps)>;

  Contenders(Rank& rank, double budget_s) : rank_(rank) { options_.budget_s = budget_s; }
  Rank& rank() const { return rank_; }
  /// Those of the programs tuned from now on.
  SessionOptions& options() { return options_; }

  /// A side may be added in several forms.
  void Add(Contender contender) { contenders_.push_back(std::move(contender)); }
  /// The same, of what runs one step.
  void AddStep(absl::string_view side, std::function<absl::Status()> step,
               absl::string_view form = "");
  /// A side of ours. A fact "variant" of its name tells what was picked.
  void AddTuned(absl::string_view side, Run run, const TuningRecord& record);
  /// Collective. Tunes the program, among some of its schedules, and adds it.
  absl::Status Tune(absl::string_view side, const Graph& program, const Admits& admits = nullptr,
                    const Numbers& numbers = NumberAt);
  /// A fact, of side `name` if it is of one.
  void AddFact(absl::string_view fact, const absl::AlphaNum& detail, absl::string_view name = "");

  const std::vector<Contender>& timed() const { return contenders_; }  // by side
  /// What Tune has tuned; the last.
  const std::vector<std::unique_ptr<TunedContender>>& tuned() const { return tuned_; }
  TunedContender& last() const { return *tuned_.back(); }

  /// Collective: the facts, and a time of each side and form.
  absl::StatusOr<std::vector<Finding>> Measure(const RoundTerms& terms) const;

 private:
  Rank& rank_;
  SessionOptions options_;
  std::vector<Contender> contenders_;
  std::vector<Finding> facts_;
  std::vector<std::unique_ptr<TunedContender>> tuned_;
};

}  // namespace coconet::bench
