#include "runtime/simt/machine/access_checker.h"

#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace coconet {
namespace {

/// Whether `fences(other)` holds for a thread whose last fence is before what the thread does now:
/// its own, or one before a barrier.
template <class F>
bool AnyFence(const SimtThread& thread, F&& fences) {
  return absl::c_any_of(thread.block->threads, [&](const SimtThread* other) {
    return other->fenced.exists() &&
           (other == &thread || other->fenced.generation() < thread.block->generation) &&
           fences(*other);
  });
}

/// Whether the writer fenced behind its access, before what the thread does now.
bool WriterFenced(const SimtThread& thread, const SimtThread& writer, Epoch access) {
  const auto is_before = [](Epoch fence, Epoch e) { return fence.when() < e.when(); };
  const auto behind = absl::c_lower_bound(writer.fences, access, is_before);
  return behind != writer.fences.end() && thread.agent.Knows(*behind);
}

}  // namespace

// PTX ISA, memory consistency model, proxies. Within a block, a fence lies between a write and a
// bulk copy if the writer fenced after the write, or if another thread fenced after a barrier
// behind the write and a barrier follows, or the copying thread itself did behind the write. What
// another block did, and this one learned of by an acquire, must be known at the fence.
bool AccessChecker::IsFenced(const SimtThread& thread, Epoch access) {
  const SimtBlock& block = *thread.block;
  if (access.slot() != block.slot || access.generation() < block.first) {
    return access.slot() == Agent::kInitialSlot || block.launch->start->Knows(access) ||
           AnyFence(thread,
                    [&](const SimtThread& other) { return other.fenced_clock->Knows(access); });
  }
  if (access.async_proxy()) return true;  // one proxy, one block
  if (WriterFenced(thread, *block.threads[access.thread()], access)) return true;
  if (thread.fenced.exists() && thread.fenced_clock->Knows(access)) return true;
  return AnyFence(thread, [&](const SimtThread& other) {
    return other.place.thread != access.thread() && other.fenced.generation() > access.generation();
  });
}

SimtBuffer* AccessChecker::CheckOutside(SimtThread& thread, KernelAccess access) {
  constexpr size_t kNear = size_t{1} << 20;
  const auto [p, bytes, writes, aligned, atomic, at] = access;
  if (memory_.Find(p) == nullptr && atomic && memory_.IsRegistered(p, bytes)) return nullptr;
  const std::string what = absl::StrCat(reporter_.NameOf(thread, at),
                                        writes ? " writes " : " reads ", bytes, " bytes at ");
  const SimtBuffer* before = memory_.Before(p);
  const size_t distance = before == nullptr ? 0 : before->OffsetOf(p);
  reporter_.ReportAndAbandon(
      thread, FindingKind::kOutOfBounds,
      before == nullptr || distance > before->bytes() + kNear
          ? absl::StrCat(what, "0x", absl::Hex(reinterpret_cast<uintptr_t>(p)),
                         ", where no rank has memory")
          : absl::StrCat(what, before->Name(distance, bytes), before->SizeAt(distance)));
}

void AccessChecker::FailMisaligned(SimtThread& thread, KernelAccess access,
                                   const SimtBuffer& buffer) {
  reporter_.ReportAndAbandon(
      thread, FindingKind::kMisaligned,
      absl::StrCat(reporter_.NameOf(thread, access.at), access.writes ? " writes " : " reads ",
                   buffer.Name(buffer.OffsetOf(access.p), access.bytes)));
}

void AccessChecker::FailShadow(SimtThread& thread, KernelAccess access, const SimtBuffer& buffer,
                               const Shadow::Found& found) {
  ReportShadow(buffer, buffer.OffsetOf(access.p), access.bytes, access.writes, found,
               reporter_.NameOf(thread, access.at));
  thread.Abandon();
}

void AccessChecker::CheckFences(SimtThread& thread, KernelAccess access, Proxied what) {
  SimtBuffer* buffer = memory_.Find(access.p);
  if (buffer == nullptr || !buffer->Holds(access.p, access.bytes) || given_up_) return;
  const size_t offset = buffer->OffsetOf(access.p);
  const Shadow::Access before = buffer->shadow().FindAccess(
      offset, access.bytes, /*reads=*/access.writes, [&](Epoch e) { return !IsFenced(thread, e); });
  if (!before.epoch.exists()) return;
  reporter_.ReportAndAbandon(
      thread, FindingKind::kRace,
      absl::StrCat(reporter_.NameOf(thread, access.at),
                   what == Proxied::kProduct ? " multiplies " : " copies ",
                   access.writes ? "to " : "", buffer->Name(offset, access.bytes),
                   what == Proxied::kProduct ? "; " : " in bulk; ",
                   reporter_.NameOf(before.epoch, before.at), access.writes ? " was" : " wrote",
                   " there before, and no fence of proxies is between"));
}

void AccessChecker::CheckHost(const Agent& agent, void* p, size_t bytes, bool writes) {
  SimtBuffer* buffer = memory_.Find(p);
  if (buffer == nullptr || bytes == 0 || reporter_.finding().has_value()) return;
  const size_t offset = buffer->OffsetOf(p);
  const Shadow::Found found =
      buffer->shadow().Note(agent, offset, bytes, writes, /*atomic=*/false, nullptr);
  if (found.verdict == Shadow::Verdict::kRace && !given_up_)
    ReportShadow(*buffer, offset, bytes, writes, found, reporter_.NameOf(agent.Now(), nullptr));
}

void AccessChecker::CheckWritten(const void* p, size_t bytes) {
  SimtBuffer* buffer = memory_.Find(p);
  if (buffer == nullptr || bytes == 0) return;
  const size_t offset = buffer->OffsetOf(p);
  const std::optional<size_t> byte = buffer->shadow().FirstUnwritten(offset, bytes);
  if (!byte.has_value()) return;
  // The kernel that writes other bytes of the range is probably the one that misses these.
  std::string rest;
  for (size_t i = offset; i < offset + bytes && rest.empty(); ++i) {
    const Shadow::Access write = buffer->shadow().WriteOf(i);
    if (write.epoch.exists())
      rest = absl::StrCat("; ", reporter_.NameOf(write.epoch, write.at), " wrote ",
                          buffer->Name(i, 1));
  }
  reporter_.Report(FindingKind::kUnwrittenOutput,
                   absl::StrCat("no kernel has written ", buffer->Name(*byte, 1), rest));
}

void AccessChecker::ReportShadow(const SimtBuffer& buffer, size_t offset, size_t bytes, bool writes,
                                 const Shadow::Found& found, const std::string& who) {
  const std::string what =
      absl::StrCat(who, writes ? " writes " : " reads ", buffer.Name(offset, bytes));
  if (found.verdict == Shadow::Verdict::kNeverWritten) {
    return reporter_.Report(
        FindingKind::kNeverWritten,
        absl::StrCat(what, "; nothing has written byte ", buffer.InPart(found.offset)));
  }
  reporter_.Report(
      FindingKind::kRace,
      absl::StrCat(what, "; ", reporter_.NameOf(found.earlier.epoch, found.earlier.at),
                   found.earlier_writes ? " wrote" : " read", " byte ", buffer.InPart(found.offset),
                   " before, and nothing orders the two"));
}

}  // namespace coconet
