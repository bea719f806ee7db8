#include "runtime/simt/machine/named_barriers.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace coconet {
namespace {

/// The threads of a warp of the block.
absl::Span<SimtThread* const> WarpOf(const SimtBlock& block, int warp) {
  return absl::MakeConstSpan(block.threads).subspan(warp * kWarpThreads, kWarpThreads);
}

bool IsAt(const SimtThread& thread, int number) {
  return thread.state == SimtThread::State::kAtNamedBarrier && thread.named_barrier == number;
}

}  // namespace

void NamedBarriers::CheckSync(SimtThread& thread, int number, int threads, const void* at) {
  const auto fail = [&](const auto&... why) {
    reporter_.ReportAndAbandon(thread, FindingKind::kBadBarrier,
                               absl::StrCat(reporter_.NameOf(thread, at), " is at barrier ", number,
                                            " of ", threads, " threads", why...));
  };
  if (number < 1 || number >= SimtBlock::kNamedBarriers)
    fail(": want 1 to ", SimtBlock::kNamedBarriers - 1, "; 0 is that of the whole block");
  const auto all = static_cast<int>(thread.block->warps.size()) * kWarpThreads;
  if (threads <= 0 || threads % kWarpThreads != 0 || threads > all)
    fail(": want a multiple of ", kWarpThreads, " up to the block's ", all);
  const NamedBarrier& barrier = thread.block->named_barriers[number];
  if (barrier.there.empty() || barrier.threads == threads) return;
  const SimtThread& first = *barrier.there[0];
  fail(", where ", reporter_.NameOf(first, first.at), " waits for ", barrier.threads);
}

void NamedBarriers::CheckWarp(SimtThread& thread, int number, const void* at) {
  const auto fail = [&](const auto&... why) {
    reporter_.ReportAndAbandon(
        thread, FindingKind::kDivergentBarrier,
        absl::StrCat(reporter_.NameOf(thread, at), " is at barrier ", number, ", where ", why...));
  };
  for (const SimtThread* other : WarpOf(*thread.block, thread.place.thread / kWarpThreads)) {
    switch (other->state) {
      case SimtThread::State::kAtNamedBarrier:
        if (!IsAt(*other, number) || !reporter_.IsSameLine(at, other->at))
          fail(reporter_.NameOf(*other, other->at), " is at barrier ", other->named_barrier);
        break;
      case SimtThread::State::kEnded:
        fail("thread ", other->place.thread, " of its warp has ended");
        break;
      case SimtThread::State::kAtBarrier:
      case SimtThread::State::kInShuffle:
      case SimtThread::State::kGathers:
        fail("thread ", other->place.thread, " of its warp waits (", reporter_.LineOf(other->at),
             ")");
        break;
      case SimtThread::State::kReady:
      case SimtThread::State::kSpins:
      case SimtThread::State::kAwaitsRegisters:
        break;
    }
  }
}

void NamedBarriers::Sync(SimtThread& thread, int number, int threads, const void* at) {
  ++arrivals_;
  stores_.MakeAllVisible(thread);
  thread.polls.count = 0;
  thread.at = at;
  CheckSync(thread, number, threads, at);
  CheckWarp(thread, number, at);
  NamedBarrier& barrier = thread.block->named_barriers[number];
  barrier.threads = threads;
  barrier.there.push_back(&thread);
  scheduler_.Remove(thread);
  thread.state = SimtThread::State::kAtNamedBarrier;
  thread.named_barrier = number;
  const auto is_here = [&](const SimtThread* other) { return IsAt(*other, number); };
  if (absl::c_all_of(WarpOf(*thread.block, thread.place.thread / kWarpThreads), is_here))
    barrier.arrived += kWarpThreads;
  if (barrier.arrived == barrier.threads) Finish(*thread.block, barrier);
  thread.Yield();
}

void NamedBarriers::Finish(SimtBlock& block, NamedBarrier& barrier) {
  const int number = barrier.there[0]->named_barrier;
  const auto is_whole = [&](const SimtThread* thread) {
    return absl::c_all_of(WarpOf(block, thread->place.thread / kWarpThreads),
                          [&](const SimtThread* other) { return IsAt(*other, number); });
  };
  // Other warps that have begun to come wait for the next turn.
  const auto rest = std::stable_partition(barrier.there.begin(), barrier.there.end(), is_whole);
  const std::vector<SimtThread*> done(barrier.there.begin(), rest);
  barrier.there.erase(barrier.there.begin(), rest);
  barrier.arrived = 0;
  MemoryModel::Join(done);
  for (SimtThread* thread : done) scheduler_.MakeReady(*thread);
  scheduler_.NoteChange();
}

void NamedBarriers::CheckNoneWaits(const SimtThread& thread) {
  const SimtBlock& block = *thread.block;
  for (int number = 1; number < SimtBlock::kNamedBarriers; ++number) {
    const NamedBarrier& barrier = block.named_barriers[number];
    if (barrier.there.empty()) continue;
    const auto ended = [](const SimtThread* other) {
      return other->state == SimtThread::State::kEnded;
    };
    int possible = 0;
    for (int warp = 0; warp < static_cast<int>(block.warps.size()); ++warp)
      possible += absl::c_any_of(WarpOf(block, warp), ended) ? 0 : kWarpThreads;
    if (possible >= barrier.threads) continue;
    const SimtThread& waits = *barrier.there[0];
    return reporter_.Report(
        FindingKind::kDivergentBarrier,
        absl::StrCat(reporter_.NameOf(waits, waits.at), " waits for ", barrier.threads,
                     " threads at barrier ", number, ", and thread ", thread.place.thread,
                     " has ended: ", possible, " are left"));
  }
}

}  // namespace coconet
