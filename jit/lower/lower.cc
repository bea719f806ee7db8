#include "jit/lower/lower.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "coconet/base/env.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "coconet/ir/lists.h"
#include "coconet/schedule/describe.h"
#include "jit/config/batches.h"
#include "jit/config/lanes.h"
#include "jit/lower/draft.h"
#include "jit/lower/outlasting.h"
#include "jit/lower/programs.h"
#include "jit/lower/protocol.h"
#include "jit/lower/unit_steps.h"

namespace coconet {
namespace {

using LastSteps = std::array<int, kLanes>;  // by lane; -1: none

/// Piece k of a launch comes when piece k + 1 of the launch before it has begun.
absl::Status AddPieces(const std::vector<UnitPart>& pieces, const Units& u,
                       const Units::Chain& chain, UnitSteps& steps, Draft& draft) {
  const int count = static_cast<int>(pieces.size()), units = chain.last - chain.first + 1;
  std::vector<LastSteps> last(count, {draft.LastStepOn(0), draft.LastStepOn(1)});  // of each piece
  for (int time = 0; time < count + units - 1; ++time) {
    // Within a time step, later launches first: what they wait for is done, and the collectives
    // behind them get something to move.
    for (int i = units - 1; i >= 0; --i) {
      const int k = time - i, unit = chain.first + i;
      if (k < 0 || k >= count) continue;
      const int lane = steps.LaneOf(u.units[unit]), before = draft.size();
      draft.Continue(lane, last[k][1 - lane]);
      UnitPart part = pieces[k];
      part.unit = unit;
      RETURN_IF_ERROR(steps.Add(part));
      if (draft.size() > before) last[k][lane] = draft.size() - 1;
    }
  }
  return absl::OkStatus();
}

/// The kernel that takes a product's tiles goes on from where the product does, on the other lane.
/// The other launches follow one another.
absl::Status AddTiled(const Units& u, const Units::Chain& chain, UnitSteps& steps, Draft& draft) {
  for (int unit = chain.first; unit <= chain.last; ++unit) {
    const int lane = steps.LaneOf(u.units[unit]), before = draft.LastStepOn(0);
    const bool signals = lane == 0 && unit < chain.last &&
                         ProductOf(u.graph(), u.units[unit]) >= 0 && !u.units[unit + 1].library &&
                         steps.LaneOf(u.units[unit + 1]) == 1;
    draft.Continue(lane, draft.LastStepOn(1 - lane));
    if (!signals) {
      RETURN_IF_ERROR(steps.Add({.unit = unit}));
      continue;
    }
    ASSIGN_OR_RETURN(const TiledProduct tiles, steps.AddTiledProduct(unit));
    draft.Continue(1, before);
    RETURN_IF_ERROR(steps.Add({.unit = ++unit, .tiles = &tiles}));
  }
  return absl::OkStatus();
}

/// Adds the steps of an overlap of the schedule: piece by piece, or with Config::tiles tile by
/// tile. What communicates beside the rest is on lane 1; steps wait for those of the other lane
/// that they need.
absl::Status AddOverlap(const Schedule& schedule, const Units& u, const Units::Chain& chain,
                        const Config& config, const Target& target, UnitSteps& steps,
                        Draft& draft) {
  if (config.tiles > 0) {
    steps.set_beside(config.beside);
    RETURN_IF_ERROR(AddTiled(u, chain, steps, draft));
  } else {
    std::vector<Piece> pieces;
    std::vector<std::vector<int>> batches;
    if (TensorCount(schedule.graph()) > 0) {
      batches = BatchesOf(schedule, chain.overlap, target.ranks, config.pieces);
    } else {
      ASSIGN_OR_RETURN(
          pieces, PiecesOf(schedule, chain.overlap, target.ranks, config.pieces, config.columns));
    }
    std::vector<UnitPart> parts;
    for (const Piece& piece : pieces) parts.push_back({.unit = -1, .piece = &piece});
    for (const std::vector<int>& batch : batches) parts.push_back({.unit = -1, .batch = &batch});
    const auto units = absl::MakeSpan(u.units).subspan(chain.first, chain.last - chain.first + 1);
    if (absl::c_any_of(units, [&](const Unit& unit) { return ProductOf(u.graph(), unit) >= 0; }))
      steps.set_beside(config.beside);
    RETURN_IF_ERROR(AddPieces(parts, u, chain, steps, draft));
  }
  steps.set_beside(0);
  return absl::OkStatus();
}

/// The units [first, last] as a launch of the steps [begin, end).
PlacedLaunch LaunchOf(const SizedProgram& program, int first, int last, int begin, int end) {
  const Units& u = program.units;
  const BufferTable& table = program.table;
  PlacedLaunch launch{begin, end, {}, {}, {}};
  for (int unit = first; unit <= last; ++unit) {
    for (NodeId id : u.units[unit].nodes) {
      launch.nodes.push_back(id);
      const int stored = IsStore(u.graph(), id) ? table.target[id] : table.of[id];
      if (stored >= 0) launch.writes[id] = stored;
      for (NodeId read : u.Reads(id, unit)) launch.reads[read] = table.of[read];
    }
  }
  // What another unit of an overlap computes is not read from outside.
  for (NodeId id : launch.nodes) launch.reads.erase(id);
  return launch;
}

/// What COCONET_DUMP and COCONET_DEBUG ask to see.
void Show(const Schedule& schedule, const Config& config, const Lowered& lowered) {
  const Env& env = GetEnv();
  if (env.Dumps("schedule") || env.Dumps("plan")) {
    const std::string text = absl::StrCat(Print(schedule), "# ", TraceText(schedule.trace()),
                                          "\n# ", Text(config), "\n");
    const std::string name =
        absl::StrCat(NameForMessages(schedule.graph()), "-", Fingerprint(text).substr(0, 12));
    MaybeDump("schedule", name + ".schedule", text);
    MaybeDump("plan", name + ".plan", Print(lowered.plan));
  }
  if (env.debug < 2) return;
  std::string lines =
      absl::StrCat("coconet: lowered ", NameForMessages(schedule.graph()), ": ", Describe(schedule),
                   "; ", Text(config), ": ", lowered.plan.steps.size(), " steps\n");
  if (env.debug >= 3) {
    for (const Transformation& t : schedule.trace())
      absl::StrAppend(&lines, "coconet:   ", Text(t), "\n");
  }
  std::fputs(lines.c_str(), stderr);
}

}  // namespace

std::string CodeFingerprint(const Lowered& lowered) {
  return Fingerprint(absl::StrCat(Print(lowered.plan), lowered.kernels.text()));
}

absl::StatusOr<Lowered> Lower(const Schedule& schedule, const Config& config, const Target& target) {
  RETURN_IF_ERROR(CheckRuns(schedule.graph(), target.ranks));
  RETURN_IF_ERROR(Validate(
      config, schedule,
      {.ranks = target.ranks, .nodes = target.nodes, .stages_apart = target.stages_apart}));
  ASSIGN_OR_RETURN(Programs programs, Programs::Of(schedule, config, target));
  Draft draft(target);
  UnitSteps steps(config, target, programs, draft);
  const Units& u = programs.units();
  const UnitLanes lanes = LanesOf(u);
  std::vector<int> last_of(u.units.size(), -1);  // by unit: the last step so far on its lane
  std::vector<std::pair<int, int>> steps_of(u.units.size());
  LastSteps pending = {-1, -1};   // by lane: what its next step waits for on the other one
  auto chain = u.chains.begin();  // the next one
  std::vector<PlacedLaunch> launches;
  for (int unit = 0; unit < static_cast<int>(u.units.size()); ++unit) {
    const int first = unit, begin = draft.size();
    if (chain != u.chains.end() && chain->first == unit) {
      RETURN_IF_ERROR(AddOverlap(schedule, u, *chain, config, target, steps, draft));
      draft.AddOverlap(begin);
      pending[0] = draft.LastStepOn(1);
      unit = chain->last;
      ++chain;
    } else {
      const int awaited = lanes.awaits[unit] < 0 ? -1 : last_of[lanes.awaits[unit]];
      const int lane = lanes.beside[unit] ? 1 : 0;
      pending[lane] = std::max(pending[lane], awaited);
      draft.Continue(lane, pending[lane]);
      RETURN_IF_ERROR(steps.Add({.unit = unit}));
      if (draft.size() > begin) pending[lane] = -1;
    }
    for (int i = first; i <= unit; ++i) {
      last_of[i] = draft.LastStepOn(lanes.beside[i] ? 1 : 0);
      steps_of[i] = {begin, draft.size()};
    }
    const bool does_nothing = draft.size() == begin;
    if (!programs.has_lists() && !does_nothing)
      launches.push_back(LaunchOf(programs[0], first, unit, begin, draft.size()));
  }
  Lowered lowered = std::move(draft).Finish(programs);
  lowered.plan.outlasting = OutlastingSteps(programs, lanes, steps_of);
  lowered.launches = std::move(launches);
  lowered.protocol = ProtocolOf(u, config);
  Show(schedule, config, lowered);
  return lowered;
}

}  // namespace coconet
