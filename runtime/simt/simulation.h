#ifndef COCONET_RUNTIME_SIMT_SIMULATION_H_
#define COCONET_RUNTIME_SIMT_SIMULATION_H_

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "runtime/simt/machine/machine.h"
#include "runtime/simt/stream.h"

namespace coconet {

/// A machine with streams, and the threads of the host that use it. A thread of its own runs it
/// while all threads of the host wait for it: so what is launched when depends on nothing but what
/// is computed, and a seed gives the same interleaving again. Where one does not come for a while
/// (it waits for others, not for the devices), it goes on without. Thread-safe.
class Simulation {
 public:
  static absl::StatusOr<std::shared_ptr<Simulation>> Make(const SimtOptions& options, int ranks);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  /// A thread of the host, from when it first uses the simulation until it ends. What it knows is
  /// what it waited for.
  struct Host {
    Agent agent;
    Clock clock;
    std::optional<absl::FunctionRef<bool()>> ready =
        {};  // it waits for another thread of the host until then
  };
  std::unique_ptr<Host> Attach(const std::string& who);
  void Detach(std::unique_ptr<Host> host);
  /// The thread waits for another one of the host, until `ready`; and goes on.
  void WaitForHost(Host& host, absl::FunctionRef<bool()> ready);
  void GoOn(Host& host);

  int ranks() const { return ranks_; }
  const SimtOptions& options() const { return machine_->options(); }
  SimtCalls* calls() { return machine_->calls(); }
  /// Null where there is no room.
  void* Allocate(size_t bytes, int rank);
  bool Free(void* base);
  /// Of the host's memory, what a new plan's kernels are told to stop by.
  void Register(void* base, size_t bytes);
  void Unregister(void* base);
  void NameBuffer(const void* base, size_t bytes, const std::string& name);
  /// What those bytes hold counts for nothing until somebody writes them.
  void Forget(const void* p, size_t bytes);
  /// Reports a byte that nobody has written since, where `mistake` has nothing yet.
  void CheckWritten(const void* p, size_t bytes);
  /// Its zeros were there before anybody came.
  void BearBuffer(const void* base);

  /// Null where there are too many.
  SimtStream* MakeStream(int rank);
  void DestroyStream(SimtStream* stream);
  /// Behind what the stream has; null: at once. In a stream that is captured: into the graph.
  /// False: it waits for an event of another capture, or of none.
  bool Give(Host& host, SimtStream* stream, SimtWork work);
  /// The meeting that all who name it so get, until all of them have.
  std::shared_ptr<SimtMeeting> Meet(const std::string& name, int size,
                                    const std::function<void(SimtMeeting& meeting)>& join);
  /// From now on a rank's streams come to no meeting, and pass by.
  void CancelMeetings(int rank);
  /// Returns when the stream, or the last record of the event, is done, or a mistake has ended all
  /// (true); or when what waits cannot go on without the host (false).
  bool Await(Host& host, SimtStream* stream);
  bool Await(Host& host, SimtEvent* event);

  /// Of the machine: the same for the same work in the same interleaving.
  uint64_t now_ns();
  /// The mistake that ended it, if one did; "": none.
  std::string mistake();

 private:
  Simulation(int ranks, std::unique_ptr<SimtMachine> machine)
      : ranks_(ranks), machine_(std::move(machine)), cancelled_(ranks) {}

  /// Of a thread of the host: what it waits for.
  struct Wait {
    const std::function<bool()>& done;
    bool over = false;
  };
  bool AwaitUntil(Host& host, const std::function<bool()>& done, const Clock& clock);
  /// The lock, which the loop lets go soon.
  std::unique_lock<std::mutex> Lock();

  // All locked.
  void Loop();
  /// Whether all threads of the host wait, for the devices or for each other.
  bool AllWait() const;
  void RunAWhile();
  /// Nothing goes on: who spins looks again, then the hosts do, who may know more.
  void LookForHelp(std::unique_lock<std::mutex>& lock);
  /// Ends the waits that are over, or all. Whether there were any.
  bool EndWaits(bool all);
  /// Starts what streams can begin.
  void StartWork();
  /// Whether the first work of the stream has been done, or begun.
  bool StartFirst(SimtStream& stream);
  void Note(const Agent& agent, const std::vector<SimtAccess>& accesses);
  void Copy(const Agent& agent, const CopyWork& work);
  void Fill(const Agent& agent, const FillWork& work);
  /// In no stream. All of a buffer: who allocates it does so, before anybody else knows of it.
  void FillAtOnce(const Host& host, const FillWork& work);
  /// Whether the meeting is over; else the stream waits there.
  bool Attend(SimtStream& stream, const SimtStream::Given& given, const MeetWork& work);
  void StartKernel(SimtStream& stream, const KernelWork& work);
  std::string WhoWaits() const;

  const int ranks_;
  std::unique_ptr<SimtMachine> machine_;
  std::mutex mutex_;
  std::condition_variable to_hosts_, to_loop_;
  std::vector<std::unique_ptr<SimtStream>> streams_;
  std::vector<Host*> hosts_;
  std::vector<Wait*> waits_;
  struct Open {
    std::shared_ptr<SimtMeeting> meeting;
    int joined = 0;
  };
  std::map<std::string, Open> meetings_;  // that not all have joined
  std::vector<char> cancelled_;           // by rank: it comes to no meeting any more
  bool changed_ = false;                  // something may have come that streams or hosts wait for
  bool patient_ = true;                   // it is worth waiting for the hosts that do not wait
  int fruitless_ = 0;                     // how often help was looked for since something changed
  uint64_t last_change_ = 0;              // of the machine
  std::atomic<int> wanted_{0};            // hosts that wait for the lock
  bool ends_ = false;
  std::thread loop_;
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_SIMT_SIMULATION_H_
