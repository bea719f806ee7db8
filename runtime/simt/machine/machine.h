#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/simt/machine/access_checker.h"
#include "runtime/simt/machine/copies_in_flight.h"
#include "runtime/simt/machine/mbarriers.h"
#include "runtime/simt/machine/meetings.h"
#include "runtime/simt/machine/memory_model.h"
#include "runtime/simt/machine/named_barriers.h"
#include "runtime/simt/machine/resident_blocks.h"
#include "runtime/simt/machine/warp_groups.h"
#include "runtime/simt/memory/shadow.h"
#include "runtime/simt/memory/simt_memory.h"
#include "runtime/simt/threads/block.h"
#include "runtime/simt/threads/reporter.h"
#include "runtime/simt/threads/scheduler.h"
#include "runtime/simt_abi.h"
#include "runtime/simt_options.h"

namespace coconet {

/// Devices, one per rank, that run kernels thread for thread. Each thread is a fiber; one runs at a
/// time, until its next access of the memory model, barrier or shuffle. Other threads cannot see
/// when its plain accesses between these happen, unless there is a data race. The first mistake
/// found ends the machine: no thread continues. Not thread-safe.
class SimtMachine {
 public:
  static absl::StatusOr<std::unique_ptr<SimtMachine>> Make(const SimtOptions& options, int ranks);

  const SimtOptions& options() const { return options_; }
  /// The functions that loaded modules call.
  SimtCalls* calls() { return &calls_; }
  SimtMemory& memory() { return *memory_; }
  /// Streams and host threads take a slot each and give it back.
  SlotTable& slots() { return slots_; }
  AccessChecker& checker() { return checker_; }
  Reporter& reporter() { return reporter_; }
  const std::optional<Finding>& finding() const { return reporter_.finding(); }

  /// Starts the blocks for which there is room; Step starts the others and calls launch->done().
  void Launch(std::shared_ptr<SimtLaunch> launch) { blocks_.Launch(std::move(launch)); }
  bool idle() const { return blocks_.launches().empty(); }
  /// One turn of one thread. False if there is a finding, or if all threads spin.
  bool Step();
  /// Makes all spinning threads look again at what they wait for, and at the clock.
  void LookAgain() { scheduler_.WakeAll(); }
  /// Whether only the clock or the host can help.
  bool stuck() const {
    return (!scheduler_.any_ready() && stores_.empty() && !copies_.any_loading()) ||
           scheduler_.is_quiet(blocks_.live_threads());
  }
  /// The last step that changed something other threads can see.
  uint64_t last_change() const { return scheduler_.last_change(); }
  /// What threads wait for, and which blocks have no room.
  std::string DescribeWaits() const;

  /// Time of the devices: it passes with each step, and by PassTime.
  uint64_t now_ns() const { return idle_ns_ + scheduler_.steps() * kStepNs; }
  void PassTime(uint64_t ns) { idle_ns_ += ns; }
  /// Accesses, barriers, shuffles, gathers and instructions of warp groups so far.
  uint64_t operations() const {
    return checker_.accesses() + meetings_.arrivals() + named_barriers_.arrivals() +
           groups_.arrivals();
  }

 private:
  static constexpr uint64_t kStepNs = 20;

  SimtMachine(const SimtOptions& options, int ranks, std::unique_ptr<SimtMemory> memory);
  static SimtMachine& Of(void* machine) { return *static_cast<SimtMachine*>(machine); }
  void FillAccessCalls();
  void FillMeetingCalls();
  void FillCopyCalls();
  void FillBarrierCalls();
  void FillGroupCalls();
  /// Tells modules which accesses of the running thread's stack are checked.
  void WatchSums();
  void EndThread(SimtThread& thread);

  const SimtOptions options_;
  SimtCalls calls_ = {};
  std::unique_ptr<SimtMemory> memory_;
  SlotTable slots_;
  Reporter reporter_;
  SimtScheduler scheduler_;
  AccessChecker checker_;
  StoreBuffers stores_;
  MemoryModel model_;
  Meetings meetings_;
  NamedBarriers named_barriers_;
  CopiesInFlight copies_;
  Mbarriers barriers_;
  WarpGroups groups_;
  ResidentBlocks blocks_;
  SimtThread* running_ = nullptr;
  uint64_t idle_ns_ = 0;
};

}  // namespace coconet
