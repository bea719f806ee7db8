#include "jit/lower/overlap_steps.h"

#include <array>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/types/span.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

using LastSteps = std::array<int, kLanes>;  // by lane; -1: none

/// Piece k of a launch comes when piece k + 1 of the launch before it has begun.
absl::Status AddPieces(const std::vector<Piece>& pieces, const Units& u, const Units::Chain& chain,
                       UnitSteps& steps, Draft& draft) {
  const int count = static_cast<int>(pieces.size()), units = chain.last - chain.first + 1;
  std::vector<LastSteps> last(count, {draft.size() - 1, draft.LastStepOn(1)});  // of each piece
  for (int time = 0; time < count + units - 1; ++time) {
    // Within a time step, later launches first: what they wait for is done, and the collectives
    // behind them get something to move.
    for (int i = units - 1; i >= 0; --i) {
      const int k = time - i, unit = chain.first + i;
      if (k < 0 || k >= count) continue;
      const int lane = steps.LaneOf(u.units[unit]), before = draft.size();
      draft.Continue(lane, last[k][1 - lane]);
      RETURN_IF_ERROR(steps.Add({.unit = unit, .piece = &pieces[k]}));
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

}  // namespace

absl::Status AddOverlap(const Schedule& schedule, const Units& u, const Units::Chain& chain,
                        const Config& config, const Target& target, UnitSteps& steps,
                        Draft& draft) {
  if (config.tiles > 0) {
    steps.set_beside(config.beside);
    RETURN_IF_ERROR(AddTiled(u, chain, steps, draft));
  } else {
    ASSIGN_OR_RETURN(const std::vector<Piece> pieces,
                     PiecesOf(schedule, chain.overlap, target.ranks, config.pieces));
    const auto units = absl::MakeSpan(u.units).subspan(chain.first, chain.last - chain.first + 1);
    if (absl::c_any_of(units, [&](const Unit& unit) { return ProductOf(u.graph(), unit) >= 0; }))
      steps.set_beside(config.beside);
    RETURN_IF_ERROR(AddPieces(pieces, u, chain, steps, draft));
  }
  steps.set_beside(0);
  draft.Continue(0, draft.LastStepOn(1));
  return absl::OkStatus();
}

}  // namespace coconet
