#ifndef COCONET_RUNTIME_SIMT_MACHINE_MACHINE_H_
#define COCONET_RUNTIME_SIMT_MACHINE_MACHINE_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/simt/machine/block.h"
#include "runtime/simt/machine/fiber.h"
#include "runtime/simt/machine/finding.h"
#include "runtime/simt/machine/scheduler.h"
#include "runtime/simt/machine/simt_memory.h"
#include "runtime/simt_abi.h"
#include "runtime/simt_options.h"

namespace coconet {

/// Devices, one a rank, that run kernels thread for thread: each thread is a fiber, one of which
/// goes at a time, to the next access of the memory model, barrier or shuffle. Between these a
/// thread's accesses are its own, or a data race. The first mistake found ends the machine. Not
/// thread-safe: one thread of the system at a time.
class SimtMachine {
 public:
  static absl::StatusOr<std::unique_ptr<SimtMachine>> Make(const SimtOptions& options, int ranks);

  const SimtOptions& options() const { return options_; }
  SimtMemory& memory() { return *memory_; }
  /// What modules are given.
  SimtCalls* calls() { return &calls_; }

  /// A slot for somebody beside blocks: a stream, or a thread of the host; back when it is gone.
  Agent TakeSlot(const std::string& who);
  bool HasSlot() const { return !free_slots_.empty() || slots_.size() < Epoch::kSlots; }
  void GiveSlot(const Agent& agent);

  /// Blocks begin where there is room for them; `launch->done` is called by Step.
  void Launch(std::shared_ptr<SimtLaunch> launch);
  /// Lets one thread go on. False: none can, but those that spin.
  bool Step();
  /// Every thread that spins looks at what it waits for again, and at the clock.
  void LookAgain();
  /// What spins, and which blocks have no room.
  std::string WhoWaits() const;
  bool idle() const { return launches_.empty(); }
  /// Steps since something changed that threads could see.
  uint64_t quiet_steps() const { return steps_ - changed_; }
  /// The last step in which something did.
  uint64_t last_change() const { return changed_; }
  /// Nobody can go on but by the clock, or by what the host does.
  bool stuck() const {
    return (!scheduler_.any_ready() && storing_.empty()) ||
           steps_ - std::max(changed_, looked_) > 4096 * (1 + uint64_t(live_));
  }

  /// An access by the host, of whole buffers or parts.
  void AccessFromHost(const Agent& agent, void* p, size_t bytes, bool writes);
  /// Kernels of another plan begin. When one of a plan has been told to stop, or a collective has
  /// been given up, races and reads of what nobody has written are no mistakes of that plan's.
  void BeginPlan() { given_up_ = false; }
  void GiveUp() { given_up_ = true; }
  /// Reports a byte of those that nobody has written.
  void CheckWritten(const void* p, size_t bytes);
  /// Zeros that were there before anybody came.
  void Bear(SimtBuffer& buffer) { buffer.shadow().Bear(); }

  /// Time of the devices: some of it passes with each step.
  uint64_t now_ns() const { return idle_ns_ + steps_ * kStepNs; }
  void PassTime(uint64_t ns) { idle_ns_ += ns; }
  /// Accesses, and calls of the machine.
  uint64_t operations() const { return operations_; }

  const std::optional<Finding>& finding() const { return finding_; }
  void Report(FindingKind kind, std::string text);

 private:
  static constexpr uint64_t kStepNs = 20;
  static constexpr int kSlotsOfOthers = 512;  // that blocks leave to streams and the host
  struct Tenant {
    uint32_t first;
    std::string who;
  };
  struct Slot {
    uint32_t generation = 1;
    std::deque<Tenant> tenants;  // the last ones
  };

  SimtMachine(const SimtOptions& options, int ranks, std::unique_ptr<SimtMemory> memory);

  // ---- Blocks (machine.cc)
  void StartBlocks();
  bool HasRoom(const SimtLaunch& launch) const;
  void StartBlock(const std::shared_ptr<SimtLaunch>& launch);
  bool StartThread(SimtBlock& block, int index, int starved_warp);
  SimtThread& TakeThread();
  static void RunThread(void* thread);
  void EndThread(SimtThread& thread);
  void EndBlock(SimtBlock& block);

  // ---- What threads ask (thread_calls.cc)
  static SimtMachine& Of(void* machine) { return *static_cast<SimtMachine*>(machine); }
  static void OnAccess(void* machine, const void* p, unsigned long bytes, bool writes, bool aligned,
                       const void* at);
  static void OnLoad(void* machine, const void* p, int bytes, int count, bool acquires,
                     unsigned long long* values, const void* at);
  static void OnStore(void* machine, void* p, int bytes, int count, bool releases,
                      const unsigned long long* values, const void* at);
  static unsigned OnExchange(void* machine, unsigned* p, unsigned value, const void* at);
  static void OnNoteWait(void* machine, const unsigned* flag, unsigned epoch);
  static void* OnShared(void* machine, const void* place, unsigned long bytes);
  static unsigned long long OnNow(void* machine);
  /// Null: registered memory of the host's, which nobody checks.
  SimtBuffer* Check(const void* p, size_t bytes, bool writes, bool aligned, bool atomic,
                    const void* at) {
    return Check(p, bytes, writes, aligned, atomic, at, running_->agent);
  }
  SimtBuffer* Check(const void* p, size_t bytes, bool writes, bool aligned, bool atomic,
                    const void* at, const Agent& agent);
  void ReportAddress(const void* p, size_t bytes, bool writes, const void* at);
  void ReportAccess(const SimtBuffer& buffer, size_t offset, size_t bytes, bool writes,
                    const Shadow::Found& found, const std::string& who);
  /// Other threads' turn; back when this one's comes.
  void Yield();
  /// Until one of the words that it has loaded changes, or somebody says to look again.
  void Spin(SimtThread& thread, const void* at);
  uint64_t LoadOne(SimtThread& thread, SimtBuffer* buffer, const char* p, int bytes, bool acquires);
  void Acquire(SimtThread& thread, const Released& released);
  Released Release(SimtThread& thread);
  void MakeVisible(const PendingStore& store);
  void MakeOneVisible(SimtThread& thread);
  void MakeAllVisible(SimtThread& thread);
  /// Stores of any threads, now and then.
  void DrainSome();
  bool DrainAll();
  void Changed(SyncWord* word);
  /// Of a thread whose machine has ended: never goes on.
  [[noreturn]] void Abandon(SimtThread& thread);

  // ---- Copies that go on by themselves (ongoing_copies.cc)
  static void OnCopyBulk(void* machine, void* to, const void* from, int bytes, const void* at);
  static void OnCloseBulkGroup(void* machine);
  static void OnAwaitBulk(void* machine, int open, bool stores);
  static void OnCopyAsync(void* machine, void* to, const void* from, int bytes, const void* at);
  static void OnCloseAsyncGroup(void* machine);
  static void OnAwaitAsync(void* machine, int open);
  void Begin(SimtThread::Copies& copies, OngoingCopy copy);
  void Await(SimtThread::Copies& copies, int open, bool stores);
  void ReadFor(OngoingCopy& copy);
  void Land(const OngoingCopy& copy, const char* p, size_t bytes);
  static void OnFenceBulk(void* machine);
  bool IsFenced(const SimtThread& thread, Epoch write) const;
  void CheckFences(SimtThread& thread, const char* from, size_t bytes, const void* at);

  // ---- What they do together (meetings.cc)
  static bool OnBarrier(void* machine, bool votes, bool ok, const void* at);
  static unsigned long long OnShuffleDown(void* machine, unsigned mask, unsigned long long value,
                                          int distance, const void* at);
  static void OnGather(void* machine, const void* mine, int bytes, void* all, const void* at);
  /// Puts a thread to those of its warp that have come to a shuffle, or to a gather of so many
  /// bytes; returns when all have.
  void MeetWarp(SimtThread& thread, unsigned mask, int bytes, const void* at);
  void FinishBarrier(SimtBlock& block);
  void FinishShuffle(SimtBlock& block, int warp);
  std::string WhyShuffleIsBad(const SimtThread& thread, unsigned mask) const;

  // ---- Words (report.cc)
  const std::string& LineOf(const void* at) const;
  /// A compiler may make one place in the source several in the code.
  bool IsSameLine(const void* a, const void* b) const { return a == b || LineOf(a) == LineOf(b); }
  std::string NameOf(const SimtThread& thread, const void* at) const;
  std::string NameOf(Epoch epoch, const void* at) const;

  const SimtOptions options_;
  std::unique_ptr<SimtMemory> memory_;
  SimtCalls calls_;
  SimtScheduler scheduler_;
  StackPool stacks_;
  std::vector<Slot> slots_;
  std::vector<int> free_slots_;
  std::deque<std::shared_ptr<SimtLaunch>> launches_;  // that have not ended
  std::vector<std::unique_ptr<SimtBlock>> blocks_;    // that run
  std::vector<int> resident_;                         // by rank
  std::vector<std::unique_ptr<SimtThread>> threads_;  // all there ever were
  std::vector<SimtThread*> free_threads_;
  std::vector<SimtThread*>
      storing_;  // have stores that others do not see; some more than once, or no more
  std::vector<SimtBuffer*> free_shared_;
  SimtThread* running_ = nullptr;
  int live_ = 0;  // threads
  uint64_t steps_ = 0, changed_ = 0, looked_ = 0, idle_ns_ = 0, operations_ = 0;
  bool given_up_ = false;  // by some rank, the plan: kernels behind that compute with what is
                           // there, and nobody uses what comes of it
  std::optional<Finding> finding_;
  mutable std::map<const void*, std::string> lines_;  // of code
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_SIMT_MACHINE_MACHINE_H_
