#include "runtime/simt/machine/copies_in_flight.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace coconet {
namespace {

constexpr size_t kPiece = 16;

}  // namespace

void CopiesInFlight::Begin(SimtThread& thread, bool bulk, int number, CopyInFlight& copy) {
  const uintptr_t ends =
      reinterpret_cast<uintptr_t>(copy.to) | reinterpret_cast<uintptr_t>(copy.from) | copy.filled;
  if (ends % kPiece != 0) {
    reporter_.ReportAndAbandon(
        thread, FindingKind::kMisaligned,
        absl::StrCat(reporter_.NameOf(thread, copy.at), " copies ", copy.bytes,
                     " bytes, not all at multiples of ", kPiece));
  }
  if (bulk) {
    constexpr auto kBulk = AccessChecker::Proxied::kBulkCopy;
    checker_.CheckFences(thread, {copy.from, copy.bytes, /*writes=*/false, false, false, copy.at},
                         kBulk);
    checker_.CheckFences(thread, {copy.to, copy.filled, /*writes=*/true, false, false, copy.at},
                         kBulk);
  }
  Agent agent = thread.agent;
  agent.tick = static_cast<uint32_t>(number) % Epoch::kTicks;
  agent.in_flight = true;
  agent.async_proxy = bulk;
  copy.epoch = agent.Now();
  if (copy.bytes > 0)
    checker_.Check(thread, {copy.from, copy.bytes, /*writes=*/false, false, false, copy.at}, agent);
  checker_.Check(thread, {copy.to, copy.filled, /*writes=*/true, false, false, copy.at}, agent);
  if (scheduler_.random().Below(2) == 0) Read(copy);
}

void CopiesInFlight::BeginBulk(SimtThread& thread, char* to, const char* from, size_t bytes,
                               const void* at) {
  CopyInFlight copy{.to = to, .from = from, .bytes = bytes, .filled = bytes, .at = at};
  copy.group = thread.bulk.closed;
  Begin(thread, /*bulk=*/true, copy.group, copy);
  thread.bulk.ongoing.push_back(std::move(copy));
}

void CopiesInFlight::BeginAsync(SimtThread& thread, char* to, const char* from, size_t bytes,
                                const void* at) {
  CopyInFlight copy{.to = to, .from = from, .bytes = bytes, .filled = kPiece, .at = at};
  copy.group = thread.async.closed;
  Begin(thread, /*bulk=*/false, copy.group, copy);
  thread.async.ongoing.push_back(std::move(copy));
}

void CopiesInFlight::Read(CopyInFlight& copy) {
  if (!copy.data.empty()) return;
  copy.data.assign(copy.from, copy.from + copy.bytes);
  copy.data.resize(copy.filled);
}

void CopiesInFlight::EndAccess(const SimtThread& thread, const CopyInFlight& copy, const char* p,
                               size_t bytes) {
  SimtBuffer* buffer = memory_.Find(p);
  if (buffer == nullptr) return;
  Agent agent = thread.agent;
  agent.async_proxy = copy.epoch.async_proxy();
  buffer->shadow().EndCopy(copy.epoch, agent.Now(), buffer->OffsetOf(p), bytes);
}

void CopiesInFlight::Await(SimtThread& thread, SimtThread::Copies& copies, int open, bool stores) {
  const auto is_awaited = [&](const CopyInFlight& copy) {
    return copy.group < copies.closed - open;
  };
  for (CopyInFlight& copy : copies.ongoing) {
    if (!is_awaited(copy)) continue;
    Read(copy);
    if (!std::exchange(copy.has_read, true)) EndAccess(thread, copy, copy.from, copy.bytes);
    if (!stores) continue;
    std::memcpy(copy.to, copy.data.data(), copy.filled);
    EndAccess(thread, copy, copy.to, copy.filled);
  }
  if (stores) std::erase_if(copies.ongoing, is_awaited);
}

void CopiesInFlight::Fence(SimtThread& thread) {
  thread.fenced = thread.agent.Now();
  thread.fenced_clock = thread.block->clock;
  if (thread.learned != nullptr) thread.fenced_clock = thread.learned;
  thread.agent.tick = std::min<uint32_t>(thread.agent.tick + 1, Epoch::kTicks - 1);
}

// ---- Loads

void CopiesInFlight::BeginLoad(SimtThread& thread, char* to, const char* from, size_t bytes,
                               const char* barrier_at, SimtBarrier& barrier, const void* at) {
  const size_t first = scheduler_.random().Below(bytes / kPiece + 1) * kPiece;
  const std::pair<size_t, size_t> parts[] = {{0, first}, {first, bytes}};
  for (const auto& [begin, end] : parts) {
    if (begin == end) continue;
    CopyInFlight copy{.to = to + begin,
                      .from = from + begin,
                      .bytes = end - begin,
                      .filled = end - begin,
                      .at = at};
    Begin(thread, /*bulk=*/true, thread.loads++, copy);
    loads_.push_back({&thread, std::move(copy), barrier_at, &barrier});
    ++loading_;
  }
}

void CopiesInFlight::Load(BulkLoad& load) {
  Read(load.copy);
  std::memcpy(load.copy.to, load.copy.data.data(), load.copy.filled);
  load.done = true;
  load.phase = load.barrier->phase;
  --loading_;
  load.barrier->bytes -= static_cast<int64_t>(load.copy.bytes);
  if (!load.barrier->Advance()) return scheduler_.NoteChange();
  SimtBuffer* buffer = memory_.Find(load.at);
  scheduler_.NoteChange(buffer->KnownWordAt(buffer->OffsetOf(load.at)));
}

bool CopiesInFlight::LoadOne() {
  if (loading_ == 0) return false;
  size_t skipped = scheduler_.random().Below(loading_);
  for (BulkLoad& load : loads_) {
    if (load.done || skipped-- > 0) continue;
    Load(load);
    break;
  }
  return true;
}

void CopiesInFlight::LoadSome() {
  constexpr size_t kOneIn = 16;
  if (loading_ > 0 && scheduler_.random().Below(kOneIn) == 0) LoadOne();
}

bool CopiesInFlight::EndLoads(const SimtThread& thread, const SimtBarrier& barrier,
                              uint64_t phase) {
  return std::erase_if(loads_, [&](const BulkLoad& load) {
           if (load.barrier != &barrier || !load.done || load.phase > phase) return false;
           EndAccess(thread, load.copy, load.copy.from, load.copy.bytes);
           EndAccess(thread, load.copy, load.copy.to, load.copy.filled);
           return true;
         }) > 0;
}

// ---- Ends

void CopiesInFlight::ReportUnfinished(const SimtThread& thread, const CopyInFlight& copy) {
  reporter_.Report(
      FindingKind::kUnfinishedCopy,
      absl::StrCat(reporter_.NameOf(thread, copy.at), " has ended without awaiting this copy"));
}

void CopiesInFlight::CheckNone(SimtThread& thread) {
  for (SimtThread::Copies* copies : {&thread.bulk, &thread.async}) {
    if (copies->ongoing.empty()) continue;
    ReportUnfinished(thread, copies->ongoing[0]);
    copies->ongoing.clear();
  }
}

void CopiesInFlight::CheckNoLoads(const SimtBlock& block) {
  std::erase_if(loads_, [&](const BulkLoad& load) {
    if (load.thread->block != &block) return false;
    ReportUnfinished(*load.thread, load.copy);
    loading_ -= load.done ? 0 : 1;
    return true;
  });
}

}  // namespace coconet
