#include "runtime/simt/machine/mbarriers.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/simt/machine/memory_model.h"

namespace coconet {

SimtBarrier& Mbarriers::Find(SimtThread& thread, const char* p, bool writes, const void* at) {
  SimtBlock& block = *thread.block;
  const auto found = block.barriers.find(p);
  if (found == block.barriers.end()) {
    reporter_.ReportAndAbandon(
        thread, FindingKind::kBadBarrier,
        absl::StrCat(reporter_.NameOf(thread, at),
                     " uses a barrier in shared memory that no thread has initialised"));
  }
  checker_.Check(thread, {p, sizeof(uint64_t), writes, /*aligned=*/true, /*atomic=*/true, at});
  return found->second;
}

void Mbarriers::Init(SimtThread& thread, const char* p, int arrivals, const void* at) {
  const bool counts = arrivals >= 1 && arrivals <= SimtBarrier::kMostBytes;
  checker_.Check(thread,
                 {p, sizeof(uint64_t), /*writes=*/true, /*aligned=*/true, /*atomic=*/false, at});
  if (!counts || thread.block->barriers.contains(p)) {
    reporter_.ReportAndAbandon(
        thread, FindingKind::kBadBarrier,
        absl::StrCat(reporter_.NameOf(thread, at), " initialises a barrier",
                     counts ? " where there is one"
                            : absl::StrCat(" for ", arrivals, " arrivals: want 1 to ",
                                           SimtBarrier::kMostBytes)));
  }
  const auto count = static_cast<uint32_t>(arrivals);
  thread.block->barriers[p] = {
      .arrivals = count, .pending = count, .initialized = thread.agent.Now()};
}

void Mbarriers::Fence(SimtThread& thread) {
  thread.fenced_barriers = thread.agent.Now();
  thread.agent.tick = std::min<uint32_t>(thread.agent.tick + 1, Epoch::kTicks - 1);
}

void Mbarriers::Arrive(SimtThread& thread, const char* p, int bytes, const void* at) {
  thread.polls.count = 0;
  SimtBarrier& barrier = Find(thread, p, /*writes=*/true, at);
  barrier.bytes += bytes;
  const bool holds = bytes >= 0 && barrier.bytes <= SimtBarrier::kMostBytes;
  if (!holds || barrier.pending == 0) {
    reporter_.ReportAndAbandon(
        thread, FindingKind::kBadBarrier,
        absl::StrCat(reporter_.NameOf(thread, at), " arrives at a barrier, ",
                     holds ? absl::StrCat("all ", barrier.arrivals,
                                          " arrivals of whose phase have come before")
                           : absl::StrCat("and expects ", bytes, " bytes: want 0 to ",
                                          SimtBarrier::kMostBytes, ", with those that it misses")));
  }
  --barrier.pending;
  barrier.arrived.push_back(MemoryModel::Release(thread));
  SimtBuffer* buffer = memory_.Find(p);
  scheduler_.NoteChange(barrier.Advance() ? buffer->KnownWordAt(buffer->OffsetOf(p)) : nullptr);
  thread.Yield();
}

void Mbarriers::Sleep(SimtThread& thread, const char* p, const SimtBarrier& barrier,
                      const void* at) {
  ++thread.ticket;
  thread.at = at;
  thread.barrier = &barrier;
  SimtBuffer* buffer = memory_.Find(p);
  buffer->WordAt(buffer->OffsetOf(p)).waiters.push_back({&thread, thread.ticket});
  scheduler_.MakeSpin(thread);
  thread.Yield();
  thread.barrier = nullptr;
}

bool Mbarriers::TryWait(SimtThread& thread, const char* p, unsigned parity, const void* at) {
  constexpr size_t kFailsOneIn = 4;
  if (thread.looks > 0) {
    --thread.looks;
  } else {
    thread.Yield();
  }
  thread.polls.count = 0;
  SimtBarrier& barrier = Find(thread, p, /*writes=*/false, at);
  if (parity > 1) {
    reporter_.ReportAndAbandon(
        thread, FindingKind::kBadBarrier,
        absl::StrCat(reporter_.NameOf(thread, at), " waits for a phase of parity ", parity,
                     ": want 0 or 1"));
  }
  if (barrier.phase % 2 == parity && thread.looks == 0) Sleep(thread, p, barrier, at);
  if (barrier.phase % 2 == parity || scheduler_.random().Below(kFailsOneIn) == 0) return false;
  for (const Released& released : barrier.passed) MemoryModel::Acquire(thread, released);
  // Who sees the phase end behind this thread is behind it.
  if (barrier.phase > 0 && copies_.EndLoads(thread, barrier, barrier.phase - 1))
    barrier.passed.push_back(MemoryModel::Release(thread));
  return true;
}

void Mbarriers::CheckInitFence(SimtThread& thread, const SimtBarrier& barrier, const void* at) {
  const Epoch by = barrier.initialized;
  const Epoch fence = thread.block->threads[by.thread()]->fenced_barriers;
  if ((fence.exists() && fence.when() >= by.when()) || AccessChecker::IsFenced(thread, by)) return;
  reporter_.ReportAndAbandon(
      thread, FindingKind::kRace,
      absl::StrCat(reporter_.NameOf(thread, at),
                   " copies in bulk as bytes of a barrier that thread ", by.thread(),
                   " initialised, and no fence of barriers or proxies is between"));
}

void Mbarriers::Load(SimtThread& thread, char* to, const char* from, int bytes, const char* p,
                     const void* at) {
  SimtBarrier& barrier = Find(thread, p, /*writes=*/true, at);
  CheckInitFence(thread, barrier, at);
  copies_.BeginLoad(thread, to, from, static_cast<size_t>(bytes), p, barrier, at);
}

void Mbarriers::LoadBox(SimtThread& thread, char* to, const void* map, const SimtBoxAt& box,
                        const char* p, const void* at) {
  SimtBarrier& barrier = Find(thread, p, /*writes=*/true, at);
  CheckInitFence(thread, barrier, at);
  copies_.BeginBox(thread, to, map, box, p, barrier, at);
}

}  // namespace coconet
