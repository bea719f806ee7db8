#include "runtime/simt/memory/shadow.h"

#include <sys/mman.h>

#include "coconet/base/status.h"

namespace coconet {

Shadow::Cell* Shadow::Map(size_t cells) {
  void* mapped = mmap(nullptr, cells * sizeof(Cell), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CC_CHECK(mapped != MAP_FAILED);
  return static_cast<Cell*>(mapped);
}

Shadow::Shadow(size_t bytes) : bytes_(bytes), cells_(Map((bytes >> shift_) + 1)) {}

Shadow::~Shadow() { munmap(cells_, ((bytes_ >> shift_) + 1) * sizeof(Cell)); }

void Shadow::Refine(int shift) {
  const size_t old = (bytes_ >> shift_) + 1, refined = (bytes_ >> shift) + 1;
  Cell* cells = Map(refined);
  for (size_t i = 0; i < refined; ++i) {
    const Cell& from = cells_[i >> (shift_ - shift)];
    if (from.writer.exists() || from.readers[0].exists()) cells[i] = from;
  }
  munmap(cells_, old * sizeof(Cell));
  cells_ = cells;
  shift_ = shift;
}

void Shadow::RefineFor(size_t offset, size_t bytes) {
  const size_t edges = offset + bytes == bytes_
                           ? offset
                           : offset | (offset + bytes);  // the last cell may reach beyond the end
  int shift = shift_;
  while ((edges & ((size_t{1} << shift) - 1)) != 0) --shift;
  if (shift != shift_) Refine(shift);
}

void Shadow::EndCopy(Epoch copy, Epoch now, size_t offset, size_t bytes) {
  for (size_t i = offset >> shift_; i << shift_ < offset + bytes; ++i) {
    Cell& cell = cells_[i];
    if (cell.writer == copy) cell.writer = now;
    for (Epoch& reader : cell.readers) {
      if (reader == copy) reader = now;
    }
  }
}

void Shadow::Initialize() {
  for (size_t i = 0; i <= bytes_ >> shift_; ++i)
    cells_[i] = {.writer = Epoch(Agent::kInitialSlot, 0, 1, 0), .readers = {}, .at = {}};
}

void Shadow::Reset() {
  for (size_t i = 0; i <= bytes_ >> shift_; ++i) cells_[i] = {};
}

void Shadow::MarkUninitialized(size_t offset, size_t bytes) {
  RefineFor(offset, bytes);
  for (size_t i = offset >> shift_; i << shift_ < offset + bytes; ++i)
    cells_[i].at[0] = &kUninitialized;
}

std::optional<size_t> Shadow::FirstUnwritten(size_t offset, size_t bytes) {
  RefineFor(offset, bytes);
  for (size_t i = offset >> shift_; i << shift_ < offset + bytes; ++i) {
    if (!IsWritten(cells_[i])) return i << shift_;
  }
  return std::nullopt;
}

Shadow::Found Shadow::NoteRead(Cell& cell, const Agent& agent, bool atomic, const void* at) {
  const Epoch writer = cell.writer, now = agent.Now(atomic);
  if (!IsWritten(cell)) return {.verdict = Verdict::kNeverWritten};
  if (!agent.Knows(writer) && !(atomic && writer.atomic()))
    return {.verdict = Verdict::kRace, .earlier = {writer, cell.at[0]}, .earlier_writes = true};
  int place = -1;
  for (int i = 0; i < kReaders && place < 0; ++i) {
    if (cell.readers[i].who() == now.who() || !cell.readers[i].exists()) place = i;
  }
  for (int i = 0; i < kReaders && place < 0; ++i) {
    if (agent.Knows(cell.readers[i])) place = i;
  }
  if (place < 0) place = static_cast<int>(evicted_++ % kReaders);
  cell.readers[place] = now;
  cell.at[1 + place] = at;
  return {};
}

Shadow::Found Shadow::NoteWrite(Cell& cell, const Agent& agent, bool atomic, const void* at) {
  const auto ordered = [&](Epoch e) {
    return !e.exists() || agent.Knows(e) || (atomic && e.atomic());
  };
  const void* written_at = IsWritten(cell) ? cell.at[0] : nullptr;
  if (!ordered(cell.writer))
    return {
        .verdict = Verdict::kRace, .earlier = {cell.writer, written_at}, .earlier_writes = true};
  for (int i = 0; i < kReaders; ++i) {
    if (!ordered(cell.readers[i]))
      return {.verdict = Verdict::kRace, .earlier = {cell.readers[i], cell.at[1 + i]}};
  }
  cell = {.writer = agent.Now(atomic), .readers = {}, .at = {at}};
  return {};
}

Shadow::Found Shadow::Note(const Agent& agent, size_t offset, size_t bytes, bool writes,
                           bool atomic, const void* at) {
  RefineFor(offset, bytes);
  for (size_t i = offset >> shift_; i << shift_ < offset + bytes; ++i) {
    Found found =
        writes ? NoteWrite(cells_[i], agent, atomic, at) : NoteRead(cells_[i], agent, atomic, at);
    if (found.verdict != Verdict::kFine) {
      found.offset = i << shift_;
      return found;
    }
  }
  return {};
}

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
  std::string name = "an earlier thread or stream, whose name is no longer kept,";
  for (const Owner& owner : slots_[epoch.slot()].owners) {
    if (owner.first <= epoch.generation()) name = owner.name;
  }
  return name;
}

}  // namespace coconet
