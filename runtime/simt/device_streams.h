#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/simt/machine/machine.h"
#include "runtime/simt/memory/clock.h"
#include "runtime/simt/memory/shadow.h"
#include "runtime/simt_abi.h"

namespace coconet {

struct SimtStream;

/// A thread of the host, from its first use of the simulation to its end.
struct SimtHost {
  Agent agent;
  Clock clock;  // what it has waited for
  /// While it waits for another host thread: whether it can continue.
  std::optional<absl::FunctionRef<bool()>> ready = {};
};

/// Recorded in streams, awaited in others. A record is reached when its stream comes to it.
struct SimtEvent {
  int recorded = 0, reached = 0;  // numbers of records
  Clock clock;                    // of the last record reached
  uint64_t when_ns = 0;           // device time of that
  // Set if its last record was captured.
  struct SimtGraph* capture = nullptr;
  int branch = 0;
  size_t work = 0;  // length of the graph's work behind the record
};

struct RunWork {
  SimtKernel kernel;
  const std::string* name;
  const void* params;
  int blocks, threads;
  size_t shared_bytes;
};
struct CopyWork {
  void* to;
  const void* from;
  size_t bytes;
};
struct FillWork {
  void* to;
  size_t pitch;
  unsigned char byte;
  size_t width, height;
};
struct RecordWork {
  SimtEvent* event;
  int number;
};
struct AwaitWork {
  SimtEvent* event;
  int number;
};
/// Memory that the host reads or writes for a stream.
struct SimtAccess {
  void* p;
  size_t bytes;
  bool writes;
};
/// A computation of the host.
struct CallWork {
  std::function<void()> call;
  std::vector<SimtAccess> accesses;
};
/// A collective: done once, when the streams of all its ranks have come to it.
struct SimtMeeting {
  int size = 1, come = 0;                    // streams
  std::shared_ptr<void> operands = nullptr;  // of the caller of Meet
  std::function<void()> work = nullptr;      // done by the stream that comes last
  Clock clock = {};                          // joined from all streams that have come
};
struct MeetWork {
  std::shared_ptr<SimtMeeting> meeting;
  std::vector<SimtAccess> accesses;  // of the stream's rank
};
using SimtWork =
    std::variant<RunWork, CopyWork, FillWork, RecordWork, AwaitWork, CallWork, MeetWork>;

/// The work given to streams during a capture.
struct SimtGraph {
  std::vector<std::pair<int, SimtWork>> work;  // each with its branch
  std::vector<SimtStream*> branches;           // the capture began in the first
  std::vector<size_t> joined;  // by branch: the length of the work that the first one awaits

  /// Adds work of a stream that is a branch. False if the work awaits an event outside this
  /// capture.
  bool Add(SimtStream& stream, SimtWork what);
  /// Whether the first branch awaits all work of the others.
  bool AllJoined() const;
};

/// Does its work in order.
struct SimtStream {
  struct Given {
    SimtWork work;
    std::shared_ptr<const Clock> after;  // what happened before the host gave it
  };
  int rank = 0;
  Agent agent;  // its clock is `clock`
  Clock clock;
  std::deque<Given> queue;
  bool runs_kernel = false;
  bool has_come = false;         // to the meeting that is first in the queue
  SimtGraph* capture = nullptr;  // null: it is not captured
  int branch = 0;

  bool idle() const { return queue.empty() && !runs_kernel; }
  /// Joins the graph as its next branch. Null: ends the capture.
  void JoinCapture(SimtGraph* graph);
};

/// The streams of all devices: launches their kernels on the machine and does their copies, fills
/// and collectives on the host. Not thread-safe.
class DeviceStreams {
 public:
  DeviceStreams(int ranks, SimtMachine& machine) : machine_(machine), cancelled_(ranks) {}

  /// Null if the machine has no slot left.
  SimtStream* Make(int rank);
  void Destroy(SimtStream* stream);
  /// Appends work to the stream, or to the graph while it is captured; does work of a null stream
  /// at once. False: captured work that awaits an event outside the capture.
  bool Give(SimtHost& host, SimtStream* stream, SimtWork work);
  /// The open meeting of that name, made by the first call; `join` adds the caller's operands.
  std::shared_ptr<SimtMeeting> Meet(const std::string& name, int size,
                                    const std::function<void(SimtMeeting& meeting)>& join);
  /// From now on the rank's streams skip meetings that are not complete.
  void CancelMeetings(int rank);

  /// Starts the work that streams have come to.
  void StartWork();
  /// Whether something has happened since StartWork that streams or hosts may wait for.
  bool changed() const { return changed_; }
  /// Whether some stream waits in a collective.
  bool any_in_meeting() const;
  /// What streams wait for, one per line; for a report of a deadlock.
  std::string DescribeWaits() const;

 private:
  /// Whether the first work of the stream is done, or is a kernel that has begun.
  bool StartFirst(SimtStream& stream);
  void StartKernel(SimtStream& stream, const RunWork& work);
  /// Whether the meeting is over for the stream; otherwise the stream waits there.
  bool Attend(SimtStream& stream, const SimtStream::Given& given, const MeetWork& work);
  void Note(const Agent& agent, const std::vector<SimtAccess>& accesses);
  void Copy(const Agent& agent, const CopyWork& work);
  void Fill(const Agent& agent, const FillWork& work);
  /// Fills memory outside of streams. Filling a whole buffer is part of its allocation, before all
  /// else.
  void FillAtOnce(const SimtHost& host, const FillWork& work);

  struct Open {
    std::shared_ptr<SimtMeeting> meeting;
    int joined = 0;
  };

  SimtMachine& machine_;
  std::vector<std::unique_ptr<SimtStream>> streams_;
  std::map<std::string, Open> meetings_;  // that not all members have joined
  std::vector<char> cancelled_;           // by rank
  bool changed_ = false;
};

}  // namespace coconet
