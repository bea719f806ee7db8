#include "runtime/simt/machine/store_buffers.h"

#include <algorithm>
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

}  // namespace coconet
