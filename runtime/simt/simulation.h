#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "runtime/simt/device_streams.h"
#include "runtime/simt/machine/machine.h"

namespace coconet {

/// A machine, its streams, and the host threads that use them. A thread of its own runs the machine
/// while all host threads wait for it: so the order of launches depends on what is computed only,
/// and a seed gives the same interleaving again. The machine waits `patience_s` seconds for a host
/// thread that computes, or waits for something that the simulation does not see. Thread-safe.
class Simulation {
 public:
  static absl::StatusOr<std::shared_ptr<Simulation>> Make(const SimtOptions& options, int ranks,
                                                          double patience_s);
  ~Simulation();

  /// Registers the calling host thread; `who` names it in reports.
  std::unique_ptr<SimtHost> Attach(const std::string& who);
  void Detach(std::unique_ptr<SimtHost> host);
  /// The thread waits for another host thread, until `ready` or GoOn.
  void WaitForHost(SimtHost& host, absl::FunctionRef<bool()> ready);
  void GoOn(SimtHost& host);

  int ranks() const { return ranks_; }
  const SimtOptions& options() const { return machine_->options(); }
  SimtCalls* calls() { return machine_->calls(); }

  /// The machine and the streams of its devices, for the caller alone until this is dropped.
  struct Locked {
    std::unique_lock<std::mutex> lock;
    SimtMachine& machine;
    DeviceStreams& streams;
  };
  Locked Use() { return {Lock(), *machine_, streams_}; }

  /// See DeviceStreams.
  void CancelMeetings(int rank);
  /// Waits for the stream, or for the last record of the event. True: it is done, or a mistake has
  /// ended the machine. False: the devices cannot go on without the host.
  bool Await(SimtHost& host, SimtStream* stream);
  bool Await(SimtHost& host, SimtEvent* event);

  /// The mistake that has ended the machine; "" if there is none.
  std::string mistake();

 private:
  Simulation(int ranks, double patience_s, std::unique_ptr<SimtMachine> machine)
      : ranks_(ranks),
        patience_(patience_s),
        machine_(std::move(machine)),
        streams_(ranks, *machine_) {}

  /// A host thread that waits for the devices.
  struct Wait {
    const std::function<bool()>& done;
    bool over = false;
  };
  bool AwaitUntil(SimtHost& host, const std::function<bool()>& done, const Clock& clock);
  /// Locks mutex_, which the loop then releases soon.
  std::unique_lock<std::mutex> Lock();

  // The functions below run with mutex_ locked.
  void Loop();
  /// Whether all host threads wait, for the devices or for each other.
  bool AllWait() const;
  void RunAWhile();
  /// Called when nothing can proceed: lets spinning threads look again, then host threads.
  void LookForHelp(std::unique_lock<std::mutex>& lock);
  /// Ends the waits that are done, or all. Returns whether there were any.
  bool EndWaits(bool all);
  std::string DescribeWaits() const;

  const int ranks_;
  const std::chrono::duration<double> patience_;
  std::unique_ptr<SimtMachine> machine_;
  DeviceStreams streams_;
  std::mutex mutex_;
  std::condition_variable to_hosts_, to_loop_;
  std::vector<SimtHost*> hosts_;
  std::vector<Wait*> waits_;
  bool waits_for_hosts_ = true;  // that do not wait for the loop
  int fruitless_ = 0;            // looks for help since something changed
  uint64_t last_change_ = 0;     // of the machine
  std::atomic<int> wanted_{0};   // hosts that wait for mutex_
  bool ends_ = false;
  std::thread loop_;
};

}  // namespace coconet
