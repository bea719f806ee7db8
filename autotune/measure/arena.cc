#include "autotune/measure/arena.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include "absl/algorithm/container.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr int64_t kLine = 64, kPage = 4096, kHugePage = int64_t{2} << 20;
/// Bytes beyond the needs, among which Move draws places.
constexpr int64_t kLeastRoom = int64_t{8} << 20, kMostRoom = int64_t{256} << 20;

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
    const int64_t bytes = need.On(stage_rank),
                  align = bytes >= kHugePage ? kHugePage : kTemporaryAlignment;
    if (need.symmetric == symmetric) cut.end = (cut.end + align - 1) / align * align;
    cut.offsets.push_back(cut.end);
    if (need.symmetric == symmetric) cut.end += std::max<int64_t>(bytes, 1);
  }
  return cut;
}

std::vector<MemoryNeed> WithGuards(const Arena::Needs& needs) {
  std::vector<MemoryNeed> list;
  for (const auto& [slot, need] : needs) {
    list.push_back(need);
    list.back().bytes += kGuardBytes;
    for (int64_t& bytes : list.back().on_rank) bytes += kGuardBytes;
  }
  return list;
}

/// Places the needs of one kind in random order, with random gaps between them, in `room` bytes,
/// which suffice. By need; 0 for those of the other kind.
std::vector<int64_t> Scatter(absl::Span<const MemoryNeed> needs, bool symmetric, int stage_rank,
                             int64_t room, std::mt19937_64& random) {
  std::vector<size_t> order;
  for (size_t i = 0; i < needs.size(); ++i) {
    if (needs[i].symmetric == symmetric) order.push_back(i);
  }
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  const auto align_of = [&](size_t i) {
    return needs[i].On(stage_rank) >= kHugePage ? kHugePage : kPage;
  };
  int64_t slack = room;  // what alignment and sizes leave
  for (size_t i : order) slack -= needs[i].On(stage_rank) + align_of(i);
  std::vector<int64_t> offsets(needs.size());
  int64_t end = 0;
  for (size_t k = 0; k < order.size(); ++k) {
    const int64_t most = slack / std::ssize(order);
    const int64_t gap = most > 0 ? static_cast<int64_t>(random() % static_cast<uint64_t>(most)) : 0;
    const int64_t align = align_of(order[k]);
    offsets[order[k]] = (end + gap + align - 1) / align * align;
    end = offsets[order[k]] + needs[order[k]].On(stage_rank);
  }
  CC_CHECK(end <= room);
  return offsets;
}

/// Collective. Whether `mine` is true on all ranks.
absl::StatusOr<bool> AgreeThatAll(Rank& rank, bool mine) {
  ASSIGN_OR_RETURN(const std::vector<std::string> all, rank.exchange().AllGather(mine ? "1" : ""));
  return absl::c_none_of(all, [](const std::string& theirs) { return theirs.empty(); });
}

/// Names of areas of temporaries; no tensor's name begins with a blank.
constexpr const char* kAreas[] = {" local", " symmetric"};

/// The bytes of a temporary that lies apart, with the guard behind it.
int64_t BytesApart(int64_t bytes) { return (bytes + kGuardBytes + kLine - 1) / kLine * kLine; }

/// Grows the area of the buffer by it.
void AddApart(const Buffer& buffer, int ranks, std::array<MemoryNeed, 2>& areas) {
  MemoryNeed& area = areas[buffer.symmetric];
  if (!buffer.on_rank.empty() || !area.on_rank.empty()) {
    area.on_rank.resize(ranks, area.bytes);
    for (int rank = 0; rank < ranks; ++rank) {
      area.on_rank[rank] +=
          BytesApart(buffer.On(rank) * static_cast<int64_t>(SizeOf(buffer.dtype)));
    }
  }
  area.bytes += BytesApart(coconet::BytesOf(buffer));
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

void GrowNeed(MemoryNeed& need, const MemoryNeed& more) {
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

std::array<MemoryNeed, 2> AreasOf(const Plan& plan) {
  const bool by_rank =
      absl::c_any_of(plan.buffers, [](const Buffer& b) { return !b.on_rank.empty(); });
  std::array<MemoryNeed, 2> areas = {MemoryNeed{0, false}, MemoryNeed{0, true}};
  for (int rank = 0; rank < (by_rank ? plan.ranks : 1); ++rank) {
    const TemporaryPlaces places = PlaceTemporaries(plan, rank);
    for (const bool symmetric : {false, true})
      areas[symmetric].bytes = std::max(areas[symmetric].bytes, places.bytes[symmetric]);
    if (by_rank) areas[false].on_rank.push_back(places.bytes[false]);
  }
  return areas;
}

std::vector<std::shared_ptr<Memory>> TemporariesIn(
    const Rank& rank, const Plan& plan, const std::array<std::shared_ptr<Memory>, 2>& areas) {
  const TemporaryPlaces places = PlaceTemporaries(plan, rank.stage_rank());
  std::vector<std::shared_ptr<Memory>> memory(plan.buffers.size());
  for (size_t b = 0; b < memory.size(); ++b) {
    if (places.offsets[b] < 0) continue;
    const Buffer& buffer = plan.buffers[b];
    const std::shared_ptr<Memory>& area = areas[buffer.symmetric];
    const int64_t bytes = BytesOn(rank, buffer);
    CC_CHECK(area != nullptr && places.offsets[b] + bytes <= area->bytes());
    memory[b] = std::make_shared<MemoryPart>(area, rank, places.offsets[b], bytes);
  }
  return memory;
}

std::vector<Memory*> Pointers(const std::vector<std::shared_ptr<Memory>>& memory) {
  std::vector<Memory*> pointers;
  for (const std::shared_ptr<Memory>& one : memory) pointers.push_back(one.get());
  return pointers;
}

void Arena::Include(const Plan& plan, Temporaries temporaries, Needs& needs) {
  Needs own;
  std::array<MemoryNeed, 2> areas = {MemoryNeed{0, false}, MemoryNeed{0, true}};
  if (temporaries == Temporaries::kShared) areas = AreasOf(plan);
  for (const Buffer& buffer : plan.buffers) {
    switch (buffer.role) {
      case BufferRole::kInput:
      case BufferRole::kState:
      case BufferRole::kOutput:
        own.emplace(buffer.name, NeedOf(buffer));
        break;
      case BufferRole::kTemp:
        if (temporaries == Temporaries::kApart) AddApart(buffer, plan.ranks, areas);
        break;
      case BufferRole::kSync:
        break;
    }
  }
  for (const MemoryNeed& area : areas) {
    if (area.bytes > 0) own.emplace(kAreas[area.symmetric], area);
  }
  Include(own, needs);
}

void Arena::Include(const Needs& more, Needs& needs) {
  for (const auto& [slot, theirs] : more) {
    const auto [need, is_new] = needs.try_emplace(slot, theirs);
    if (!is_new) GrowNeed(need->second, theirs);
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
  Arena arena;
  RETURN_IF_ERROR(arena.Allocate(rank, needs));
  return arena;
}

absl::Status Arena::Move(Rank& rank, uint64_t seed) {
  const std::vector<MemoryNeed> list = WithGuards(needs_);
  std::shared_ptr<Memory> rooms[2];
  for (const bool symmetric : {false, true}) {
    const int64_t bytes = CutFor(list, symmetric, rank.stage_rank()).end;
    const int64_t room =
        bytes + std::clamp(2 * bytes, kLeastRoom, kMostRoom) + std::ssize(list) * kHugePage;
    const bool suffices = rooms_[symmetric] != nullptr && rooms_[symmetric]->bytes() >= room;
    ASSIGN_OR_RETURN(const bool all, AgreeThatAll(rank, suffices || bytes == 0));
    if (all) continue;
    absl::StatusOr<std::unique_ptr<Memory>> memory = rank.Allocate(room, symmetric);
    if (!symmetric) RETURN_IF_ERROR(rank.exchange().Agree(memory.status()));
    RETURN_IF_ERROR(memory.status());
    rooms[symmetric] = *std::move(memory);
  }
  for (const bool symmetric : {false, true}) {
    if (rooms[symmetric] != nullptr) rooms_[symmetric] = std::move(rooms[symmetric]);
  }
  std::mt19937_64 random(seed);
  std::vector<int64_t> offsets[2];
  for (const bool symmetric : {false, true}) {
    if (rooms_[symmetric] != nullptr)
      offsets[symmetric] =
          Scatter(list, symmetric, rank.stage_rank(), rooms_[symmetric]->bytes(), random);
  }
  size_t next = 0;
  for (const auto& [slot, need] : needs_) {
    const int64_t bytes = list[next].On(rank.stage_rank());
    memory_[slot] = std::make_shared<MemoryPart>(rooms_[need.symmetric], rank,
                                                 offsets[need.symmetric][next++], bytes);
    std::memset(memory_[slot]->own(), 0, bytes);
  }
  return absl::OkStatus();
}

absl::Status Arena::Allocate(Rank& rank, const Needs& needs) {
  const std::vector<MemoryNeed> list = WithGuards(needs);
  ASSIGN_OR_RETURN(std::vector<std::shared_ptr<Memory>> memory, AllocateTogether(rank, list));
  size_t next = 0;
  for (const auto& [slot, need] : needs) {
    needs_[slot] = need;
    memory_[slot] = std::move(memory[next++]);
  }
  return absl::OkStatus();
}

bool Arena::Suffices(const Needs& needs) const {
  return absl::c_all_of(needs, [&](const auto& need) {
    const auto has = needs_.find(need.first);
    if (has == needs_.end()) return false;
    MemoryNeed both = has->second;
    GrowNeed(both, need.second);
    return both == has->second;
  });
}

absl::StatusOr<bool> Arena::Grow(Rank& rank, const Needs& needs) {
  Needs anew;
  bool has_tensor = false;
  for (const auto& [slot, need] : needs) {
    if (Suffices({{slot, need}})) continue;
    const auto has = needs_.find(slot);
    MemoryNeed& both = anew.emplace(slot, has == needs_.end() ? need : has->second).first->second;
    GrowNeed(both, need);
    has_tensor = has_tensor || !absl::c_linear_search(kAreas, slot);
  }
  if (!anew.empty()) RETURN_IF_ERROR(Allocate(rank, anew));
  return has_tensor;
}

std::vector<std::shared_ptr<Memory>> Arena::Place(const Rank& rank, const Plan& plan,
                                                  Temporaries temporaries) const {
  std::array<std::shared_ptr<Memory>, 2> areas;
  for (const bool symmetric : {false, true}) {
    const auto at = memory_.find(kAreas[symmetric]);
    if (at != memory_.end()) areas[symmetric] = at->second;
  }
  std::vector<std::shared_ptr<Memory>> memory(plan.buffers.size());
  if (temporaries == Temporaries::kShared) memory = TemporariesIn(rank, plan, areas);
  int64_t end[2] = {0, 0};  // of the temporaries so far, where they lie apart
  for (size_t i = 0; i < memory.size(); ++i) {
    const Buffer& buffer = plan.buffers[i];
    if (memory[i] != nullptr || buffer.role == BufferRole::kSync) continue;
    if (buffer.role != BufferRole::kTemp) {
      const auto at = memory_.find(buffer.name);
      CC_CHECK(at != memory_.end());
      memory[i] = at->second;
      continue;
    }
    const int64_t bytes = BytesOn(rank, buffer);
    CC_CHECK(areas[buffer.symmetric] != nullptr &&
             end[buffer.symmetric] + bytes + kGuardBytes <= areas[buffer.symmetric]->bytes());
    memory[i] = std::make_shared<MemoryPart>(areas[buffer.symmetric], rank, end[buffer.symmetric],
                                             bytes + kGuardBytes);
    end[buffer.symmetric] += BytesApart(bytes);
  }
  return memory;
}

}  // namespace coconet
