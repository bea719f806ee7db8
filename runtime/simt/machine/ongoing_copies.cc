// Copies that go on by themselves. They read early, or as late as they may; they store as late as
// they may. Until somebody waits for one, its accesses are ordered with nobody's, also not with
// those of the thread that began it.

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/simt/machine/machine.h"

namespace coconet {
namespace {

constexpr size_t kPiece = 16;

}  // namespace

void SimtMachine::Begin(SimtThread::Copies& copies, OngoingCopy copy) {
  SimtThread& thread = *running_;
  const uintptr_t ends =
      reinterpret_cast<uintptr_t>(copy.to) | reinterpret_cast<uintptr_t>(copy.from) | copy.filled;
  if (ends % kPiece != 0) {
    Report(FindingKind::kMisaligned, absl::StrCat(NameOf(thread, copy.at), " copies ", copy.bytes,
                                                  " bytes, not all at multiples of ", kPiece));
    Abandon(thread);
  }
  copy.group = copies.closed;
  Agent agent = thread.agent;
  agent.tick = static_cast<uint32_t>(copy.group) % Epoch::kTicks;
  agent.goes_on = true;
  copy.epoch = agent.Now();
  if (copy.bytes > 0)
    Check(copy.from, copy.bytes, /*writes=*/false, /*aligned=*/false, /*atomic=*/false, copy.at,
          agent);
  Check(copy.to, copy.filled, /*writes=*/true, /*aligned=*/false, /*atomic=*/false, copy.at, agent);
  copies.ongoing.push_back(std::move(copy));
  if (scheduler_.random().Below(2) == 0) ReadFor(copies.ongoing.back());
}

void SimtMachine::ReadFor(OngoingCopy& copy) {
  if (!copy.data.empty()) return;
  copy.data.assign(copy.from, copy.from + copy.bytes);
  copy.data.resize(copy.filled);
}

void SimtMachine::Land(const OngoingCopy& copy, const char* p, size_t bytes) {
  SimtBuffer* buffer = memory_->Find(p);
  if (buffer != nullptr)
    buffer->shadow().Land(copy.epoch, running_->agent.Now(), buffer->OffsetOf(p), bytes);
}

void SimtMachine::Await(SimtThread::Copies& copies, int open, bool stores) {
  const auto is_awaited = [&](const OngoingCopy& copy) {
    return copy.group < copies.closed - open;
  };
  for (OngoingCopy& copy : copies.ongoing) {
    if (!is_awaited(copy)) continue;
    ReadFor(copy);
    if (!std::exchange(copy.has_read, true)) Land(copy, copy.from, copy.bytes);
    if (!stores) continue;
    std::memcpy(copy.to, copy.data.data(), copy.filled);
    Land(copy, copy.to, copy.filled);
  }
  if (stores)
    copies.ongoing.erase(std::remove_if(copies.ongoing.begin(), copies.ongoing.end(), is_awaited),
                         copies.ongoing.end());
}

// ---- From shared memory, in bulk
// -----------------------------------------------------------------------

void SimtMachine::OnCopyBulk(void* machine, void* to, const void* from, int bytes, const void* at) {
  const auto size = static_cast<size_t>(bytes);
  SimtMachine& m = Of(machine);
  m.Begin(m.running_->bulk,
          {static_cast<char*>(to), static_cast<const char*>(from), size, size, 0, at, {}, {}});
  m.CheckFences(*m.running_, static_cast<const char*>(from), size, at);
}

// PTX ISA, memory consistency model: what one proxy wrote another sees where a fence of proxies
// lies on the way between: of who wrote, behind it, or of who has learned of that, by a barrier
// here, and lets others know.
bool SimtMachine::IsFenced(const SimtThread& thread, Epoch write) const {
  const SimtBlock& block = *thread.block;
  if (write.slot() != block.slot || write.generation() < block.first) return true;
  const auto covers = [&](const SimtThread& other) {
    if (!other.fenced.exists()) return false;
    if (other.place.thread == write.thread()) return other.fenced.when() >= write.when();
    return other.fenced.generation() > write.generation() &&
           (&other == &thread || other.fenced.generation() < block.generation);
  };
  if (covers(*block.threads[write.thread()])) return true;
  return std::any_of(block.threads.begin(), block.threads.end(),
                     [&](const SimtThread* other) { return covers(*other); });
}

void SimtMachine::CheckFences(SimtThread& thread, const char* from, size_t bytes, const void* at) {
  SimtBuffer* buffer = memory_->Find(from);
  if (buffer == nullptr) return;
  const size_t offset = buffer->OffsetOf(from);
  const Shadow::Access write =
      buffer->shadow().FindWrite(offset, bytes, [&](Epoch e) { return !IsFenced(thread, e); });
  if (!write.epoch.exists()) return;
  Report(FindingKind::kRace,
         absl::StrCat(NameOf(thread, at), " copies ", buffer->Name(offset, bytes), " in bulk; ",
                      NameOf(write.epoch, write.at),
                      " wrote there before, and no fence of proxies is between"));
  Abandon(thread);
}

void SimtMachine::OnFenceBulk(void* machine) {
  SimtThread& thread = *Of(machine).running_;
  thread.fenced = thread.agent.Now();
  thread.agent.tick = std::min<uint32_t>(thread.agent.tick + 1, Epoch::kTicks - 1);
}

void SimtMachine::OnCloseBulkGroup(void* machine) { ++Of(machine).running_->bulk.closed; }

void SimtMachine::OnAwaitBulk(void* machine, int open, bool stores) {
  SimtMachine& m = Of(machine);
  m.Yield();
  m.Await(m.running_->bulk, open, stores);
}

// ---- To shared memory, a piece at a time
// ---------------------------------------------------------------

void SimtMachine::OnCopyAsync(void* machine, void* to, const void* from, int bytes,
                              const void* at) {
  SimtMachine& m = Of(machine);
  m.Begin(m.running_->async, {static_cast<char*>(to),
                              static_cast<const char*>(from),
                              static_cast<size_t>(bytes),
                              kPiece,
                              0,
                              at,
                              {},
                              {}});
}

void SimtMachine::OnCloseAsyncGroup(void* machine) { ++Of(machine).running_->async.closed; }

void SimtMachine::OnAwaitAsync(void* machine, int open) {
  SimtMachine& m = Of(machine);
  m.Await(m.running_->async, open, /*stores=*/true);
}

}  // namespace coconet
