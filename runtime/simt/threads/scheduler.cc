#include "runtime/simt/threads/scheduler.h"

#include "coconet/base/status.h"

namespace coconet {

bool SimtScheduler::Starves(const SimtThread& thread, int warp) const {
  switch (order_) {
    case SimtOrder::kStarveBlock:
      return thread.place.block == thread.block->launch->starved;
    case SimtOrder::kStarveRank:
      return thread.block->launch->rank == starved_rank_;
    case SimtOrder::kStarveWarp:
      return thread.place.thread / 32 == warp;
    case SimtOrder::kRoundRobin:
    case SimtOrder::kRandom:
    case SimtOrder::kConsumerFirst:
      return false;
  }
  CC_CHECK(false);
}

void SimtScheduler::Add(List& list, SimtThread& thread) {
  thread.index = list.size();
  list.push_back(&thread);
}

void SimtScheduler::Drop(List& list, SimtThread& thread) {
  list.back()->index = thread.index;
  list[thread.index] = list.back();
  list.pop_back();
}

void SimtScheduler::MakeReady(SimtThread& thread) {
  if (thread.state == SimtThread::State::kSpins) Drop(spinning_, thread);
  thread.state = SimtThread::State::kReady;
  Add(ready_[thread.starved], thread);
}

void SimtScheduler::MakeSpin(SimtThread& thread) {
  Drop(ready_[thread.starved], thread);
  thread.state = SimtThread::State::kSpins;
  Add(spinning_, thread);
}

void SimtScheduler::Remove(SimtThread& thread) {
  if (thread.state == SimtThread::State::kReady) Drop(ready_[thread.starved], thread);
  if (thread.state == SimtThread::State::kSpins) Drop(spinning_, thread);
}

void SimtScheduler::NoteChange(SyncWord* word) {
  NoteChange();
  if (word == nullptr) return;
  std::vector<SyncWord::Waiter> waiters;
  waiters.swap(word->waiters);
  for (const SyncWord::Waiter& waiter : waiters) {
    if (waiter.thread->ticket != waiter.ticket) continue;
    ++waiter.thread->ticket;
    MakeReady(*waiter.thread);
  }
}

void SimtScheduler::WakeAll() {
  constexpr int kPollsPerLook = 256;  // as in jit/device/gpu/prelude.h
  looked_ = steps_;
  const List spinning = spinning_;
  for (SimtThread* thread : spinning) {
    thread->looks = (kPollsPerLook + 1) * (1 + thread->polls.count);
    ++thread->ticket;
    MakeReady(*thread);
  }
}

SimtThread* SimtScheduler::Next(int live_threads) {
  const size_t ready = ready_[0].size() + ready_[1].size();
  if (ready == 0) return nullptr;
  if (steps_ - changed_ > 1024 * (1 + uint64_t(live_threads))) {
    const size_t at = random_.Below(ready);
    return at < ready_[0].size() ? ready_[0][at] : ready_[1][at - ready_[0].size()];
  }
  const List& list = ready_[0].empty() ? ready_[1] : ready_[0];
  switch (order_) {
    case SimtOrder::kRoundRobin:
      return list[turn_++ % list.size()];
    case SimtOrder::kConsumerFirst:
      return list.back();
    case SimtOrder::kRandom:
    case SimtOrder::kStarveBlock:
    case SimtOrder::kStarveRank:
    case SimtOrder::kStarveWarp:
      return list[random_.Below(list.size())];
  }
  CC_CHECK(false);
}

}  // namespace coconet
