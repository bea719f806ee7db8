#include "bench/harness/contenders.h"

#include <utility>

#include "coconet/base/status.h"

namespace coconet::bench {

void Contenders::AddStep(absl::string_view side, std::function<absl::Status()> step,
                         absl::string_view form) {
  Add(EachStep(std::string(side), std::move(step), std::string(form)));
}

void Contenders::AddTuned(absl::string_view side, Run run, const TuningRecord& record) {
  Add({std::string(side), std::move(run)});
  AddFact("variant", Words(record.best), side);
}

absl::Status Contenders::Tune(absl::string_view side, const Graph& program, const Admits& admits,
                              const Numbers& numbers) {
  SessionOptions options = options_;
  options.admits = admits;
  ASSIGN_OR_RETURN(tuned_.emplace_back(), TunedContender::Make(rank_, options, program, numbers));
  TunedContender& made = last();
  AddTuned(side, [&made](int64_t steps) { return made.Run(steps); }, made.program().record());
  return absl::OkStatus();
}

void Contenders::AddFact(absl::string_view fact, const absl::AlphaNum& detail,
                         absl::string_view name) {
  facts_.push_back({.side = std::string(fact),
                    .name = std::string(name),
                    .detail = std::string(detail.Piece())});
}

absl::StatusOr<std::vector<Finding>> Contenders::Measure(const RoundTerms& terms) const {
  ASSIGN_OR_RETURN(const std::vector<Finding> measured, MeasureInRounds(rank_, contenders_, terms));
  std::vector<Finding> findings = facts_;
  findings.insert(findings.end(), measured.begin(), measured.end());
  return findings;
}

}  // namespace coconet::bench
