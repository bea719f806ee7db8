#include "autotune/arena.h"

#include <algorithm>

#include "coconet/base/status.h"

namespace coconet {
namespace {

int64_t BytesOf(const Buffer& buffer) { return buffer.elements * static_cast<int64_t>(SizeOf(buffer.dtype)); }

}  // namespace

absl::StatusOr<std::unique_ptr<Memory>> AllocateTogether(Rank& rank, int64_t bytes, bool symmetric) {
  absl::StatusOr<std::unique_ptr<Memory>> memory = rank.Allocate(std::max<int64_t>(bytes, 1), symmetric);
  if (symmetric) return memory;  // collective already
  RETURN_IF_ERROR(rank.exchange().Agree(memory.status()));
  return memory;
}

std::vector<Arena::Slot> Arena::SlotsOf(const Plan& plan) {
  std::vector<Slot> slots(plan.buffers.size());
  std::vector<int> temporaries;
  for (int i = 0; i < static_cast<int>(plan.buffers.size()); ++i) {
    switch (plan.buffers[i].role) {
      case BufferRole::kInput:
      case BufferRole::kState:
      case BufferRole::kOutput: slots[i] = {plan.buffers[i].name, -1}; break;
      case BufferRole::kTemp: temporaries.push_back(i); break;
      case BufferRole::kSync: break;
    }
  }
  std::stable_sort(temporaries.begin(), temporaries.end(),
                   [&](int a, int b) { return BytesOf(plan.buffers[a]) > BytesOf(plan.buffers[b]); });
  int used[2] = {0, 0};
  for (int i : temporaries) {
    const bool symmetric = plan.buffers[i].symmetric;
    slots[i] = {symmetric ? " symmetric" : " local", used[symmetric]++};  // no tensor's name starts with a blank
  }
  return slots;
}

absl::StatusOr<Arena> Arena::Create(Rank& rank, absl::Span<const Plan* const> plans) {
  std::map<Slot, Need> needs;
  for (const Plan* plan : plans) {
    const std::vector<Slot> slots = SlotsOf(*plan);
    for (size_t i = 0; i < slots.size(); ++i) {
      if (plan->buffers[i].role == BufferRole::kSync) continue;
      Need& need = needs[slots[i]];
      need.bytes = std::max(need.bytes, BytesOf(plan->buffers[i]));
      need.symmetric = need.symmetric || plan->buffers[i].symmetric;
    }
  }
  Arena arena;
  for (const auto& [slot, need] : needs) {
    ASSIGN_OR_RETURN(arena.memory_[slot], AllocateTogether(rank, need.bytes, need.symmetric));
  }
  return arena;
}

std::vector<Memory*> Arena::Place(const Plan& plan) const {
  const std::vector<Slot> slots = SlotsOf(plan);
  std::vector<Memory*> memory;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (plan.buffers[i].role == BufferRole::kSync) {
      memory.push_back(nullptr);
      continue;
    }
    const auto at = memory_.find(slots[i]);
    CC_CHECK(at != memory_.end());
    memory.push_back(at->second.get());
  }
  return memory;
}

}  // namespace coconet
