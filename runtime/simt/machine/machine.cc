#include "runtime/simt/machine/machine.h"

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr size_t kMost = 8;  // different waits that are told

void AddSpinning(const SimtMemory& memory, const std::vector<SimtThread*>& spinning,
                 const Reporter& reporter, std::vector<std::string>& lines) {
  std::map<std::string, int> waits;  // threads by words
  for (const SimtThread* thread : spinning) {
    std::string words = absl::StrCat(reporter.NameOf(*thread, thread->at), " waits for ");
    const SimtBuffer* buffer = memory.Find(thread->awaited);
    if (thread->barrier != nullptr) {
      absl::StrAppend(&words, "phase ", thread->barrier->phase,
                      " of a barrier to end, which misses ", thread->barrier->pending,
                      " arrivals and ", thread->barrier->bytes, " bytes");
    } else if (buffer == nullptr) {
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

/// What a thread waits for that is not ready and does not spin; "" if it does not.
std::string MeetingOf(const SimtThread& thread) {
  switch (thread.state) {
    case SimtThread::State::kAtBarrier:
      return absl::StrCat("is at a barrier, as are ", thread.block->arrived, " of ",
                          thread.block->threads.size(), " threads");
    case SimtThread::State::kAtNamedBarrier: {
      const NamedBarrier& barrier = thread.block->named_barriers[thread.named_barrier];
      return absl::StrCat("is at barrier ", thread.named_barrier, " of ", barrier.threads,
                          " threads, to which warps of ", barrier.arrived, " have come");
    }
    case SimtThread::State::kInShuffle:
      return "waits to meet its warp";
    case SimtThread::State::kGathers:
      return absl::StrCat(thread.gathering->what, ", as do ", thread.gathering->arrived,
                          " threads with it");
    case SimtThread::State::kAwaitsRegisters: {
      const SimtWarpGroup& group = thread.block->groups[thread.place.thread / kGroupThreads];
      return absl::StrCat("waits for ", group.wanted, " registers where it has ", group.registers,
                          ": a warp group needs ", (group.wanted - group.registers) * kGroupThreads,
                          " more, and others have given up ", thread.block->free_registers);
    }
    case SimtThread::State::kReady:
    case SimtThread::State::kSpins:
    case SimtThread::State::kEnded:
      return "";
  }
  CC_CHECK(false);
}

/// Some threads of each block that wait for others: the first of each wait.
void AddMeetings(const ResidentBlocks& blocks, const Reporter& reporter,
                 std::vector<std::string>& lines) {
  for (const std::unique_ptr<SimtBlock>& block : blocks.blocks()) {
    std::set<std::string> told;
    for (const SimtThread* thread : block->threads) {
      const std::string meeting = MeetingOf(*thread);
      if (meeting.empty() || lines.size() > 2 * kMost || !told.insert(meeting).second) continue;
      lines.push_back(absl::StrCat(reporter.NameOf(*thread, thread->at), " ", meeting));
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<SimtMachine>> SimtMachine::Make(const SimtOptions& options,
                                                               int ranks) {
  ASSIGN_OR_RETURN(std::unique_ptr<SimtMemory> memory, SimtMemory::Make());
  return std::unique_ptr<SimtMachine>(new SimtMachine(options, ranks, std::move(memory)));
}

SimtMachine::SimtMachine(const SimtOptions& options, int ranks, std::unique_ptr<SimtMemory> memory)
    : options_(options),
      memory_(std::move(memory)),
      reporter_(slots_),
      scheduler_(options, ranks),
      checker_(*memory_, reporter_),
      stores_(*memory_, scheduler_),
      model_(options.weak, *memory_, scheduler_, checker_, stores_),
      meetings_(scheduler_, stores_, reporter_),
      named_barriers_(scheduler_, stores_, reporter_),
      copies_(*memory_, scheduler_, checker_, reporter_),
      barriers_(*memory_, scheduler_, checker_, copies_, reporter_),
      groups_(*memory_, scheduler_, checker_, reporter_),
      blocks_(options.resident_blocks, ranks, *memory_, slots_, scheduler_, reporter_) {
  calls_.stack_bytes = StackPool::kBytes;
  calls_.machine = this;
  FillAccessCalls();
  FillMeetingCalls();
  FillCopyCalls();
  FillBarrierCalls();
  FillGroupCalls();
}

void SimtMachine::WatchSums() {
  calls_.sums = running_->sums.watched;
  calls_.sums_bytes = running_->sums.watched_bytes;
}

bool SimtMachine::Step() {
  if (finding().has_value()) return false;
  scheduler_.BeginStep();
  stores_.DrainSome();
  copies_.LoadSome();
  groups_.ReadSome();
  SimtThread* next = scheduler_.Next(blocks_.live_threads());
  if (next == nullptr) {
    if (!stores_.DrainAll() && !copies_.LoadOne()) return false;
    next = scheduler_.Next(blocks_.live_threads());
    if (next == nullptr) return true;
  }
  running_ = next;
  calls_.place = &next->place;
  calls_.stack = reinterpret_cast<uintptr_t>(next->stack);
  WatchSums();
  next->fiber.Resume();
  running_ = nullptr;
  if (next->fiber.ended()) EndThread(*next);
  return !finding().has_value();
}

void SimtMachine::EndThread(SimtThread& thread) {
  SimtBlock& block = *thread.block;
  stores_.MakeAllVisible(thread);
  blocks_.EndThread(thread);
  copies_.CheckNone(thread);
  meetings_.CheckNoneWaits(thread);
  named_barriers_.CheckNoneWaits(thread);
  groups_.CheckNone(thread);
  if (block.live > 0) return;
  copies_.CheckNoLoads(block);
  blocks_.EndBlock(block);
}

std::string SimtMachine::DescribeWaits() const {
  std::vector<std::string> lines;
  AddSpinning(*memory_, scheduler_.spinning(), reporter_, lines);
  AddMeetings(blocks_, reporter_, lines);
  for (const std::shared_ptr<SimtLaunch>& launch : blocks_.launches()) {
    if (launch->started == launch->blocks) continue;
    lines.push_back(absl::StrCat("of ", launch->blocks, " blocks of ", launch->name, " on rank ",
                                 launch->rank, " only ", launch->started, " have begun, as ",
                                 blocks_.resident(launch->rank),
                                 " run there: want all of a kernel whose blocks wait for each "
                                 "other at once"));
  }
  return absl::StrJoin(lines, "\n");
}

// ---- Calls of modules

void SimtMachine::FillAccessCalls() {
  calls_.access = [](void* machine, const void* p, unsigned long bytes, bool writes, bool aligned,
                     const void* at) {
    SimtMachine& m = Of(machine);
    if (writes) m.running_->polls.count = 0;
    m.checker_.Check(*m.running_, {p, bytes, writes, aligned, /*atomic=*/false, at});
  };
  calls_.load = [](void* machine, const void* p, int bytes, int count, bool acquires,
                   unsigned long long* values, const void* at) {
    SimtMachine& m = Of(machine);
    m.model_.Load(*m.running_, static_cast<const char*>(p), bytes, count, acquires, values, at);
  };
  calls_.store = [](void* machine, void* p, int bytes, int count, bool releases,
                    const unsigned long long* values, const void* at) {
    SimtMachine& m = Of(machine);
    m.model_.Store(*m.running_, static_cast<char*>(p), bytes, count, releases, values, at);
  };
  calls_.exchange = [](void* machine, unsigned* p, unsigned value, const void* at) {
    SimtMachine& m = Of(machine);
    return m.model_.Exchange(*m.running_, p, value, at);
  };
  calls_.note_wait = [](void* machine, const unsigned* flag, unsigned epoch) {
    SimtThread& thread = *Of(machine).running_;
    thread.awaited = flag;
    thread.epoch = epoch;
  };
  calls_.shared = [](void* machine, const void* place, unsigned long bytes,
                     unsigned long alignment) {
    SimtMachine& m = Of(machine);
    return m.blocks_.SharedArray(*m.running_, place, bytes, alignment);
  };
  calls_.dynamic_shared = [](void* machine) {
    SimtMachine& m = Of(machine);
    return m.blocks_.DynamicShared(*m.running_);
  };
  calls_.now_ns = [](void* machine) -> unsigned long long { return Of(machine).now_ns(); };
}

void SimtMachine::FillMeetingCalls() {
  calls_.barrier = [](void* machine, bool votes, bool ok, const void* at) {
    SimtMachine& m = Of(machine);
    return m.meetings_.Barrier(*m.running_, votes, ok, at);
  };
  calls_.sync_threads = [](void* machine, int barrier, int threads, const void* at) {
    SimtMachine& m = Of(machine);
    m.named_barriers_.Sync(*m.running_, barrier, threads, at);
  };
  calls_.sync_warp = [](void* machine, const void* at) {
    SimtMachine& m = Of(machine);
    m.meetings_.SyncWarp(*m.running_, at);
  };
  calls_.shuffle_down = [](void* machine, unsigned mask, unsigned long long value, int distance,
                           const void* at) -> unsigned long long {
    SimtMachine& m = Of(machine);
    return m.meetings_.ShuffleDown(*m.running_, mask, value, distance, at);
  };
  calls_.gather = [](void* machine, const void* mine, int bytes, void* all, const void* at) {
    SimtMachine& m = Of(machine);
    m.meetings_.Gather(*m.running_, mine, bytes, all, at);
  };
}

void SimtMachine::FillCopyCalls() {
  calls_.copy_bulk = [](void* machine, void* to, const void* from, int bytes, const void* at) {
    SimtMachine& m = Of(machine);
    m.copies_.BeginBulk(*m.running_, static_cast<char*>(to), static_cast<const char*>(from),
                        static_cast<size_t>(bytes), at);
  };
  calls_.close_bulk_group = [](void* machine) { ++Of(machine).running_->bulk.closed; };
  calls_.await_bulk = [](void* machine, int open, bool stores) {
    SimtMachine& m = Of(machine);
    m.running_->Yield();
    m.copies_.Await(*m.running_, m.running_->bulk, open, stores);
  };
  calls_.fence_async_proxy = [](void* machine) { CopiesInFlight::Fence(*Of(machine).running_); };
  calls_.copy_async = [](void* machine, void* to, const void* from, int bytes, const void* at) {
    SimtMachine& m = Of(machine);
    m.copies_.BeginAsync(*m.running_, static_cast<char*>(to), static_cast<const char*>(from),
                         static_cast<size_t>(bytes), at);
  };
  calls_.close_async_group = [](void* machine) { ++Of(machine).running_->async.closed; };
  calls_.await_async = [](void* machine, int open) {
    SimtMachine& m = Of(machine);
    m.copies_.Await(*m.running_, m.running_->async, open, /*stores=*/true);
  };
}

void SimtMachine::FillBarrierCalls() {
  calls_.init_barrier = [](void* machine, unsigned long long* barrier, int arrivals,
                           const void* at) {
    SimtMachine& m = Of(machine);
    m.barriers_.Init(*m.running_, reinterpret_cast<const char*>(barrier), arrivals, at);
  };
  calls_.fence_barriers = [](void* machine) { Mbarriers::Fence(*Of(machine).running_); };
  calls_.arrive = [](void* machine, unsigned long long* barrier, int bytes, const void* at) {
    SimtMachine& m = Of(machine);
    m.barriers_.Arrive(*m.running_, reinterpret_cast<const char*>(barrier), bytes, at);
  };
  calls_.try_wait = [](void* machine, unsigned long long* barrier, unsigned parity,
                       const void* at) {
    SimtMachine& m = Of(machine);
    return m.barriers_.TryWait(*m.running_, reinterpret_cast<const char*>(barrier), parity, at);
  };
  calls_.load_bulk = [](void* machine, void* to, const void* from, int bytes,
                        unsigned long long* barrier, const void* at) {
    SimtMachine& m = Of(machine);
    m.barriers_.Load(*m.running_, static_cast<char*>(to), static_cast<const char*>(from), bytes,
                     reinterpret_cast<const char*>(barrier), at);
  };
  calls_.load_box = [](void* machine, void* to, const void* map, int column, int row,
                       const int* matrix, unsigned long long* barrier, const void* at) {
    SimtMachine& m = Of(machine);
    m.barriers_.LoadBox(
        *m.running_, static_cast<char*>(to), map,
        {column, row, matrix == nullptr ? std::nullopt : std::optional<int>(*matrix)},
        reinterpret_cast<const char*>(barrier), at);
  };
}

void SimtMachine::FillGroupCalls() {
  calls_.multiply = [](void* machine, const SimtProduct* product, float* sums, const void* at) {
    SimtMachine& m = Of(machine);
    m.groups_.Multiply(*m.running_, *product, sums, at);
  };
  calls_.fence_sums = [](void* machine, const void* at) {
    SimtMachine& m = Of(machine);
    m.groups_.Fence(*m.running_, at);
  };
  calls_.close_products = [](void* machine, const void* at) {
    SimtMachine& m = Of(machine);
    m.groups_.CloseGroup(*m.running_, at);
  };
  calls_.await_products = [](void* machine, int open, const void* at) {
    SimtMachine& m = Of(machine);
    m.groups_.Await(*m.running_, open, at);
  };
  calls_.set_registers = [](void* machine, int registers, bool raises, const void* at) {
    SimtMachine& m = Of(machine);
    m.groups_.SetRegisters(*m.running_, registers, raises, at);
  };
  calls_.access_sums = [](void* machine, const void* p, unsigned long bytes, bool writes,
                          const void* at) {
    SimtMachine& m = Of(machine);
    m.groups_.sums().Access(*m.running_, p, bytes, writes, at);
    m.WatchSums();
  };
}

}  // namespace coconet
