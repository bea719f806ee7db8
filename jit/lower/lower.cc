#include "jit/lower/lower.h"

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/env.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "coconet/schedule/describe.h"
#include "jit/lower/draft.h"
#include "jit/lower/overlap_steps.h"
#include "jit/lower/programs.h"
#include "jit/lower/protocol.h"
#include "jit/lower/unit_steps.h"

namespace coconet {
namespace {

/// What COCONET_DUMP and COCONET_DEBUG ask to see.
void Show(const Schedule& schedule, const Config& config, const Lowered& lowered) {
  const Env& env = GetEnv();
  if (env.Dumps("schedule") || env.Dumps("plan")) {
    const std::string text = absl::StrCat(Print(schedule), "# ", TraceText(schedule.trace()),
                                          "\n# ", Text(config), "\n");
    const std::string name =
        absl::StrCat(schedule.graph().name, "-", Fingerprint(text).substr(0, 12));
    MaybeDump("schedule", name + ".schedule", text);
    MaybeDump("plan", name + ".plan", Print(lowered.plan));
  }
  if (env.debug < 2) return;
  std::string lines =
      absl::StrCat("coconet: lowered ", schedule.graph().name, ": ", Describe(schedule), "; ",
                   Text(config), ": ", lowered.plan.steps.size(), " steps\n");
  if (env.debug >= 3) {
    for (const Transformation& t : schedule.trace())
      absl::StrAppend(&lines, "coconet:   ", Text(t), "\n");
  }
  std::fputs(lines.c_str(), stderr);
}

}  // namespace

absl::StatusOr<Lowered> Lower(const Schedule& schedule, const Config& config,
                              const Target& target) {
  RETURN_IF_ERROR(Validate(
      config, schedule,
      {.ranks = target.ranks, .nodes = target.nodes, .stages_apart = target.stages_apart}));
  ASSIGN_OR_RETURN(Programs programs, Programs::Of(schedule, config, target));
  Draft draft(target);
  UnitSteps steps(config, target, programs, draft);
  const Units& u = programs.units();
  auto chain = u.chains.begin();  // the next one
  for (int unit = 0; unit < static_cast<int>(u.units.size()); ++unit) {
    if (chain != u.chains.end() && chain->first == unit) {
      RETURN_IF_ERROR(AddOverlap(schedule, u, *chain, config, target, steps, draft));
      unit = chain->last;
      ++chain;
      continue;
    }
    RETURN_IF_ERROR(steps.Add({.unit = unit}));
    draft.Continue(/*lane=*/0, /*after=*/-1);
  }
  Lowered lowered = std::move(draft).Finish(programs);
  lowered.protocol = ProtocolOf(u, config);
  Show(schedule, config, lowered);
  return lowered;
}

}  // namespace coconet
