#include "runtime/simt/memory/clock.h"

#include <algorithm>

namespace coconet {
namespace {

bool IsBefore(Epoch a, uint64_t who) { return a.who() < who; }

}  // namespace

bool Clock::KnowsReleased(Epoch e) const {
  const auto at = std::lower_bound(released_.begin(), released_.end(), e.who(), IsBefore);
  return at != released_.end() && at->who() == e.who() && at->when() >= e.when();
}

void Clock::JoinSlot(int slot, uint32_t generation) {
  const auto index = static_cast<size_t>(slot);
  if (index >= generations_.size()) generations_.resize(index + 1);
  generations_[index] = std::max(generations_[index], generation);
}

void Clock::JoinReleased(Epoch e) {
  if (Knows(e)) return;
  const auto at = std::lower_bound(released_.begin(), released_.end(), e.who(), IsBefore);
  if (at != released_.end() && at->who() == e.who()) {
    *at = e;
  } else {
    released_.insert(at, e);
  }
}

void Clock::Join(const Clock& other) {
  if (other.generations_.size() > generations_.size())
    generations_.resize(other.generations_.size());
  for (size_t i = 0; i < other.generations_.size(); ++i)
    generations_[i] = std::max(generations_[i], other.generations_[i]);
  for (Epoch e : other.released_) JoinReleased(e);
  const auto covered = [&](Epoch e) {
    const auto slot = static_cast<size_t>(e.slot());
    return slot < generations_.size() && generations_[slot] > e.generation();
  };
  released_.erase(std::remove_if(released_.begin(), released_.end(), covered), released_.end());
}

}  // namespace coconet
