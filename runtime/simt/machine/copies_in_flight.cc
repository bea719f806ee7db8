#include "runtime/simt/machine/copies_in_flight.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace coconet {
namespace {

constexpr size_t kPiece = 16;

}  // namespace

void CopiesInFlight::Begin(SimtThread& thread, SimtThread::Copies& copies, CopyInFlight copy) {
  const uintptr_t ends =
      reinterpret_cast<uintptr_t>(copy.to) | reinterpret_cast<uintptr_t>(copy.from) | copy.filled;
  if (ends % kPiece != 0) {
    reporter_.ReportAndAbandon(
        thread, FindingKind::kMisaligned,
        absl::StrCat(reporter_.NameOf(thread, copy.at), " copies ", copy.bytes,
                     " bytes, not all at multiples of ", kPiece));
  }
  copy.group = copies.closed;
  Agent agent = thread.agent;
  agent.tick = static_cast<uint32_t>(copy.group) % Epoch::kTicks;
  agent.in_flight = true;
  copy.epoch = agent.Now();
  if (copy.bytes > 0)
    checker_.Check(thread, {copy.from, copy.bytes, /*writes=*/false, false, false, copy.at}, agent);
  checker_.Check(thread, {copy.to, copy.filled, /*writes=*/true, false, false, copy.at}, agent);
  copies.ongoing.push_back(std::move(copy));
  if (scheduler_.random().Below(2) == 0) Read(copies.ongoing.back());
}

void CopiesInFlight::BeginBulk(SimtThread& thread, char* to, const char* from, size_t bytes,
                               const void* at) {
  Begin(thread, thread.bulk, {.to = to, .from = from, .bytes = bytes, .filled = bytes, .at = at});
  checker_.CheckFences(thread, from, bytes, at);
}

void CopiesInFlight::BeginAsync(SimtThread& thread, char* to, const char* from, size_t bytes,
                                const void* at) {
  Begin(thread, thread.async, {.to = to, .from = from, .bytes = bytes, .filled = kPiece, .at = at});
}

void CopiesInFlight::Read(CopyInFlight& copy) {
  if (!copy.data.empty()) return;
  copy.data.assign(copy.from, copy.from + copy.bytes);
  copy.data.resize(copy.filled);
}

void CopiesInFlight::EndAccess(const SimtThread& thread, const CopyInFlight& copy, const char* p,
                               size_t bytes) {
  SimtBuffer* buffer = memory_.Find(p);
  if (buffer != nullptr)
    buffer->shadow().EndCopy(copy.epoch, thread.agent.Now(), buffer->OffsetOf(p), bytes);
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
  thread.agent.tick = std::min<uint32_t>(thread.agent.tick + 1, Epoch::kTicks - 1);
}

void CopiesInFlight::CheckNone(SimtThread& thread) {
  for (SimtThread::Copies* copies : {&thread.bulk, &thread.async}) {
    if (copies->ongoing.empty()) continue;
    reporter_.Report(FindingKind::kUnfinishedCopy,
                     absl::StrCat(reporter_.NameOf(thread, copies->ongoing[0].at),
                                  " has ended without awaiting this copy"));
    copies->ongoing.clear();
  }
}

}  // namespace coconet
