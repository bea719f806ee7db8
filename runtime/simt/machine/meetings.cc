// What threads of a block do together: barriers and shuffles.

#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/simt/machine/machine.h"

namespace coconet {
namespace {

/// Of those of a warp that have come to a shuffle.
const SimtThread& FirstOf(const SimtBlock& block, const SimtWarp& warp) {
  const auto number = &warp - block.warps.data();
  return *block.threads[number * 32 + __builtin_ctz(warp.arrived)];
}

}  // namespace

bool SimtMachine::OnBarrier(void* machine, bool votes, bool ok, const void* at) {
  SimtMachine& m = Of(machine);
  SimtThread& thread = *m.running_;
  SimtBlock& block = *thread.block;
  ++m.operations_;
  m.MakeAllVisible(thread);
  thread.polls.count = 0;
  thread.at = at;
  if (block.live < static_cast<int>(block.threads.size())) {
    m.Report(FindingKind::kDivergentBarrier,
             absl::StrCat(m.NameOf(thread, at),
                          " is at a barrier, where other threads of the block have ended"));
    m.Abandon(thread);
  }
  if (block.arrived == 0) {
    block.votes = votes;
    block.all_ok = true;
    block.first_there = &thread;
  } else if (block.votes != votes || !m.IsSameLine(at, block.first_there->at)) {
    const std::string other = m.NameOf(*block.first_there, block.first_there->at);
    m.Report(FindingKind::kDivergentBarrier,
             absl::StrCat(m.NameOf(thread, at), " is at another barrier than ", other));
    m.Abandon(thread);
  }
  const SimtWarp& warp = block.warps[thread.place.thread / 32];
  if (warp.arrived != 0 && (warp.mask >> thread.place.thread % 32 & 1) != 0) {
    const SimtThread& other = FirstOf(block, warp);
    m.Report(FindingKind::kDivergentBarrier,
             absl::StrCat(m.NameOf(thread, at), " is at a barrier, where ",
                          m.NameOf(other, other.at), " waits for it to meet its warp"));
    m.Abandon(thread);
  }
  block.all_ok &= ok;
  if (++block.arrived == block.live) {
    m.FinishBarrier(block);
  } else {
    m.scheduler_.Remove(thread);
    thread.state = SimtThread::State::kAtBarrier;
  }
  m.Yield();
  return thread.vote;
}

void SimtMachine::FinishBarrier(SimtBlock& block) {
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
  changed_ = steps_;
}

std::string SimtMachine::WhyShuffleIsBad(const SimtThread& thread, unsigned mask) const {
  const SimtBlock& block = *thread.block;
  const int warp = thread.place.thread / 32, first = warp * 32;
  const SimtWarp& state = block.warps[warp];
  if ((mask >> (thread.place.thread - first) & 1) == 0) return "it is not in it itself";
  for (int lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    if (first + lane >= static_cast<int>(block.threads.size()))
      return absl::StrCat("it names thread ", first + lane, ", which the block lacks");
    const SimtThread& named = *block.threads[first + lane];
    if (named.state == SimtThread::State::kEnded)
      return absl::StrCat("it names thread ", first + lane, ", which has ended");
    if (named.state == SimtThread::State::kAtBarrier) {
      return absl::StrCat("it names thread ", first + lane, ", which waits at a barrier (",
                          LineOf(named.at), ")");
    }
  }
  if (state.arrived != 0 && state.mask != mask)
    return absl::StrCat("it is another than that of threads that wait, 0x", absl::Hex(state.mask));
  return "";
}

void SimtMachine::MeetWarp(SimtThread& thread, unsigned mask, int bytes, const void* at) {
  const int number = thread.place.thread / 32, lane = thread.place.thread % 32;
  SimtWarp& warp = thread.block->warps[number];
  ++operations_;
  thread.polls.count = 0;
  thread.at = at;
  std::string why = WhyShuffleIsBad(thread, mask);
  if (why.empty() && warp.arrived != 0 && warp.bytes != bytes)
    why = "others of the warp do something else";
  if (!why.empty()) {
    Report(FindingKind::kBadShuffle, absl::StrCat(NameOf(thread, at), " meets its warp by mask 0x",
                                                  absl::Hex(mask), ": ", why));
    Abandon(thread);
  }
  warp.mask = mask;
  warp.bytes = bytes;
  warp.arrived |= 1u << lane;
  if (warp.arrived == mask) return FinishShuffle(*thread.block, number);
  scheduler_.Remove(thread);
  thread.state = SimtThread::State::kInShuffle;
  Yield();
}

unsigned long long SimtMachine::OnShuffleDown(void* machine, unsigned mask,
                                              unsigned long long value, int distance,
                                              const void* at) {
  SimtMachine& m = Of(machine);
  SimtThread& thread = *m.running_;
  SimtWarp& warp = thread.block->warps[thread.place.thread / 32];
  warp.values[thread.place.thread % 32] = value;
  warp.distances[thread.place.thread % 32] = distance;
  m.MeetWarp(thread, mask, /*bytes=*/0, at);
  return thread.shuffled;
}

void SimtMachine::OnGather(void* machine, const void* mine, int bytes, void* all, const void* at) {
  SimtMachine& m = Of(machine);
  SimtThread& thread = *m.running_;
  SimtWarp& warp = thread.block->warps[thread.place.thread / 32];
  warp.given[thread.place.thread % 32] = mine;
  warp.gathered[thread.place.thread % 32] = all;
  m.MeetWarp(thread, ~0u, bytes, at);
}

void SimtMachine::FinishShuffle(SimtBlock& block, int number) {
  constexpr uint64_t kAny = 0x7ff7dead7fb7deadULL;  // NaN, as f32 and as f64
  SimtWarp& warp = block.warps[number];
  for (int lane = 0; lane < 32; ++lane) {
    if ((warp.mask >> lane & 1) == 0) continue;
    SimtThread& thread = *block.threads[number * 32 + lane];
    const int from = lane + warp.distances[lane];
    if (warp.bytes > 0) {
      for (int other = 0; other < 32; ++other) {
        std::memcpy(static_cast<char*>(warp.gathered[lane]) + other * warp.bytes, warp.given[other],
                    static_cast<size_t>(warp.bytes));
      }
    } else {
      thread.shuffled = from >= 32                     ? warp.values[lane]
                        : (warp.mask >> from & 1) != 0 ? warp.values[from]
                                                       : kAny;
    }
    if (thread.state == SimtThread::State::kInShuffle) scheduler_.MakeReady(thread);
  }
  warp.arrived = 0;
  changed_ = steps_;
}

}  // namespace coconet
