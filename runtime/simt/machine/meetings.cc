#include "runtime/simt/machine/meetings.h"

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace coconet {
namespace {

SimtWarp& WarpOf(const SimtThread& thread) { return thread.block->warps[thread.place.thread / 32]; }
int LaneOf(const SimtThread& thread) { return thread.place.thread % 32; }

}  // namespace

void Meetings::Wait(SimtThread& thread, SimtThread::State state) {
  scheduler_.Remove(thread);
  thread.state = state;
}

// ---- Barriers

void Meetings::CheckBarrier(SimtThread& thread, bool votes, const void* at) {
  const SimtBlock& block = *thread.block;
  const auto fail = [&](const auto&... why) {
    reporter_.ReportAndAbandon(thread, FindingKind::kDivergentBarrier,
                               absl::StrCat(reporter_.NameOf(thread, at), why...));
  };
  if (block.live < static_cast<int>(block.threads.size()))
    fail(" is at a barrier, where other threads of the block have ended");
  if (block.arrived > 0) {
    const SimtThread& first = *block.first_there;
    if (block.votes != votes || !reporter_.IsSameLine(at, first.at))
      fail(" is at another barrier than ", reporter_.NameOf(first, first.at));
  }
  const SimtWarp& warp = WarpOf(thread);
  if (warp.arrived != 0 && (warp.mask >> LaneOf(thread) & 1) != 0) {
    const int lane = __builtin_ctz(warp.arrived);
    const SimtThread& other = *block.threads[thread.place.thread / 32 * 32 + lane];
    fail(" is at a barrier, where ", reporter_.NameOf(other, other.at),
         " waits for it to meet its warp");
  }
  if (const SimtThread* other = block.WhoGathers(thread); other != nullptr) {
    fail(" is at a barrier, where ", reporter_.NameOf(*other, other->at), " ",
         other->gathering->what, " with it");
  }
}

bool Meetings::Barrier(SimtThread& thread, bool votes, bool ok, const void* at) {
  SimtBlock& block = *thread.block;
  ++arrivals_;
  stores_.MakeAllVisible(thread);
  thread.polls.count = 0;
  thread.at = at;
  CheckBarrier(thread, votes, at);
  if (block.arrived == 0) {
    block.votes = votes;
    block.all_ok = true;
    block.first_there = &thread;
  }
  block.all_ok &= ok;
  if (++block.arrived == block.live) {
    FinishBarrier(block);
  } else {
    Wait(thread, SimtThread::State::kAtBarrier);
  }
  thread.Yield();
  return thread.vote;
}

void Meetings::FinishBarrier(SimtBlock& block) {
  std::shared_ptr<Clock> joined;
  for (SimtThread* thread : block.threads) {
    if (thread->learned == nullptr) continue;
    if (joined == nullptr) joined = std::make_shared<Clock>(*block.clock);
    joined->Join(*thread->learned);
  }
  if (joined != nullptr) block.clock = std::move(joined);
  ++block.generation;
  for (SimtThread* thread : block.threads) {
    thread->learned = nullptr;
    thread->agent.generation = block.generation;
    thread->agent.tick = 0;
    thread->agent.clock = block.clock.get();
    thread->vote = block.all_ok;
    if (thread->state == SimtThread::State::kAtBarrier) scheduler_.MakeReady(*thread);
  }
  block.arrived = 0;
  scheduler_.NoteChange();
}

void Meetings::CheckNoneWaits(const SimtThread& thread) {
  const SimtBlock& block = *thread.block;
  if (block.arrived == 0) return;
  const auto at_barrier = [](const SimtThread* other) {
    return other->state == SimtThread::State::kAtBarrier;
  };
  const SimtThread& waits = **absl::c_find_if(block.threads, at_barrier);
  reporter_.Report(FindingKind::kDivergentBarrier,
                   absl::StrCat(reporter_.NameOf(waits, waits.at), " waits for thread ",
                                thread.place.thread, ", which has ended"));
}

// ---- Shuffles and gathers

std::string Meetings::MaskMistake(const SimtThread& thread, unsigned mask) const {
  const SimtBlock& block = *thread.block;
  const SimtWarp& warp = WarpOf(thread);
  const int first = thread.place.thread / 32 * 32;
  if ((mask >> LaneOf(thread) & 1) == 0) return "it lacks the thread itself";
  for (int lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    if (first + lane >= static_cast<int>(block.threads.size()))
      return absl::StrCat("it names thread ", first + lane, ", which the block lacks");
    const SimtThread& named = *block.threads[first + lane];
    if (named.state == SimtThread::State::kEnded)
      return absl::StrCat("it names thread ", first + lane, ", which has ended");
    if (named.state == SimtThread::State::kAtBarrier) {
      return absl::StrCat("it names thread ", first + lane, ", which waits at a barrier (",
                          reporter_.LineOf(named.at), ")");
    }
    if (named.state == SimtThread::State::kAtNamedBarrier) {
      return absl::StrCat("it names thread ", first + lane, ", which waits at a named barrier (",
                          reporter_.LineOf(named.at), ")");
    }
    if (named.state == SimtThread::State::kGathers)
      return absl::StrCat("it names thread ", first + lane, ", which ", named.gathering->what, " (",
                          reporter_.LineOf(named.at), ")");
  }
  if (warp.arrived != 0 && warp.mask != mask)
    return absl::StrCat("threads of the warp wait with another, 0x", absl::Hex(warp.mask));
  return "";
}

void Meetings::MeetWarp(SimtThread& thread, unsigned mask, int bytes, const void* at) {
  SimtWarp& warp = WarpOf(thread);
  ++arrivals_;
  thread.polls.count = 0;
  thread.at = at;
  std::string why = MaskMistake(thread, mask);
  if (why.empty() && warp.arrived != 0 && warp.bytes != bytes)
    why = "other threads of the warp do something else";
  if (!why.empty()) {
    reporter_.ReportAndAbandon(
        thread, FindingKind::kBadShuffle,
        absl::StrCat(reporter_.NameOf(thread, at), " meets its warp by mask 0x", absl::Hex(mask),
                     ": ", std::exchange(why, {})));
  }
  warp.mask = mask;
  warp.bytes = bytes;
  warp.arrived |= 1u << LaneOf(thread);
  if (warp.arrived == mask) return FinishWarp(*thread.block, thread.place.thread / 32);
  Wait(thread, SimtThread::State::kInShuffle);
  thread.Yield();
}

uint64_t Meetings::ShuffleDown(SimtThread& thread, unsigned mask, uint64_t value, int distance,
                               const void* at) {
  SimtWarp& warp = WarpOf(thread);
  warp.values[LaneOf(thread)] = value;
  warp.distances[LaneOf(thread)] = distance;
  MeetWarp(thread, mask, /*bytes=*/0, at);
  return thread.shuffled;
}

void Meetings::Gather(SimtThread& thread, const void* mine, int bytes, void* all, const void* at) {
  SimtWarp& warp = WarpOf(thread);
  warp.given[LaneOf(thread)] = mine;
  warp.gathered[LaneOf(thread)] = all;
  MeetWarp(thread, ~0u, bytes, at);
}

void Meetings::SyncWarp(SimtThread& thread, const void* at) {
  const auto rest = static_cast<unsigned>(thread.place.threads) - thread.place.thread / 32 * 32;
  stores_.MakeAllVisible(thread);
  MeetWarp(thread, rest < 32 ? (1u << rest) - 1 : ~0u, kSync, at);
}

void Meetings::FinishWarp(SimtBlock& block, int number) {
  // Hardware returns anything for a lane outside the mask. This NaN, as f32 and as f64, shows.
  constexpr uint64_t kUndefined = 0x7ff7dead7fb7deadULL;
  SimtWarp& warp = block.warps[number];
  std::vector<SimtThread*> synced;
  for (int lane = 0; lane < 32; ++lane) {
    if ((warp.mask >> lane & 1) == 0) continue;
    SimtThread& thread = *block.threads[number * 32 + lane];
    if (warp.bytes == kSync) {
      synced.push_back(&thread);
    } else if (warp.bytes > 0) {
      const auto bytes = static_cast<size_t>(warp.bytes);
      for (int other = 0; other < 32; ++other)
        std::memcpy(static_cast<char*>(warp.gathered[lane]) + other * bytes, warp.given[other],
                    bytes);
    } else {
      const int from = lane + warp.distances[lane];
      thread.shuffled = from >= 32                     ? warp.values[lane]
                        : (warp.mask >> from & 1) != 0 ? warp.values[from]
                                                       : kUndefined;
    }
    if (thread.state == SimtThread::State::kInShuffle) scheduler_.MakeReady(thread);
  }
  if (!synced.empty()) MemoryModel::Join(synced);
  warp.arrived = 0;
  scheduler_.NoteChange();
}

}  // namespace coconet
