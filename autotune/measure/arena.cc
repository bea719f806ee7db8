#include "autotune/measure/arena.h"

#include <algorithm>

#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr int64_t kLine = 64, kHugePage = int64_t{2} << 20;

/// Part of a larger memory, which it keeps alive.
class MemoryPart final : public Memory {
 public:
  MemoryPart(std::shared_ptr<Memory> whole, const Rank& rank, int64_t offset, int64_t bytes)
      : Memory(rank.rank(), bytes, whole->symmetric(), PeersOf(*whole, rank, offset),
               whole->space(), MulticastOf(*whole, offset)),
        whole_(std::move(whole)) {}

 private:
  static std::vector<void*> PeersOf(const Memory& whole, const Rank& rank, int64_t offset) {
    std::vector<void*> peers(rank.size());
    for (int r = 0; r < rank.size(); ++r) {
      if (r == rank.rank() || whole.symmetric())
        peers[r] = static_cast<char*>(whole.peer(r)) + offset;
    }
    return peers;
  }
  static void* MulticastOf(const Memory& whole, int64_t offset) {
    return whole.multicast() == nullptr ? nullptr : static_cast<char*>(whole.multicast()) + offset;
  }
  std::shared_ptr<Memory> whole_;
};

/// Offset of each need of one kind within a joint allocation of `end` bytes.
struct Cut {
  std::vector<int64_t> offsets;
  int64_t end = 0;
};

Cut CutFor(absl::Span<const MemoryNeed> needs, bool symmetric, int stage_rank) {
  Cut cut;
  for (const MemoryNeed& need : needs) {
    const int64_t bytes = need.On(stage_rank), align = bytes >= kHugePage ? kHugePage : kLine;
    if (need.symmetric == symmetric) cut.end = (cut.end + align - 1) / align * align;
    cut.offsets.push_back(cut.end);
    if (need.symmetric == symmetric) cut.end += std::max<int64_t>(bytes, 1);
  }
  return cut;
}

/// Grows `need` until it suffices for `more`, too.
void Grow(MemoryNeed& need, const MemoryNeed& more) {
  const size_t ranks = std::max(need.on_rank.size(), more.on_rank.size());
  if (ranks > 0) {
    need.on_rank.resize(ranks, need.on_rank.empty() ? need.bytes : 0);
    for (size_t rank = 0; rank < ranks; ++rank) {
      int64_t& bytes = need.on_rank[rank];
      bytes = std::max(bytes, more.on_rank.empty() ? more.bytes : more.on_rank[rank]);
    }
  }
  need.bytes = std::max(need.bytes, more.bytes);
  need.symmetric = need.symmetric || more.symmetric;
}

}  // namespace

MemoryNeed NeedOf(const Buffer& buffer) {
  MemoryNeed need{BytesOf(buffer), buffer.symmetric};
  for (int64_t elements : buffer.on_rank)
    need.on_rank.push_back(elements * static_cast<int64_t>(SizeOf(buffer.dtype)));
  return need;
}

absl::StatusOr<std::vector<std::shared_ptr<Memory>>> AllocateTogether(
    Rank& rank, absl::Span<const MemoryNeed> needs) {
  std::shared_ptr<Memory> whole[2];
  const Cut cuts[2] = {CutFor(needs, false, rank.stage_rank()),
                       CutFor(needs, true, rank.stage_rank())};
  // Allocating symmetric memory succeeds on all ranks or on none; for local memory ranks must
  // agree.
  for (const bool symmetric : {false, true}) {
    if (cuts[symmetric].end == 0) continue;
    absl::StatusOr<std::unique_ptr<Memory>> memory = rank.Allocate(cuts[symmetric].end, symmetric);
    if (!symmetric) RETURN_IF_ERROR(rank.exchange().Agree(memory.status()));
    RETURN_IF_ERROR(memory.status());
    whole[symmetric] = *std::move(memory);
  }
  std::vector<std::shared_ptr<Memory>> parts;
  for (size_t i = 0; i < needs.size(); ++i) {
    const bool symmetric = needs[i].symmetric;
    parts.push_back(std::make_shared<MemoryPart>(whole[symmetric], rank, cuts[symmetric].offsets[i],
                                                 needs[i].On(rank.stage_rank())));
  }
  return parts;
}

std::vector<Arena::Slot> Arena::SlotsOf(const Plan& plan) {
  std::vector<Slot> slots(plan.buffers.size());
  std::vector<int> temporaries;
  for (int i = 0; i < static_cast<int>(plan.buffers.size()); ++i) {
    switch (plan.buffers[i].role) {
      case BufferRole::kInput:
      case BufferRole::kState:
      case BufferRole::kOutput:
        slots[i] = {plan.buffers[i].name, -1};
        break;
      case BufferRole::kTemp:
        temporaries.push_back(i);
        break;
      case BufferRole::kSync:
        break;
    }
  }
  std::stable_sort(temporaries.begin(), temporaries.end(), [&](int a, int b) {
    return coconet::BytesOf(plan.buffers[a]) > coconet::BytesOf(plan.buffers[b]);
  });
  int used[2] = {0, 0};
  for (int i : temporaries) {
    const bool symmetric = plan.buffers[i].symmetric;
    slots[i] = {symmetric ? " symmetric" : " local",
                used[symmetric]++};  // no tensor's name starts with a blank
  }
  return slots;
}

void Arena::Include(const Plan& plan, Needs& needs) {
  Needs own;
  const std::vector<Slot> slots = SlotsOf(plan);
  for (size_t i = 0; i < slots.size(); ++i) {
    const Buffer& buffer = plan.buffers[i];
    if (buffer.role != BufferRole::kSync) own.emplace(slots[i], NeedOf(buffer));
  }
  Include(own, needs);
}

void Arena::Include(const Needs& more, Needs& needs) {
  for (const auto& [slot, theirs] : more) {
    const auto [need, is_new] = needs.try_emplace(slot, theirs);
    if (!is_new) Grow(need->second, theirs);
  }
}

int64_t Arena::BytesOf(const Needs& needs) {
  size_t ranks = 1;
  for (const auto& [slot, need] : needs) ranks = std::max(ranks, need.on_rank.size());
  int64_t most = 0;
  for (size_t rank = 0; rank < ranks; ++rank) {
    int64_t bytes = 0;
    for (const auto& [slot, need] : needs) bytes += need.On(static_cast<int>(rank));
    most = std::max(most, bytes);
  }
  return most;
}

absl::StatusOr<Arena> Arena::Create(Rank& rank, const Needs& needs) {
  std::vector<MemoryNeed> list;
  for (const auto& [slot, need] : needs) {
    list.push_back(need);
    list.back().bytes += kGuardBytes;
    for (int64_t& bytes : list.back().on_rank) bytes += kGuardBytes;
  }
  ASSIGN_OR_RETURN(std::vector<std::shared_ptr<Memory>> memory, AllocateTogether(rank, list));
  Arena arena;
  for (const auto& [slot, need] : needs)
    arena.memory_[slot] = std::move(memory[arena.memory_.size()]);
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
