#include "autotune/search/past/settling.h"

#include <algorithm>
#include <cstdint>

#include "autotune/search/time_budget.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// So many pairs, in so many memories, with an interval of this half width are enough; more than
/// the most are not timed.
constexpr int kLeastPairs = 60, kMostPairs = 500, kLeastMemories = 20;
constexpr double kSettledHalfWidth = 0.035;
constexpr int kPairsForHistory = 120;
constexpr int kPairsInMemory = 3;

}  // namespace

absl::Status Settling::Settle() {
  RETURN_IF_ERROR(TimePairs(kMostPairs, /*until_known=*/true));
  for (const bool last : {false, true}) {
    ASSIGN_OR_RETURN(const int winner, FromRank0(exchange_, trials_.race().Winner()));
    if (winner < 0) break;
    ASSIGN_OR_RETURN(const int others,
                     FromRank0(exchange_, static_cast<int>(Others(winner).size())));
    differs_ = others > 0;
    if (!differs_ || last) break;
    say_("the speed-up is not what earlier runs have measured: measuring on");
    RETURN_IF_ERROR(TimePairs(kPairsForHistory, /*until_known=*/false));
  }
  return absl::OkStatus();
}

absl::Status Settling::TimePairs(int most, bool until_known) {
  bool moves = true;
  for (int pair = 0; pair < most; ++pair) {
    const Race& race = trials_.race();
    ASSIGN_OR_RETURN(const int winner, FromRank0(exchange_, race.Winner()));
    if (winner < 0 || winner == baseline_ || !race.running(baseline_)) break;
    const SpeedUp speed_up = race.SpeedUpOf(winner);
    const bool is_known = speed_up.rounds >= kLeastPairs &&
                          speed_up.HalfWidth() <= kSettledHalfWidth &&
                          (!moves || race.Memories(winner) >= kLeastMemories);
    ASSIGN_OR_RETURN(const int enough, FromRank0(exchange_, until_known && is_known));
    if (enough != 0) break;
    if (moves && pair % kPairsInMemory == 0) {
      ASSIGN_OR_RETURN(moves, trials_.MoveMemory());
    }
    ASSIGN_OR_RETURN(const bool whole, trials_.Pair(winner, baseline_));
    if (!whole) break;
  }
  return absl::OkStatus();
}

std::vector<SpeedUp> Settling::Others(int winner) const {
  const SpeedUp now = trials_.race().SpeedUpOf(winner);
  const std::string best = NameOf(trials_.result(winner)),
                    baseline = NameOf(trials_.result(baseline_));
  std::vector<SpeedUp> others;
  int64_t alike = 0;
  for (const Measured& earlier : history_) {
    if (earlier.best != best || earlier.baseline != baseline || !earlier.speed_up.IsKnown() ||
        !IsSameState(earlier.speed_up, now))
      continue;
    if (Disagree(earlier.speed_up, now))
      others.push_back(earlier.speed_up);
    else
      ++alike;
  }
  // What is often measured alike is not doubted because of one run.
  if (alike > std::ssize(others)) others.clear();
  return others;
}

SpeedUp Settling::Of(int winner, int baseline) const {
  if (winner == baseline) return {.rounds = trials_.race().timing(winner).samples};
  if (baseline != baseline_) return SpeedUp();
  SpeedUp speed_up = trials_.race().SpeedUpOf(winner);
  for (const SpeedUp& other : Others(winner)) {
    speed_up.low = std::min(speed_up.low, other.ratio);
    speed_up.high = std::max(speed_up.high, other.ratio);
  }
  return speed_up;
}

Measured Settling::Own(int winner) const {
  return {.best = NameOf(trials_.result(winner)),
          .baseline = NameOf(trials_.result(baseline_)),
          .speed_up = winner == baseline_ ? SpeedUp() : trials_.race().SpeedUpOf(winner)};
}

}  // namespace coconet
