// What a machine says of mistakes.

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/simt/machine/machine.h"

namespace coconet {

void SimtMachine::Report(FindingKind kind, std::string text) {
  if (!finding_.has_value()) finding_ = Finding{kind, absl::StrCat(Name(kind), ": ", text)};
}

const std::string& SimtMachine::LineOf(const void* at) const {
  const auto [line, is_new] = lines_.try_emplace(at);
  if (is_new) line->second = SourceLine(at);
  return line->second;
}

std::string SimtMachine::NameOf(const SimtThread& thread, const void* at) const {
  const SimtLaunch& launch = *thread.block->launch;
  return absl::StrCat(launch.name, " (", LineOf(at), ") on rank ", launch.rank, " block ",
                      thread.place.block, " thread ", thread.place.thread);
}

std::string SimtMachine::NameOf(Epoch epoch, const void* at) const {
  std::string who = "somebody";
  for (const Tenant& tenant : slots_[epoch.slot()].tenants) {
    if (tenant.first <= epoch.generation()) who = tenant.who;
  }
  if (at == nullptr) return who;
  return absl::StrCat(epoch.goes_on() ? "a copy, not awaited yet, of " : "", who, " thread ",
                      epoch.thread(), " (", LineOf(at), ")");
}

void SimtMachine::ReportAddress(const void* p, size_t bytes, bool writes, const void* at) {
  const std::string what =
      absl::StrCat(NameOf(*running_, at), writes ? " writes " : " reads ", bytes, " bytes at ");
  const SimtBuffer* before = memory_->Before(p);
  const auto distance =
      before == nullptr ? 0 : static_cast<size_t>(static_cast<const char*>(p) - before->base());
  constexpr size_t kNear = size_t{1} << 20;
  Report(FindingKind::kOutOfBounds,
         before == nullptr || distance > before->bytes() + kNear
             ? absl::StrCat(what, "0x", absl::Hex(reinterpret_cast<uintptr_t>(p)),
                            ", where no rank has memory")
             : absl::StrCat(what, before->Name(distance, bytes), before->SizeAt(distance)));
}

void SimtMachine::ReportAccess(const SimtBuffer& buffer, size_t offset, size_t bytes, bool writes,
                               const Shadow::Found& found, const std::string& who) {
  const std::string what =
      absl::StrCat(who, writes ? " writes " : " reads ", buffer.Name(offset, bytes));
  if (found.verdict == Shadow::Verdict::kNeverWritten) {
    return Report(FindingKind::kNeverWritten,
                  absl::StrCat(what, "; nothing has written byte ", buffer.InPart(found.offset)));
  }
  Report(FindingKind::kRace,
         absl::StrCat(what, "; ", NameOf(found.earlier.epoch, found.earlier.at),
                      found.earlier_writes ? " wrote" : " read", " byte ",
                      buffer.InPart(found.offset), " before, and nothing orders the two"));
}

void SimtMachine::CheckWritten(const void* p, size_t bytes) {
  SimtBuffer* buffer = memory_->Find(p);
  if (buffer == nullptr || bytes == 0) return;
  const size_t offset = buffer->OffsetOf(p);
  const std::optional<size_t> byte = buffer->shadow().FirstUnwritten(offset, bytes);
  if (!byte.has_value()) return;
  // Who stores the rest of it is who left this out, as far as anybody knows.
  std::string rest;
  for (size_t at = offset; at < offset + bytes && rest.empty(); ++at) {
    const Shadow::Access write = buffer->shadow().WriteOf(at);
    if (write.epoch.exists())
      rest = absl::StrCat("; ", NameOf(write.epoch, write.at), " wrote ", buffer->Name(at, 1));
  }
  Report(FindingKind::kUnwrittenOutput,
         absl::StrCat("no kernel has written ", buffer->Name(*byte, 1), rest));
}

void SimtMachine::AccessFromHost(const Agent& agent, void* p, size_t bytes, bool writes) {
  SimtBuffer* buffer = memory_->Find(p);
  if (buffer == nullptr || bytes == 0 || finding_.has_value()) return;
  const size_t offset = buffer->OffsetOf(p);
  const Shadow::Found found =
      buffer->shadow().Note(agent, offset, bytes, writes, /*atomic=*/false, nullptr);
  if (found.verdict == Shadow::Verdict::kRace && !given_up_)
    ReportAccess(*buffer, offset, bytes, writes, found, NameOf(agent.Now(), nullptr));
}

std::string SimtMachine::WhoWaits() const {
  constexpr size_t kMost = 8;
  std::map<std::string, int> waits;  // how many wait so
  for (const SimtThread* thread : scheduler_.spinning()) {
    std::string words = absl::StrCat(NameOf(*thread, thread->at), " waits for ");
    const SimtBuffer* buffer = memory_->Find(thread->awaited);
    if (buffer == nullptr) {
      absl::StrAppend(&words, "a word to change");
    } else {
      absl::StrAppend(&words, buffer->Name(buffer->OffsetOf(thread->awaited), 4), " to reach ",
                      thread->epoch, ", has ", *thread->awaited);
    }
    if (waits.size() < kMost || waits.count(words) > 0) ++waits[words];
  }
  std::vector<std::string> all;
  for (const auto& [words, count] : waits) all.push_back(words);
  if (scheduler_.spinning().size() > all.size())
    all.push_back(
        absl::StrCat("and ", scheduler_.spinning().size() - all.size(), " more threads wait"));
  for (const std::unique_ptr<SimtBlock>& block : blocks_) {
    for (const SimtThread* thread : block->threads) {
      const bool at_barrier = thread->state == SimtThread::State::kAtBarrier;
      if ((!at_barrier && thread->state != SimtThread::State::kInShuffle) || all.size() > 2 * kMost)
        continue;
      all.push_back(absl::StrCat(NameOf(*thread, thread->at),
                                 at_barrier
                                     ? absl::StrCat(" is at a barrier, as are ", block->arrived,
                                                    " of ", block->threads.size(), " threads")
                                     : " waits to meet its warp"));
      break;
    }
  }
  for (const std::shared_ptr<SimtLaunch>& launch : launches_) {
    if (launch->started == launch->blocks) continue;
    all.push_back(
        absl::StrCat("of ", launch->blocks, " blocks of ", launch->name, " on rank ", launch->rank,
                     " only ", launch->started, " have begun, as ", resident_[launch->rank],
                     " run there: want all of a kernel whose blocks wait for each other at once"));
  }
  return absl::StrJoin(all, "\n");
}

}  // namespace coconet
