#include "runtime/simt/memory/slots.h"

#include "coconet/base/status.h"

namespace coconet {

Agent SlotTable::Take(const std::string& owner) {
  constexpr size_t kRemembered = 16;
  if (free_.empty()) {
    CC_CHECK(has_free());
    free_.push_back(static_cast<int>(slots_.size()));
    slots_.emplace_back();
  }
  const int slot = free_.back();
  free_.pop_back();
  Slot& taken = slots_[slot];
  taken.owners.push_back({taken.generation, owner});
  if (taken.owners.size() > kRemembered) taken.owners.pop_front();
  return {.slot = slot, .first = taken.generation, .generation = taken.generation};
}

void SlotTable::Give(const Agent& agent) {
  slots_[agent.slot].generation = agent.generation + 1;
  free_.push_back(agent.slot);
}

std::string SlotTable::OwnerOf(Epoch epoch) const {
  std::string name = "somebody";
  for (const Owner& owner : slots_[epoch.slot()].owners) {
    if (owner.first <= epoch.generation()) name = owner.name;
  }
  return name;
}

}  // namespace coconet
