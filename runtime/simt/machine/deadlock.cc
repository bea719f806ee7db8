#include "runtime/simt/machine/deadlock.h"

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace coconet {
namespace {

constexpr size_t kMost = 8;  // different waits that are told

void AddSpinning(const SimtMemory& memory, const std::vector<SimtThread*>& spinning,
                 const Reporter& reporter, std::vector<std::string>& lines) {
  std::map<std::string, int> waits;  // threads by words
  for (const SimtThread* thread : spinning) {
    std::string words = absl::StrCat(reporter.NameOf(*thread, thread->at), " waits for ");
    const SimtBuffer* buffer = memory.Find(thread->awaited);
    if (buffer == nullptr) {
      absl::StrAppend(&words, "a word to change");
    } else {
      absl::StrAppend(&words, buffer->Name(buffer->OffsetOf(thread->awaited), 4), " to reach ",
                      thread->epoch, ", has ", *thread->awaited);
    }
    if (waits.size() < kMost || waits.count(words) > 0) ++waits[words];
  }
  for (const auto& [words, count] : waits) lines.push_back(words);
  if (spinning.size() > waits.size())
    lines.push_back(absl::StrCat("and ", spinning.size() - waits.size(), " more threads wait"));
}

/// The first thread of each block that waits at a barrier or in a shuffle.
void AddMeetings(const ResidentBlocks& blocks, const Reporter& reporter,
                 std::vector<std::string>& lines) {
  for (const std::unique_ptr<SimtBlock>& block : blocks.blocks()) {
    for (const SimtThread* thread : block->threads) {
      const bool at_barrier = thread->state == SimtThread::State::kAtBarrier;
      if ((!at_barrier && thread->state != SimtThread::State::kInShuffle) ||
          lines.size() > 2 * kMost)
        continue;
      lines.push_back(absl::StrCat(reporter.NameOf(*thread, thread->at),
                                   at_barrier
                                       ? absl::StrCat(" is at a barrier, as are ", block->arrived,
                                                      " of ", block->threads.size(), " threads")
                                       : " waits to meet its warp"));
      break;
    }
  }
}

}  // namespace

std::string DescribeWaits(const SimtMemory& memory, const SimtScheduler& scheduler,
                          const ResidentBlocks& blocks, const Reporter& reporter) {
  std::vector<std::string> lines;
  AddSpinning(memory, scheduler.spinning(), reporter, lines);
  AddMeetings(blocks, reporter, lines);
  for (const std::shared_ptr<SimtLaunch>& launch : blocks.launches()) {
    if (launch->started == launch->blocks) continue;
    lines.push_back(absl::StrCat("of ", launch->blocks, " blocks of ", launch->name, " on rank ",
                                 launch->rank, " only ", launch->started, " have begun, as ",
                                 blocks.resident(launch->rank),
                                 " run there: want all of a kernel whose blocks wait for each "
                                 "other at once"));
  }
  return absl::StrJoin(lines, "\n");
}

}  // namespace coconet
