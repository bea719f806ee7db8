#include "runtime/simt/machine/memory_model.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace coconet {
namespace {

void Write(char* p, int bytes, uint64_t value) {
  if (bytes == 4) {
    __atomic_store_n(reinterpret_cast<uint32_t*>(p), static_cast<uint32_t>(value),
                     __ATOMIC_RELEASE);
  } else {
    __atomic_store_n(reinterpret_cast<uint64_t*>(p), value, __ATOMIC_RELEASE);
  }
}

uint64_t Read(const char* p, int bytes) {
  return bytes == 4 ? __atomic_load_n(reinterpret_cast<const uint32_t*>(p), __ATOMIC_ACQUIRE)
                    : __atomic_load_n(reinterpret_cast<const uint64_t*>(p), __ATOMIC_ACQUIRE);
}

KernelAccess AtomicAccess(const void* p, size_t bytes, bool writes, const void* at) {
  return {.p = p, .bytes = bytes, .writes = writes, .aligned = true, .atomic = true, .at = at};
}

}  // namespace

void StoreBuffers::Add(SimtThread& thread, PendingStore store) {
  constexpr size_t kMostPending = 64;
  if (thread.pending.size() == kMostPending) MakeOneVisible(thread);
  if (thread.pending.empty()) storing_.push_back(&thread);
  thread.pending.push_back(std::move(store));
}

void StoreBuffers::MakeVisible(const PendingStore& store) {
  SimtBuffer* buffer = memory_.Find(store.to);
  SyncWord* word = nullptr;
  if (buffer != nullptr) {
    const size_t offset = buffer->OffsetOf(store.to);
    word = store.releases ? &buffer->WordAt(offset) : buffer->KnownWordAt(offset);
  }
  Write(store.to, store.bytes, store.value);
  if (word != nullptr) word->released = store.released;
  scheduler_.NoteChange(word);
}

void StoreBuffers::MakeOneVisible(SimtThread& thread) {
  std::vector<PendingStore>& pending = thread.pending;
  size_t which = scheduler_.random().Below(pending.size());
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

void StoreBuffers::MakeAllVisible(SimtThread& thread) {
  while (!thread.pending.empty()) MakeOneVisible(thread);
}

void StoreBuffers::DrainSome() {
  constexpr size_t kOneIn = 4;
  if (storing_.empty() || scheduler_.random().Below(kOneIn) != 0) return;
  const size_t at = scheduler_.random().Below(storing_.size());
  SimtThread& thread = *storing_[at];
  if (!thread.pending.empty()) MakeOneVisible(thread);
  if (!thread.pending.empty()) return;
  storing_[at] = storing_.back();
  storing_.pop_back();
}

bool StoreBuffers::DrainAll() {
  const bool any = !storing_.empty();
  for (SimtThread* thread : storing_) MakeAllVisible(*thread);
  storing_.clear();
  return any;
}

void MemoryModel::Acquire(SimtThread& thread, const Released& released) {
  if (!released || thread.agent.Knows(released.by)) return;
  // A clock that a release of this thread shares is not changed any more.
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

Released MemoryModel::Release(SimtThread& thread) {
  std::shared_ptr<const Clock> clock = thread.block->clock;
  if (thread.learned != nullptr) clock = thread.learned;
  const Released released{std::move(clock), thread.agent.Now()};
  if (++thread.agent.tick == Epoch::kTicks) thread.agent.tick = Epoch::kTicks - 1;
  return released;
}

void MemoryModel::Join(const std::vector<SimtThread*>& threads) {
  const auto joined = std::make_shared<Clock>(*threads[0]->block->clock);
  for (SimtThread* thread : threads) {
    const Released released = Release(*thread);
    if (thread->learned != nullptr) joined->Join(*thread->learned);
    joined->JoinSlot(released.by.slot(), released.by.generation());
    joined->JoinReleased(released.by);
  }
  for (SimtThread* thread : threads) {
    thread->learned = joined;
    thread->agent.clock = joined.get();
  }
}

void MemoryModel::Spin(SimtThread& thread, const void* at) {
  ++thread.ticket;
  thread.at = at;
  for (int i = 0; i < thread.polls.count; ++i) {
    const char* from = thread.polls.all[i].from;
    SimtBuffer* buffer = memory_.Find(from);
    buffer->WordAt(buffer->OffsetOf(from)).waiters.push_back({&thread, thread.ticket});
  }
  scheduler_.MakeSpin(thread);
  thread.Yield();
}

uint64_t MemoryModel::LoadOne(SimtThread& thread, SimtBuffer* buffer, const char* p, int bytes,
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

void MemoryModel::Load(SimtThread& thread, const char* from, int bytes, int count, bool acquires,
                       unsigned long long* values, const void* at) {
  if (thread.looks > 0) {
    --thread.looks;
  } else {
    thread.Yield();
  }
  SimtBuffer* buffer =
      checker_.Check(thread, AtomicAccess(from, size_t(bytes) * count, /*writes=*/false, at));
  bool repeats = false;
  for (int k = 0; k < count; ++k) {
    values[k] = LoadOne(thread, buffer, from + k * bytes, bytes, acquires);
    repeats |= buffer != nullptr && thread.polls.Repeats(from + k * bytes, values[k]);
    // The host tells a plan's kernels to stop by words of its own memory.
    if (buffer == nullptr && values[k] != 0) checker_.GiveUpPlan();
  }
  if (!repeats || thread.looks > 0) return;
  Spin(thread, at);
  for (int k = 0; k < count; ++k)
    values[k] = LoadOne(thread, buffer, from + k * bytes, bytes, acquires);
}

void MemoryModel::Store(SimtThread& thread, char* to, int bytes, int count, bool releases,
                        const unsigned long long* values, const void* at) {
  thread.polls.count = 0;
  const SimtBuffer* buffer =
      checker_.Check(thread, AtomicAccess(to, size_t(bytes) * count, /*writes=*/true, at));
  const Released released = releases ? Release(thread) : Released{};
  for (int k = 0; k < count; ++k)
    stores_.Add(thread, {to + k * bytes, values[k], bytes, releases, released});
  if (buffer == nullptr) checker_.GiveUpPlan();
  if (!weak_ || buffer == nullptr) stores_.MakeAllVisible(thread);
  thread.Yield();
}

unsigned MemoryModel::Exchange(SimtThread& thread, unsigned* p, unsigned value, const void* at) {
  thread.Yield();
  stores_.MakeAllVisible(thread);
  thread.polls.count = 0;
  checker_.Check(thread, AtomicAccess(p, sizeof *p, /*writes=*/true, at));
  const unsigned old = __atomic_exchange_n(p, value, __ATOMIC_ACQ_REL);
  SimtBuffer* buffer = memory_.Find(p);
  scheduler_.NoteChange(buffer == nullptr ? nullptr : buffer->KnownWordAt(buffer->OffsetOf(p)));
  return old;
}

}  // namespace coconet
