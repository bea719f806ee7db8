#include "runtime/simt/machine/copies_in_flight.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace coconet {
namespace {

constexpr size_t kPiece = 16;
constexpr size_t kBoxRowBytes = 128, kBoxAlignment = 1024;  // of swizzles of 128 bytes

}  // namespace

void CopiesInFlight::CheckAligned(SimtThread& thread, const CopyInFlight::Stretch& stretch,
                                  const void* at) {
  const uintptr_t ends = reinterpret_cast<uintptr_t>(stretch.to) |
                         reinterpret_cast<uintptr_t>(stretch.from) | stretch.filled;
  if (ends % kPiece == 0) return;
  reporter_.ReportAndAbandon(thread, FindingKind::kMisaligned,
                             absl::StrCat(reporter_.NameOf(thread, at), " copies ", stretch.bytes,
                                          " bytes, not all at multiples of ", kPiece));
}

void CopiesInFlight::Begin(SimtThread& thread, bool bulk, int number, CopyInFlight& copy) {
  constexpr auto kBulk = AccessChecker::Proxied::kBulkCopy;
  Agent agent = thread.agent;
  agent.tick = static_cast<uint32_t>(number) % Epoch::kTicks;
  agent.in_flight = true;
  agent.async_proxy = bulk;
  copy.epoch = agent.Now();
  for (const CopyInFlight::Stretch& stretch : copy.stretches) {
    const KernelAccess read{stretch.from, stretch.bytes, /*writes=*/false, false, false, copy.at},
        write{stretch.to, stretch.filled, /*writes=*/true, false, false, copy.at};
    if (bulk && stretch.bytes > 0) checker_.CheckFences(thread, read, kBulk);
    if (bulk) checker_.CheckFences(thread, write, kBulk);
    if (stretch.bytes > 0) checker_.Check(thread, read, agent);
    checker_.Check(thread, write, agent);
  }
  if (scheduler_.random().Below(2) == 0) Read(copy);
}

void CopiesInFlight::BeginBulk(SimtThread& thread, char* to, const char* from, size_t bytes,
                               const void* at) {
  CopyInFlight copy{.stretches = {{to, from, bytes, bytes}}, .at = at};
  CheckAligned(thread, copy.stretches[0], at);
  copy.group = thread.bulk.closed;
  Begin(thread, /*bulk=*/true, copy.group, copy);
  thread.bulk.ongoing.push_back(std::move(copy));
}

void CopiesInFlight::BeginAsync(SimtThread& thread, char* to, const char* from, size_t bytes,
                                const void* at) {
  CopyInFlight copy{.stretches = {{to, from, bytes, kPiece}}, .at = at};
  CheckAligned(thread, copy.stretches[0], at);
  copy.group = thread.async.closed;
  Begin(thread, /*bulk=*/false, copy.group, copy);
  thread.async.ongoing.push_back(std::move(copy));
}

void CopiesInFlight::Read(CopyInFlight& copy) {
  if (!copy.data.empty()) return;
  for (const CopyInFlight::Stretch& stretch : copy.stretches) {
    const size_t end = copy.data.size() + stretch.filled;
    copy.data.resize(copy.data.size() + stretch.lead);
    copy.data.insert(copy.data.end(), stretch.from, stretch.from + stretch.bytes);
    copy.data.resize(end);
  }
}

void CopiesInFlight::Store(const CopyInFlight& copy) {
  const char* from = copy.data.data();
  for (const CopyInFlight::Stretch& stretch : copy.stretches) {
    std::memcpy(stretch.to, from, stretch.filled);
    from += stretch.filled;
  }
}

void CopiesInFlight::EndAccess(const SimtThread& thread, const CopyInFlight& copy, const char* p,
                               size_t bytes) {
  SimtBuffer* buffer = memory_.Find(p);
  if (buffer == nullptr || bytes == 0) return;
  Agent agent = thread.agent;
  agent.async_proxy = copy.epoch.async_proxy();
  buffer->shadow().EndCopy(copy.epoch, agent.Now(), buffer->OffsetOf(p), bytes);
}

void CopiesInFlight::EndReads(const SimtThread& thread, const CopyInFlight& copy) {
  for (const CopyInFlight::Stretch& stretch : copy.stretches)
    EndAccess(thread, copy, stretch.from, stretch.bytes);
}

void CopiesInFlight::EndWrites(const SimtThread& thread, const CopyInFlight& copy) {
  for (const CopyInFlight::Stretch& stretch : copy.stretches)
    EndAccess(thread, copy, stretch.to, stretch.filled);
}

void CopiesInFlight::Await(SimtThread& thread, SimtThread::Copies& copies, int open, bool stores) {
  const auto is_awaited = [&](const CopyInFlight& copy) {
    return copy.group < copies.closed - open;
  };
  for (CopyInFlight& copy : copies.ongoing) {
    if (!is_awaited(copy)) continue;
    Read(copy);
    if (!std::exchange(copy.has_read, true)) EndReads(thread, copy);
    if (!stores) continue;
    Store(copy);
    EndWrites(thread, copy);
  }
  if (stores) std::erase_if(copies.ongoing, is_awaited);
}

void CopiesInFlight::Fence(SimtThread& thread) {
  const bool is_first = thread.fenced.generation() < thread.block->generation;
  if (is_first) thread.fences.clear();
  if (is_first && thread.fenced.exists()) thread.fences.push_back(thread.fenced);
  thread.fenced = thread.agent.Now();
  if (thread.fences.empty() || thread.fences.back() != thread.fenced)
    thread.fences.push_back(thread.fenced);
  thread.fenced_clock = thread.block->clock;
  if (thread.learned != nullptr) thread.fenced_clock = thread.learned;
  thread.agent.tick = std::min<uint32_t>(thread.agent.tick + 1, Epoch::kTicks - 1);
}

// ---- Loads

void CopiesInFlight::BeginParts(SimtThread& thread, Parts parts, const char* barrier_at,
                                SimtBarrier& barrier, const void* at) {
  const size_t first = loads_.size();
  for (std::vector<CopyInFlight::Stretch>& part : parts) {
    if (part.empty()) continue;
    loads_.push_back({&thread, {.stretches = std::move(part), .at = at}, barrier_at, &barrier});
    ++loading_;
  }
  for (size_t i = first; i < loads_.size(); ++i)
    Begin(thread, /*bulk=*/true, thread.loads++, loads_[i].copy);
}

void CopiesInFlight::BeginLoad(SimtThread& thread, char* to, const char* from, size_t bytes,
                               const char* barrier_at, SimtBarrier& barrier, const void* at) {
  CheckAligned(thread, {to, from, bytes, bytes}, at);
  const size_t first = scheduler_.random().Below(bytes / kPiece + 1) * kPiece, rest = bytes - first;
  Parts parts;
  if (first > 0) parts[0].push_back({to, from, first, first});
  if (rest > 0) parts[1].push_back({to + first, from + first, rest, rest});
  BeginParts(thread, std::move(parts), barrier_at, barrier, at);
}

SimtTensorMap CopiesInFlight::ReadMap(SimtThread& thread, const char* to, const void* map,
                                      const void* at) {
  constexpr size_t kMapBytes = 128, kMapAlignment = 64;
  const auto fail = [&](FindingKind kind, const auto&... why) {
    reporter_.ReportAndAbandon(thread, kind,
                               absl::StrCat(reporter_.NameOf(thread, at), " loads a box ", why...));
  };
  const auto offset = static_cast<const char*>(map) - thread.stack;
  if (reinterpret_cast<uintptr_t>(map) % kMapAlignment != 0)
    fail(FindingKind::kBadMap, "by a map that is not at a multiple of ", kMapAlignment);
  // A kernel's parameters are on the thread's stack.
  if (offset < 0 || offset + kMapBytes > StackPool::kBytes)
    checker_.Check(thread, {map, kMapBytes, /*writes=*/false, false, false, at});
  SimtTensorMap of;
  std::memcpy(&of, map, sizeof of);
  if (of.known != kSimtTensorMap) fail(FindingKind::kBadMap, "by bytes that are no map");
  if (of.box_columns * of.element_bytes != kBoxRowBytes) {
    fail(FindingKind::kBadMap, "with rows of ", of.box_columns * of.element_bytes, " bytes: want ",
         kBoxRowBytes, ", a whole pattern of swizzles");
  }
  if ((reinterpret_cast<uintptr_t>(of.base) | of.row_bytes) % kPiece != 0)
    fail(FindingKind::kBadMap, "of a matrix whose rows are not all at multiples of ", kPiece);
  if (reinterpret_cast<uintptr_t>(to) % kBoxAlignment != 0)
    fail(FindingKind::kMisaligned, "to ", reinterpret_cast<uintptr_t>(to) % kBoxAlignment,
         " bytes behind a multiple of ", kBoxAlignment, ": patterns of swizzles begin there");
  return of;
}

void CopiesInFlight::BeginBox(SimtThread& thread, char* to, const void* map, const SimtBoxAt& box,
                              const char* barrier_at, SimtBarrier& barrier, const void* at) {
  const SimtTensorMap of = ReadMap(thread, to, map, at);
  if (box.matrix.has_value() != (of.matrices > 0)) {
    reporter_.ReportAndAbandon(thread, FindingKind::kBadMap,
                               absl::StrCat(reporter_.NameOf(thread, at), " loads a box of ",
                                            box.matrix.has_value() ? 3 : 2,
                                            " dimensions by a map of ", of.matrices > 0 ? 3 : 2));
  }
  const auto& [column, row, matrix] = box;
  const int64_t of_matrix = matrix.value_or(0);
  const bool is_there =
      !matrix.has_value() || (of_matrix >= 0 && of_matrix < static_cast<int64_t>(of.matrices));
  const auto elements = static_cast<int64_t>(kPiece / of.element_bytes),
             columns = static_cast<int64_t>(of.columns), rows = static_cast<int64_t>(of.rows);
  const auto first = static_cast<int64_t>(scheduler_.random().Below(of.box_rows + 1));
  Parts parts;
  for (int64_t r = 0; r < of.box_rows; ++r) {
    const bool is_inside = is_there && row + r >= 0 && row + r < rows;
    for (int64_t piece = 0; piece < static_cast<int64_t>(kBoxRowBytes / kPiece); ++piece) {
      const int64_t begin = column + piece * elements,
                    from = std::clamp<int64_t>(begin, 0, columns),
                    end = std::clamp<int64_t>(begin + elements, from, columns);
      const size_t bytes = is_inside ? (end - from) * of.element_bytes : 0,
                   lead = bytes > 0 ? (from - begin) * of.element_bytes : 0;
      const char* const source =
          static_cast<const char*>(of.base) + of_matrix * static_cast<int64_t>(of.matrix_bytes) +
          (row + r) * static_cast<int64_t>(of.row_bytes) + from * of.element_bytes;
      parts[r < first ? 0 : 1].push_back({.to = Swizzled(to + r * kBoxRowBytes + piece * kPiece),
                                          .from = bytes > 0 ? source : nullptr,
                                          .bytes = bytes,
                                          .filled = kPiece,
                                          .lead = lead});
    }
  }
  BeginParts(thread, std::move(parts), barrier_at, barrier, at);
}

void CopiesInFlight::Load(BulkLoad& load) {
  Read(load.copy);
  Store(load.copy);
  load.done = true;
  load.phase = load.barrier->phase;
  --loading_;
  load.barrier->bytes -= static_cast<int64_t>(load.copy.data.size());
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
           EndReads(thread, load.copy);
           EndWrites(thread, load.copy);
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
