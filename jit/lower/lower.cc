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
#include "coconet/ir/operand_index.h"
#include "coconet/schedule/describe.h"
#include "coconet/schedule/overlapped_products.h"
#include "jit/launches/batches.h"
#include "jit/lower/draft.h"
#include "jit/lower/launch_steps.h"
#include "jit/lower/outlasting.h"
#include "jit/lower/programs.h"
#include "jit/lower/protocol.h"

namespace coconet {
namespace {

using LastSteps = std::array<int, kLanes>;  // by lane; -1: none

/// Piece k of a launch comes when piece k + 1 of the launch before it has begun.
absl::Status AddPieces(const std::vector<LaunchPart>& pieces, const PlacedLaunches& u,
                       const PlacedLaunches::Chain& chain, LaunchSteps& steps, Draft& draft) {
  const int count = static_cast<int>(pieces.size()), launches = chain.last - chain.first + 1;
  std::vector<LastSteps> last(count, {draft.LastStepOn(0), draft.LastStepOn(1)});  // of each piece
  for (int time = 0; time < count + launches - 1; ++time) {
    // Within a time step, later launches first: what they wait for is done, and the collectives
    // behind them get something to move.
    for (int i = launches - 1; i >= 0; --i) {
      const int k = time - i, launch = chain.first + i;
      if (k < 0 || k >= count) continue;
      const int lane = steps.LaneOf(u[launch]), before = draft.size();
      draft.Continue(lane, last[k][1 - lane]);
      LaunchPart part = pieces[k];
      part.launch = launch;
      RETURN_IF_ERROR(steps.Add(part));
      if (draft.size() > before) last[k][lane] = draft.size() - 1;
    }
  }
  return absl::OkStatus();
}

/// The kernel that takes a product's tiles goes on from where the product does, on the other lane,
/// and so does a product with what the kernel before it gathers. The other launches follow one
/// another.
absl::Status AddTiled(const PlacedLaunches& u, const PlacedLaunches::Chain& chain,
                      const Target& target, LaunchSteps& steps, Draft& draft) {
  for (int launch = chain.first; launch <= chain.last; ++launch) {
    const auto product_at = [&](int at) {
      return at > chain.last || steps.LaneOf(u[at]) != 0 ? -1 : steps.ProductBeside(u[at]);
    };
    const auto communicates_at = [&](int at) {
      return at <= chain.last && !u[at].library && steps.LaneOf(u[at]) == 1;
    };
    const int lane = steps.LaneOf(u[launch]),
              before[kLanes] = {draft.LastStepOn(0), draft.LastStepOn(1)};
    draft.Continue(lane, before[1 - lane]);
    const bool gathers = communicates_at(launch) && product_at(launch + 1) >= 0 &&
                         GathersFor(u.program, u[launch].nodes, product_at(launch + 1));
    const bool signals = product_at(gathers ? launch + 1 : launch) >= 0 &&
                         communicates_at(launch + (gathers ? 2 : 1));
    if (!gathers && !signals) {
      RETURN_IF_ERROR(steps.Add({.launch = launch}));
      continue;
    }
    PublishedChunks chunks, *const published = target.ranks > 1 && gathers ? &chunks : nullptr;
    if (gathers) {
      RETURN_IF_ERROR(steps.Add({.launch = launch++, .publishes = published}));
      draft.Continue(0, published == nullptr ? draft.LastStepOn(1) : before[1]);
    }
    const int product_before = draft.LastStepOn(0);
    ASSIGN_OR_RETURN(const TiledProduct tiles, steps.AddTiledProduct(launch, signals, published));
    if (!signals) continue;
    draft.Continue(1, product_before);
    RETURN_IF_ERROR(steps.Add({.launch = ++launch, .tiles = &tiles}));
  }
  return absl::OkStatus();
}

/// Adds the steps of an overlap of the schedule: piece by piece, or with Config::tiles tile by
/// tile. What communicates beside the rest is on lane 1; steps wait for those of the other lane
/// that they need.
absl::Status AddOverlap(const Schedule& schedule, const PlacedLaunches& u,
                        const PlacedLaunches::Chain& chain, const Config& config,
                        const Target& target, LaunchSteps& steps, Draft& draft) {
  if (config.tiles > 0) {
    steps.set_beside(config.beside);
    RETURN_IF_ERROR(AddTiled(u, chain, target, steps, draft));
  } else {
    std::vector<Piece> pieces;
    std::vector<std::vector<int>> batches;
    if (!schedule.graph().lists.empty()) {
      batches = BatchesOf(schedule, chain.overlap, target.ranks, config.pieces);
    } else {
      ASSIGN_OR_RETURN(
          pieces, PiecesOf(schedule, chain.overlap, target.ranks, config.pieces, config.columns));
    }
    std::vector<LaunchPart> parts;
    for (const Piece& piece : pieces) parts.push_back({.launch = -1, .piece = &piece});
    for (const std::vector<int>& batch : batches) parts.push_back({.launch = -1, .batch = &batch});
    const auto launches = absl::MakeSpan(u.list).subspan(chain.first, chain.last - chain.first + 1);
    if (absl::c_any_of(launches, [&](const PlacedLaunch& launch) {
          return ProductOf(u.graph(), launch) >= 0;
        }))
      steps.set_beside(config.beside);
    RETURN_IF_ERROR(AddPieces(parts, u, chain, steps, draft));
  }
  steps.set_beside(0);
  return absl::OkStatus();
}

/// The launches [first, last], one or those of an overlap, as one with their buffers.
PlacedLaunch AsOne(const SizedProgram& program, int first, int last) {
  const PlacedLaunches& u = program.launches;
  const BufferTable& table = program.table;
  PlacedLaunch one = u[first];
  one.nodes.clear();
  for (int launch = first; launch <= last; ++launch) {
    for (NodeId id : u[launch].nodes) {
      one.nodes.push_back(id);
      const int stored = IsStore(u.graph(), id) ? table.target[id] : table.of[id];
      if (stored >= 0) one.writes[id] = stored;
      for (NodeId read : u.Reads(id, launch)) one.reads[read] = table.of[read];
    }
  }
  // What another launch of an overlap computes is not read from outside.
  for (NodeId id : one.nodes) one.reads.erase(id);
  return one;
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

absl::StatusOr<Lowered> Lower(const Schedule& schedule, const Config& config,
                              const Target& target) {
  RETURN_IF_ERROR(Validate(
      config, schedule,
      {.ranks = target.ranks, .nodes = target.nodes, .stages_apart = target.stages_apart}));
  RETURN_IF_ERROR(CheckScaleSlices(schedule.graph(), target.ranks));
  ASSIGN_OR_RETURN(Programs programs, Programs::Of(schedule, config, target));
  Draft draft(target);
  LaunchSteps steps(config, target, programs, draft);
  PlacedLaunches& u = programs.launches();
  std::vector<int> last_of(u.size(), -1);  // by launch: the last step so far on its lane
  LastSteps pending = {-1, -1};            // by lane: what its next step waits for on the other one
  auto chain = u.chains.begin();           // the next one
  std::vector<PlacedLaunch> launches;
  for (int launch = 0; launch < u.size(); ++launch) {
    const int first = launch, begin = draft.size();
    if (chain != u.chains.end() && chain->first == launch) {
      RETURN_IF_ERROR(AddOverlap(schedule, u, *chain, config, target, steps, draft));
      draft.AddOverlap(begin);
      pending[0] = draft.LastStepOn(1);
      launch = chain->last;
      ++chain;
    } else {
      const int lane = u[launch].lane, awaits = u[launch].awaits;
      pending[lane] = std::max(pending[lane], awaits < 0 ? -1 : last_of[awaits]);
      draft.Continue(lane, pending[lane]);
      RETURN_IF_ERROR(steps.Add({.launch = launch}));
      if (draft.size() > begin) pending[lane] = -1;
    }
    for (int i = first; i <= launch; ++i) {
      last_of[i] = draft.LastStepOn(u[i].lane);
      u[i].begin = begin;
      u[i].end = draft.size();
    }
    const bool does_nothing = draft.size() == begin;
    if (!programs.has_lists() && !does_nothing)
      launches.push_back(AsOne(programs[0], first, launch));
  }
  Lowered lowered = std::move(draft).Finish(programs);
  lowered.launches = std::move(launches);
  lowered.plan.outlasting = OutlastingSteps(programs);
  lowered.protocol = ProtocolOf(u, config);
  Show(schedule, config, lowered);
  return lowered;
}

}  // namespace coconet
