// Copies from shared memory that go on by themselves. They read early, or as late as they may; they store as late as they may.

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/simt/machine.h"

namespace coconet {

void SimtMachine::OnCopyBulk(void* machine, void* to, const void* from, int bytes, const void* at) {
  constexpr uintptr_t kAlignment = 16;
  SimtMachine& m = Of(machine);
  SimtThread& thread = *m.running_;
  const uintptr_t ends = reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from) | static_cast<uintptr_t>(bytes);
  if (ends % kAlignment != 0) {
    m.Report(FindingKind::kMisaligned, absl::StrCat(m.NameOf(thread, at), " copies ", bytes, " bytes in bulk, not all at multiples of ", kAlignment));
    m.Abandon(thread);
  }
  thread.copies.push_back({static_cast<char*>(to), static_cast<const char*>(from), static_cast<size_t>(bytes), thread.closed_groups, at, {}});
  if (m.scheduler_.random().Below(2) == 0) m.ReadFor(thread.copies.back());
}

void SimtMachine::OnCloseBulkGroup(void* machine) { ++Of(machine).running_->closed_groups; }

void SimtMachine::ReadFor(BulkCopy& copy) {
  if (!copy.data.empty() || copy.bytes == 0) return;
  Check(copy.from, copy.bytes, /*writes=*/false, /*aligned=*/false, /*atomic=*/false, copy.at);
  copy.data.assign(copy.from, copy.from + copy.bytes);
}

void SimtMachine::Store(const BulkCopy& copy) {
  Check(copy.to, copy.bytes, /*writes=*/true, /*aligned=*/false, /*atomic=*/false, copy.at);
  std::memcpy(copy.to, copy.data.data(), copy.bytes);
}

void SimtMachine::OnAwaitBulk(void* machine, int open, bool stores) {
  SimtMachine& m = Of(machine);
  SimtThread& thread = *m.running_;
  m.Yield();
  const auto is_awaited = [&](const BulkCopy& copy) { return copy.group < thread.closed_groups - open; };
  for (BulkCopy& copy : thread.copies) {
    if (!is_awaited(copy)) continue;
    m.ReadFor(copy);
    if (stores) m.Store(copy);
  }
  if (stores) thread.copies.erase(std::remove_if(thread.copies.begin(), thread.copies.end(), is_awaited), thread.copies.end());
}

}  // namespace coconet
