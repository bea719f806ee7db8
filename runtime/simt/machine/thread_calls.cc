// What a thread asks of its machine by itself: accesses, and words.

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/simt/machine/machine.h"

namespace coconet {
namespace {

uint64_t Read(const char* p, int bytes) {
  return bytes == 4 ? __atomic_load_n(reinterpret_cast<const uint32_t*>(p), __ATOMIC_ACQUIRE)
                    : __atomic_load_n(reinterpret_cast<const uint64_t*>(p), __ATOMIC_ACQUIRE);
}

void Write(char* p, int bytes, uint64_t value) {
  if (bytes == 4) {
    __atomic_store_n(reinterpret_cast<uint32_t*>(p), static_cast<uint32_t>(value),
                     __ATOMIC_RELEASE);
  } else {
    __atomic_store_n(reinterpret_cast<uint64_t*>(p), value, __ATOMIC_RELEASE);
  }
}

}  // namespace

// ---- Accesses
// ------------------------------------------------------------------------------------------

SimtBuffer* SimtMachine::Check(const void* p, size_t bytes, bool writes, bool aligned, bool atomic,
                               const void* at, const Agent& agent) {
  SimtThread& thread = *running_;
  ++operations_;
  SimtBuffer* buffer = memory_->Find(p);
  if (buffer == nullptr || !buffer->Holds(p, bytes)) {
    if (buffer == nullptr && atomic && memory_->IsRegistered(p, bytes)) return nullptr;
    ReportAddress(p, bytes, writes, at);
    Abandon(thread);
  }
  if (aligned && (reinterpret_cast<uintptr_t>(p) & (bytes - 1)) != 0) {
    Report(FindingKind::kMisaligned,
           absl::StrCat(NameOf(thread, at), writes ? " writes " : " reads ",
                        buffer->Name(buffer->OffsetOf(p), bytes)));
    Abandon(thread);
  }
  const size_t offset = buffer->OffsetOf(p);
  const Shadow::Found found = buffer->shadow().Note(agent, offset, bytes, writes, atomic, at);
  if (found.verdict != Shadow::Verdict::kFine && !given_up_) {
    ReportAccess(*buffer, offset, bytes, writes, found, NameOf(thread, at));
    Abandon(thread);
  }
  return buffer;
}

void SimtMachine::OnAccess(void* machine, const void* p, unsigned long bytes, bool writes,
                           bool aligned, const void* at) {
  SimtMachine& m = Of(machine);
  if (writes) m.running_->polls.count = 0;
  m.Check(p, bytes, writes, aligned, /*atomic=*/false, at);
}

// ---- Turns
// ---------------------------------------------------------------------------------------------

void SimtMachine::Yield() { running_->fiber.Stop(); }

void SimtMachine::Abandon(SimtThread& thread) {
  while (true) thread.fiber.Stop();
}

void SimtMachine::Spin(SimtThread& thread, const void* at) {
  ++thread.ticket;
  thread.at = at;
  for (int i = 0; i < thread.polls.count; ++i) {
    const char* from = thread.polls.all[i].from;
    SimtBuffer* buffer = memory_->Find(from);
    buffer->WordAt(buffer->OffsetOf(from)).waiters.push_back({&thread, thread.ticket});
  }
  scheduler_.MakeSpin(thread);
  Yield();
}

void SimtMachine::Changed(SyncWord* word) {
  changed_ = steps_;
  if (word == nullptr) return;
  std::vector<SyncWord::Waiter> waiters;
  waiters.swap(word->waiters);
  for (const SyncWord::Waiter& waiter : waiters) {
    if (waiter.thread->ticket != waiter.ticket) continue;
    ++waiter.thread->ticket;
    scheduler_.MakeReady(*waiter.thread);
  }
}

// ---- What threads know of each other
// -------------------------------------------------------------------

void SimtMachine::Acquire(SimtThread& thread, const Released& released) {
  if (!released || thread.agent.Knows(released.by)) return;
  // Whoever was handed the clock of this thread by a release keeps it as it was.
  if (thread.learned == nullptr) {
    thread.learned = std::make_shared<Clock>(*thread.block->clock);
  } else if (thread.learned.use_count() > 1) {
    thread.learned = std::make_shared<Clock>(*thread.learned);
  }
  thread.agent.clock = thread.learned.get();
  thread.learned->Join(*released.clock);
  thread.learned->JoinSlot(released.by.slot(), released.by.generation());
  thread.learned->JoinReleased(released.by);
}

Released SimtMachine::Release(SimtThread& thread) {
  std::shared_ptr<const Clock> clock = thread.block->clock;
  if (thread.learned != nullptr) clock = thread.learned;
  const Released released{std::move(clock), thread.agent.Now()};
  if (++thread.agent.tick == Epoch::kTicks) thread.agent.tick = Epoch::kTicks - 1;
  return released;
}

// ---- Loads and stores of the memory model
// --------------------------------------------------------------

uint64_t SimtMachine::LoadOne(SimtThread& thread, SimtBuffer* buffer, const char* p, int bytes,
                              bool acquires) {
  for (auto own = thread.pending.rbegin(); own != thread.pending.rend(); ++own) {
    if (own->to == p && own->bytes == bytes) return own->value;
  }
  const uint64_t value = Read(p, bytes);
  if (acquires && buffer != nullptr) {
    if (const SyncWord* word = buffer->KnownWordAt(buffer->OffsetOf(p)); word != nullptr)
      Acquire(thread, word->released);
  }
  return value;
}

void SimtMachine::OnLoad(void* machine, const void* p, int bytes, int count, bool acquires,
                         unsigned long long* values, const void* at) {
  SimtMachine& m = Of(machine);
  SimtThread& thread = *m.running_;
  if (thread.looks > 0) {
    --thread.looks;
  } else {
    m.Yield();
  }
  SimtBuffer* buffer =
      m.Check(p, size_t(bytes) * count, /*writes=*/false, /*aligned=*/true, /*atomic=*/true, at);
  const auto* from = static_cast<const char*>(p);
  bool repeats = false;
  for (int k = 0; k < count; ++k) {
    values[k] = m.LoadOne(thread, buffer, from + k * bytes, bytes, acquires);
    repeats |= buffer != nullptr && thread.polls.Repeats(from + k * bytes, values[k]);
    m.given_up_ |= buffer == nullptr && values[k] != 0;
  }
  if (!repeats || thread.looks > 0) return;
  m.Spin(thread, at);
  for (int k = 0; k < count; ++k)
    values[k] = m.LoadOne(thread, buffer, from + k * bytes, bytes, acquires);
}

void SimtMachine::OnStore(void* machine, void* p, int bytes, int count, bool releases,
                          const unsigned long long* values, const void* at) {
  constexpr size_t kMostPending = 64;
  SimtMachine& m = Of(machine);
  SimtThread& thread = *m.running_;
  thread.polls.count = 0;
  auto* to = static_cast<char*>(p);
  const SimtBuffer* buffer =
      m.Check(p, size_t(bytes) * count, /*writes=*/true, /*aligned=*/true, /*atomic=*/true, at);
  const Released released = releases ? m.Release(thread) : Released{};
  for (int k = 0; k < count; ++k) {
    if (thread.pending.size() == kMostPending) m.MakeOneVisible(thread);
    if (thread.pending.empty()) m.storing_.push_back(&thread);
    thread.pending.push_back({to + k * bytes, values[k], bytes, releases, released});
  }
  m.given_up_ |= buffer == nullptr;
  if (!m.options_.weak || buffer == nullptr) m.MakeAllVisible(thread);
  m.Yield();
}

unsigned SimtMachine::OnExchange(void* machine, unsigned* p, unsigned value, const void* at) {
  SimtMachine& m = Of(machine);
  SimtThread& thread = *m.running_;
  m.Yield();
  m.MakeAllVisible(thread);
  thread.polls.count = 0;
  m.Check(p, sizeof *p, /*writes=*/true, /*aligned=*/true, /*atomic=*/true, at);
  const unsigned old = __atomic_exchange_n(p, value, __ATOMIC_ACQ_REL);
  SimtBuffer* buffer = m.memory_->Find(p);
  m.Changed(buffer == nullptr ? nullptr : buffer->KnownWordAt(buffer->OffsetOf(p)));
  return old;
}

void SimtMachine::MakeVisible(const PendingStore& store) {
  SimtBuffer* buffer = memory_->Find(store.to);
  SyncWord* word = nullptr;
  if (buffer != nullptr) {
    const size_t offset = buffer->OffsetOf(store.to);
    word = store.releases ? &buffer->WordAt(offset) : buffer->KnownWordAt(offset);
  }
  Write(store.to, store.bytes, store.value);
  if (word != nullptr) word->released = store.released;
  Changed(word);
}

void SimtMachine::MakeOneVisible(SimtThread& thread) {
  std::vector<PendingStore>& pending = thread.pending;
  size_t which = scheduler_.random().Below(pending.size());
  // A release comes behind all before it, and a store behind those of the same bytes.
  const auto overlaps = [&](const PendingStore& other) {
    return other.to < pending[which].to + pending[which].bytes &&
           pending[which].to < other.to + other.bytes;
  };
  if (pending[which].releases || std::any_of(pending.begin(), pending.begin() + which, overlaps))
    which = 0;
  const PendingStore store = std::move(pending[which]);
  pending.erase(pending.begin() + which);
  MakeVisible(store);
}

void SimtMachine::MakeAllVisible(SimtThread& thread) {
  while (!thread.pending.empty()) MakeOneVisible(thread);
}

void SimtMachine::DrainSome() {
  constexpr size_t kOneIn = 4;
  if (storing_.empty() || scheduler_.random().Below(kOneIn) != 0) return;
  const size_t at = scheduler_.random().Below(storing_.size());
  SimtThread& thread = *storing_[at];
  if (!thread.pending.empty()) MakeOneVisible(thread);
  if (!thread.pending.empty()) return;
  storing_[at] = storing_.back();
  storing_.pop_back();
}

bool SimtMachine::DrainAll() {
  const bool any = !storing_.empty();
  for (SimtThread* thread : storing_) MakeAllVisible(*thread);
  storing_.clear();
  return any;
}

// ---- The rest
// ------------------------------------------------------------------------------------------

void SimtMachine::OnNoteWait(void* machine, const unsigned* flag, unsigned epoch) {
  SimtThread& thread = *Of(machine).running_;
  thread.awaited = flag;
  thread.epoch = epoch;
}

void* SimtMachine::OnShared(void* machine, const void* place, unsigned long bytes) {
  SimtMachine& m = Of(machine);
  SimtBlock& block = *m.running_->block;
  for (const auto& [known, buffer] : block.shared) {
    if (known == place) return buffer->base();
  }
  const auto has_size = [&](const SimtBuffer* buffer) { return buffer->bytes() == bytes; };
  const auto fits = std::find_if(m.free_shared_.begin(), m.free_shared_.end(), has_size);
  SimtBuffer* buffer = nullptr;
  if (fits != m.free_shared_.end()) {
    buffer = *fits;
    m.free_shared_.erase(fits);
    buffer->shadow().Forget();
  } else {
    buffer = m.memory_->Allocate(bytes, block.launch->rank);
  }
  if (buffer == nullptr) {
    m.Report(FindingKind::kNoRoom, absl::StrCat("for ", bytes, " bytes of shared memory"));
    m.Abandon(*m.running_);
  }
  buffer->NamePart(0, buffer->bytes(), absl::StrCat("shared memory of block ", block.index));
  block.shared.emplace_back(place, buffer);
  return buffer->base();
}

unsigned long long SimtMachine::OnNow(void* machine) { return Of(machine).now_ns(); }

}  // namespace coconet
