#include "runtime/simt/machine/machine.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {

absl::StatusOr<std::unique_ptr<SimtMachine>> SimtMachine::Make(const SimtOptions& options,
                                                               int ranks) {
  ASSIGN_OR_RETURN(std::unique_ptr<SimtMemory> memory, SimtMemory::Make());
  return std::unique_ptr<SimtMachine>(new SimtMachine(options, ranks, std::move(memory)));
}

SimtMachine::SimtMachine(const SimtOptions& options, int ranks, std::unique_ptr<SimtMemory> memory)
    : options_(options),
      memory_(std::move(memory)),
      calls_{},
      scheduler_(options, ranks),
      slots_(1),
      resident_(ranks) {
  calls_ = {.place = nullptr,
            .stack = 0,
            .stack_bytes = StackPool::kBytes,
            .machine = this,
            .access = OnAccess,
            .load = OnLoad,
            .store = OnStore,
            .exchange = OnExchange,
            .note_wait = OnNoteWait,
            .barrier = OnBarrier,
            .shuffle_down = OnShuffleDown,
            .shared = OnShared,
            .now_ns = OnNow,
            .copy_bulk = OnCopyBulk,
            .close_bulk_group = OnCloseBulkGroup,
            .await_bulk = OnAwaitBulk,
            .fence_bulk = OnFenceBulk,
            .copy_async = OnCopyAsync,
            .close_async_group = OnCloseAsyncGroup,
            .await_async = OnAwaitAsync,
            .gather = OnGather};
}

// ---- Slots
// ---------------------------------------------------------------------------------------------

Agent SimtMachine::TakeSlot(const std::string& who) {
  constexpr size_t kRemembered = 16;
  if (free_slots_.empty()) {
    CC_CHECK(slots_.size() < Epoch::kSlots);
    free_slots_.push_back(static_cast<int>(slots_.size()));
    slots_.emplace_back();
  }
  const int slot = free_slots_.back();
  free_slots_.pop_back();
  Slot& taken = slots_[slot];
  taken.tenants.push_back({taken.generation, who});
  if (taken.tenants.size() > kRemembered) taken.tenants.pop_front();
  return {.slot = slot, .first = taken.generation, .generation = taken.generation};
}

void SimtMachine::GiveSlot(const Agent& agent) {
  slots_[agent.slot].generation = agent.generation + 1;
  free_slots_.push_back(agent.slot);
}

// ---- Launches and blocks
// -------------------------------------------------------------------------------

void SimtMachine::Launch(std::shared_ptr<SimtLaunch> launch) {
  scheduler_.Draw(*launch);
  launches_.push_back(std::move(launch));
  StartBlocks();
}

bool SimtMachine::HasRoom(const SimtLaunch& launch) const {
  if (options_.resident_blocks > 0 && resident_[launch.rank] >= options_.resident_blocks)
    return false;
  return blocks_.size() < Epoch::kSlots - kSlotsOfOthers && HasSlot();
}

void SimtMachine::StartBlocks() {
  for (const std::shared_ptr<SimtLaunch>& launch : launches_) {
    while (launch->started < launch->blocks && !finding_.has_value() && HasRoom(*launch))
      StartBlock(launch);
  }
}

void SimtMachine::StartBlock(const std::shared_ptr<SimtLaunch>& launch) {
  auto block = std::make_unique<SimtBlock>();
  block->launch = launch;
  block->index = launch->started++;
  const Agent agent =
      TakeSlot(absl::StrCat("rank ", launch->rank, " block ", block->index, " of ", launch->name));
  block->slot = agent.slot;
  block->first = block->generation = agent.generation;
  block->clock = launch->start;
  block->warps.resize((launch->threads + 31) / 32);
  ++resident_[launch->rank];
  const int starved_warp = scheduler_.DrawWarp(static_cast<int>(block->warps.size()));
  for (int i = 0; i < launch->threads; ++i) {
    if (!StartThread(*block, i, starved_warp)) {
      return Report(FindingKind::kNoRoom,
                    absl::StrCat("for the stacks of more than ", live_, " threads"));
    }
  }
  blocks_.push_back(std::move(block));
  changed_ = steps_;
}

SimtThread& SimtMachine::TakeThread() {
  if (free_threads_.empty()) {
    threads_.push_back(std::make_unique<SimtThread>());
    free_threads_.push_back(threads_.back().get());
  }
  SimtThread& thread = *free_threads_.back();
  free_threads_.pop_back();
  ++thread.ticket;
  thread.state = SimtThread::State::kReady;
  thread.looks = thread.polls.count = 0;
  thread.learned = nullptr;
  thread.awaited = nullptr;
  thread.bulk.closed = thread.async.closed = 0;
  thread.fenced = {};
  return thread;
}

bool SimtMachine::StartThread(SimtBlock& block, int index, int starved_warp) {
  char* stack = stacks_.Take();
  if (stack == nullptr) return false;
  const SimtLaunch& launch = *block.launch;
  SimtThread* const thread = &TakeThread();
  thread->place = {block.index, launch.blocks, index, launch.threads};
  thread->block = &block;
  thread->stack = stack;
  thread->agent = {.slot = block.slot,
                   .thread = index,
                   .first = block.first,
                   .generation = block.generation,
                   .clock = block.clock.get()};
  thread->starved = scheduler_.Starves(*thread, starved_warp);
  thread->fiber.Start(stack, RunThread, thread);
  scheduler_.MakeReady(*thread);
  ++block.live;
  ++live_;
  block.threads.push_back(thread);
  return true;
}

void SimtMachine::RunThread(void* thread) {
  const SimtLaunch& launch = *static_cast<SimtThread*>(thread)->block->launch;
  launch.kernel(launch.params);
}

bool SimtMachine::Step() {
  if (finding_.has_value()) return false;
  ++steps_;
  DrainSome();
  SimtThread* next = scheduler_.Next(/*any=*/quiet_steps() > 1024 * (1 + uint64_t(live_)));
  if (next == nullptr) {
    if (!DrainAll()) return false;
    next = scheduler_.Next(false);
    if (next == nullptr) return true;
  }
  running_ = next;
  calls_.place = &next->place;
  calls_.stack = reinterpret_cast<uintptr_t>(next->stack);
  next->fiber.Resume();
  running_ = nullptr;
  if (next->fiber.ended()) EndThread(*next);
  return !finding_.has_value();
}

void SimtMachine::EndThread(SimtThread& thread) {
  SimtBlock& block = *thread.block;
  MakeAllVisible(thread);
  scheduler_.Remove(thread);
  thread.state = SimtThread::State::kEnded;
  stacks_.Give(thread.stack);
  --live_;
  --block.live;
  changed_ = steps_;
  for (SimtThread::Copies* copies : {&thread.bulk, &thread.async}) {
    if (copies->ongoing.empty()) continue;
    Report(FindingKind::kUnfinishedCopy,
           absl::StrCat(NameOf(thread, copies->ongoing[0].at),
                        " has ended, and nobody waited for this copy of its"));
    copies->ongoing.clear();
  }
  if (block.arrived > 0) {
    const auto at_barrier = [](const SimtThread* other) {
      return other->state == SimtThread::State::kAtBarrier;
    };
    const SimtThread& waits = **absl::c_find_if(block.threads, at_barrier);
    return Report(FindingKind::kDivergentBarrier,
                  absl::StrCat(NameOf(waits, waits.at), " waits for thread ", thread.place.thread,
                               ", which has ended"));
  }
  if (block.live == 0) EndBlock(block);
}

void SimtMachine::EndBlock(SimtBlock& block) {
  const std::shared_ptr<SimtLaunch> launch = block.launch;
  launch->end.Join(*block.clock);
  for (const SimtThread* thread : block.threads) {
    if (thread->learned != nullptr) launch->end.Join(*thread->learned);
  }
  launch->end.JoinSlot(block.slot, block.generation + 1);
  GiveSlot({.slot = block.slot, .generation = block.generation});
  for (const auto& [place, buffer] : block.shared) free_shared_.push_back(buffer);
  const auto is_block = [&](const auto& other) { return other.get() == &block; };
  free_threads_.insert(free_threads_.end(), block.threads.begin(), block.threads.end());
  blocks_.erase(absl::c_find_if(blocks_, is_block));
  --resident_[launch->rank];
  if (++launch->ended == launch->blocks) {
    launches_.erase(absl::c_find(launches_, launch));
    launch->done();
  }
  StartBlocks();
}

void SimtMachine::LookAgain() {
  looked_ = steps_;
  const std::vector<SimtThread*> spinning = scheduler_.spinning();
  for (SimtThread* thread : spinning) {
    constexpr int kPollsPerLook = 256;  // of the prelude
    thread->looks = (kPollsPerLook + 1) * (1 + thread->polls.count);
    ++thread->ticket;
    scheduler_.MakeReady(*thread);
  }
}

}  // namespace coconet
