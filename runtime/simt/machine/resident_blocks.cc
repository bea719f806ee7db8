#include "runtime/simt/machine/resident_blocks.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace coconet {
namespace {

/// The registers of each thread of a block at its launch, if its kernel is compiled for one block
/// on a multiprocessor.
int RegistersOf(int threads) {
  constexpr int kRegisters = 1 << 16, kMost = 255, kStep = 8;
  return std::min(kRegisters / threads, kMost) / kStep * kStep;
}

}  // namespace

void ResidentBlocks::Launch(std::shared_ptr<SimtLaunch> launch) {
  scheduler_.Draw(*launch);
  launches_.push_back(std::move(launch));
  StartBlocks();
}

bool ResidentBlocks::HasRoom(const SimtLaunch& launch) const {
  if (most_ > 0 && resident_[launch.rank] >= most_) return false;
  return blocks_.size() < Epoch::kSlots - kSlotsOfOthers && slots_.has_free();
}

void ResidentBlocks::StartBlocks() {
  for (const std::shared_ptr<SimtLaunch>& launch : launches_) {
    while (launch->started < launch->blocks && !reporter_.finding().has_value() && HasRoom(*launch))
      StartBlock(launch);
  }
}

void ResidentBlocks::StartBlock(const std::shared_ptr<SimtLaunch>& launch) {
  auto block = std::make_unique<SimtBlock>();
  block->launch = launch;
  block->index = launch->started++;
  const Agent agent = slots_.Take(
      absl::StrCat("rank ", launch->rank, " block ", block->index, " of ", launch->name));
  block->slot = agent.slot;
  block->first = block->generation = agent.generation;
  block->clock = launch->start;
  block->warps.resize((launch->threads + 31) / 32);
  block->groups = std::vector<SimtWarpGroup>((launch->threads + kGroupThreads - 1) / kGroupThreads);
  for (SimtWarpGroup& group : block->groups) group.registers = RegistersOf(launch->threads);
  ++resident_[launch->rank];
  const int starved_warp = scheduler_.DrawWarp(static_cast<int>(block->warps.size()));
  for (int i = 0; i < launch->threads; ++i) {
    if (!StartThread(*block, i, starved_warp)) {
      return reporter_.Report(FindingKind::kNoRoom, absl::StrCat("for the stacks of more than ",
                                                                 live_threads_, " threads"));
    }
  }
  blocks_.push_back(std::move(block));
  scheduler_.NoteChange();
}

SimtThread& ResidentBlocks::TakeThread() {
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
  thread.bulk.closed = thread.async.closed = thread.loads = 0;
  thread.barrier = nullptr;
  thread.fenced = thread.fenced_barriers = {};
  thread.fences.clear();
  thread.fenced_clock = nullptr;
  thread.sums = {};
  return thread;
}

bool ResidentBlocks::StartThread(SimtBlock& block, int index, int starved_warp) {
  char* stack = stacks_.Take();
  if (stack == nullptr) return false;
  const SimtLaunch& launch = *block.launch;
  SimtThread& thread = TakeThread();
  thread.place = {block.index, launch.blocks, index, launch.threads};
  thread.block = &block;
  thread.stack = stack;
  thread.agent = {.slot = block.slot,
                  .thread = index,
                  .first = block.first,
                  .generation = block.generation,
                  .clock = block.clock.get()};
  thread.starved = scheduler_.Starves(thread, starved_warp);
  const auto run = [](void* argument) {
    const SimtLaunch& of = *static_cast<SimtThread*>(argument)->block->launch;
    of.kernel(of.params);
  };
  thread.fiber.Start(stack, run, &thread);
  scheduler_.MakeReady(thread);
  ++block.live;
  ++live_threads_;
  block.threads.push_back(&thread);
  return true;
}

void ResidentBlocks::EndThread(SimtThread& thread) {
  scheduler_.Remove(thread);
  thread.state = SimtThread::State::kEnded;
  stacks_.Give(thread.stack);
  --live_threads_;
  --thread.block->live;
  scheduler_.NoteChange();
}

void ResidentBlocks::EndBlock(SimtBlock& block) {
  const std::shared_ptr<SimtLaunch> launch = block.launch;
  launch->end.Join(*block.clock);
  for (const SimtThread* thread : block.threads) {
    if (thread->learned != nullptr) launch->end.Join(*thread->learned);
  }
  launch->end.JoinSlot(block.slot, block.generation + 1);
  slots_.Give({.slot = block.slot, .generation = block.generation});
  for (const auto& [place, buffer] : block.shared) free_shared_.push_back(buffer);
  if (block.dynamic != nullptr) free_shared_.push_back(block.dynamic);
  free_threads_.insert(free_threads_.end(), block.threads.begin(), block.threads.end());
  const auto is_block = [&](const auto& other) { return other.get() == &block; };
  blocks_.erase(absl::c_find_if(blocks_, is_block));
  --resident_[launch->rank];
  if (++launch->ended == launch->blocks) {
    launches_.erase(absl::c_find(launches_, launch));
    launch->done();
  }
  StartBlocks();
}

SimtBuffer* ResidentBlocks::TakeShared(SimtThread& thread, size_t bytes, size_t alignment) {
  const int rank = thread.block->launch->rank;
  const auto fits_in = [&](const SimtBuffer* buffer) {
    return buffer->bytes() == bytes && buffer->rank() == rank &&
           reinterpret_cast<uintptr_t>(buffer->base()) % alignment == 0;
  };
  const auto fits = absl::c_find_if(free_shared_, fits_in);
  SimtBuffer* buffer = nullptr;
  if (fits != free_shared_.end()) {
    buffer = *fits;
    free_shared_.erase(fits);
    buffer->shadow().Reset();
  } else {
    buffer = memory_.Allocate(bytes, rank, std::max(alignment, SimtMemory::kDriversAlignment));
  }
  if (buffer == nullptr) {
    reporter_.ReportAndAbandon(thread, FindingKind::kNoRoom,
                               absl::StrCat("for ", bytes, " bytes of shared memory"));
  }
  return buffer;
}

void* ResidentBlocks::DynamicShared(SimtThread& thread) {
  constexpr size_t kAlignment = 1024;
  SimtBlock& block = *thread.block;
  if (block.dynamic == nullptr) {
    const size_t bytes = block.launch->shared_bytes;
    block.dynamic = TakeShared(thread, bytes, kAlignment);
    block.dynamic->NamePart(0, bytes,
                            absl::StrCat("the dynamic shared memory of block ", block.index));
  }
  return block.dynamic->base();
}

void* ResidentBlocks::SharedArray(SimtThread& thread, const void* place, size_t bytes,
                                  size_t alignment) {
  SimtBlock& block = *thread.block;
  for (const auto& [known, buffer] : block.shared) {
    if (known == place) return buffer->base();
  }
  SimtBuffer* const buffer = TakeShared(thread, bytes, alignment);
  buffer->NamePart(0, buffer->bytes(), absl::StrCat("shared memory of block ", block.index));
  block.shared.emplace_back(place, buffer);
  return buffer->base();
}

}  // namespace coconet
