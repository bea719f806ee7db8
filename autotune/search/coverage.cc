#include "autotune/search/coverage.h"

#include <algorithm>
#include <cmath>

namespace coconet {

int DrawsFor(int variants) {
  const double better = std::max(std::ceil(Coverage::kShare * variants), 1.0);
  double missed = 1;
  int draws = 0;
  for (; draws < variants && missed > Coverage::kDoubt; ++draws)
    missed *= std::max(1 - better / (variants - draws), 0.0);
  return draws;
}

void Coverage::Tried(bool drawn, double best_us) {
  drawn_ += drawn ? 1 : 0;
  since_gain_ += drawn ? 0 : 1;
  if (best_us >= gain_us_ * (1 - kGain)) return;
  gain_us_ = best_us;
  since_gain_ = 0;
}

bool Coverage::NeedsDraws(int untried) const { return drawn_ < DrawsFor(drawn_ + untried); }

}  // namespace coconet
