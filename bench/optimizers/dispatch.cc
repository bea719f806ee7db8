#include "bench/optimizers/dispatch.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "bench/optimizers/calls.h"
#include "bench/optimizers/cell.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"
#include "coconet/language/language.h"
#include "runtime/plan.h"

namespace coconet::bench {
namespace {

void Nothing(const void* /*params*/, int /*block*/, int /*blocks*/) {}

class NothingModule final : public Module {
 public:
  absl::StatusOr<void*> Symbol(absl::string_view /*name*/) const override {
    return reinterpret_cast<void*>(&Nothing);
  }
};

/// x <- x + 1, one element.
absl::StatusOr<Graph> SmallestProgram() {
  Program program("count");
  const Tensor x = program.State("x", DType::kF32, {1}, Layout::Replicated());
  Update(x, x + 1);
  return program.graph();
}

template <class Bound>
Contender Repeat(const std::string& name, Bound& bound) {
  return {name, [&bound](int64_t steps) {
            for (int64_t i = 0; i < steps; ++i) {
              RETURN_IF_ERROR(bound.Run());
            }
            return absl::OkStatus();
          }};
}

absl::StatusOr<std::vector<Finding>> CountCalls(const Contender& contender, const Cell& cell) {
  RETURN_IF_ERROR(contender.run(1));
  const Calls before = CallsSoFar();
  RETURN_IF_ERROR(contender.run(1000));
  const Calls after = CallsSoFar();
  const auto fact = [&](absl::string_view what, int64_t count) {
    return Finding{.side = std::string(what),
                   .of = Text(cell),
                   .name = contender.name,
                   .detail = absl::StrCat(count)};
  };
  return std::vector<Finding>{fact("allocations", after.allocations - before.allocations),
                              fact("locks", after.locks - before.locks)};
}

}  // namespace

absl::StatusOr<std::vector<Finding>> MeasureDispatch(Rank& rank, const SessionOptions& options,
                                                     const RoundTerms& terms) {
  const Plan empty = {.ranks = 1,
                      .buffers = {},
                      .steps = {KernelStep{.symbol = "nothing", .args = {}, .label = "nothing"}}};
  const NothingModule module;
  ASSIGN_OR_RETURN(const std::unique_ptr<BoundPlan> plan,
                   rank.Bind(empty, module, {}, GetEnv().timeout_s));

  Session session(rank, options);
  ASSIGN_OR_RETURN(const TunedProgram smallest, session.Compile(SmallestProgram()));
  ASSIGN_OR_RETURN(BoundProgram program, smallest.Bind({}));

  const std::vector<Contender> contenders = {Repeat("BoundPlan::Run", *plan),
                                             Repeat("BoundProgram::Run", program)};
  ASSIGN_OR_RETURN(const std::vector<Measured> measured, MeasureInRounds(rank, contenders, terms));
  const Cell cell = {.dtype = DType::kF32, .n = 1};
  std::vector<Finding> findings;
  for (size_t i = 0; i < contenders.size(); ++i) {
    findings.push_back({.side = "ours",
                        .of = Text(cell),
                        .name = contenders[i].name,
                        .timing = measured[i].timing,
                        .steps = measured[i].steps,
                        .preempted = measured[i].preempted});
    ASSIGN_OR_RETURN(const std::vector<Finding> calls, CountCalls(contenders[i], cell));
    findings.insert(findings.end(), calls.begin(), calls.end());
  }
  return findings;
}

}  // namespace coconet::bench
