// Copies that go on by themselves. They read early, or as late as they may; they store as late as they may.

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/simt/machine.h"

namespace coconet {
namespace {

constexpr size_t kPiece = 16;

}  // namespace

void SimtMachine::Begin(SimtThread::Copies& copies, OngoingCopy copy) {
  SimtThread& thread = *running_;
  const uintptr_t ends = reinterpret_cast<uintptr_t>(copy.to) | reinterpret_cast<uintptr_t>(copy.from) | copy.filled;
  if (ends % kPiece != 0) {
    Report(FindingKind::kMisaligned, absl::StrCat(NameOf(thread, copy.at), " copies ", copy.bytes, " bytes, not all at multiples of ", kPiece));
    Abandon(thread);
  }
  copy.group = copies.closed;
  copies.ongoing.push_back(std::move(copy));
  if (scheduler_.random().Below(2) == 0) ReadFor(copies.ongoing.back());
}

void SimtMachine::ReadFor(OngoingCopy& copy) {
  if (!copy.data.empty()) return;
  if (copy.bytes > 0) Check(copy.from, copy.bytes, /*writes=*/false, /*aligned=*/false, /*atomic=*/false, copy.at);
  copy.data.assign(copy.from, copy.from + copy.bytes);
  copy.data.resize(copy.filled);
}

void SimtMachine::Store(const OngoingCopy& copy) {
  Check(copy.to, copy.filled, /*writes=*/true, /*aligned=*/false, /*atomic=*/false, copy.at);
  std::memcpy(copy.to, copy.data.data(), copy.filled);
}

void SimtMachine::Await(SimtThread::Copies& copies, int open, bool stores) {
  const auto is_awaited = [&](const OngoingCopy& copy) { return copy.group < copies.closed - open; };
  for (OngoingCopy& copy : copies.ongoing) {
    if (!is_awaited(copy)) continue;
    ReadFor(copy);
    if (stores) Store(copy);
  }
  if (stores) copies.ongoing.erase(std::remove_if(copies.ongoing.begin(), copies.ongoing.end(), is_awaited), copies.ongoing.end());
}

// ---- From shared memory, in bulk -----------------------------------------------------------------------

void SimtMachine::OnCopyBulk(void* machine, void* to, const void* from, int bytes, const void* at) {
  const auto size = static_cast<size_t>(bytes);
  SimtMachine& m = Of(machine);
  m.Begin(m.running_->bulk, {static_cast<char*>(to), static_cast<const char*>(from), size, size, 0, at, {}});
}

void SimtMachine::OnCloseBulkGroup(void* machine) { ++Of(machine).running_->bulk.closed; }

void SimtMachine::OnAwaitBulk(void* machine, int open, bool stores) {
  SimtMachine& m = Of(machine);
  m.Yield();
  m.Await(m.running_->bulk, open, stores);
}

// ---- To shared memory, a piece at a time ---------------------------------------------------------------

void SimtMachine::OnCopyAsync(void* machine, void* to, const void* from, int bytes, const void* at) {
  SimtMachine& m = Of(machine);
  m.Begin(m.running_->async, {static_cast<char*>(to), static_cast<const char*>(from), static_cast<size_t>(bytes), kPiece, 0, at, {}});
}

void SimtMachine::OnCloseAsyncGroup(void* machine) { ++Of(machine).running_->async.closed; }

void SimtMachine::OnAwaitAsync(void* machine, int open) {
  SimtMachine& m = Of(machine);
  m.Await(m.running_->async, open, /*stores=*/true);
}

}  // namespace coconet
