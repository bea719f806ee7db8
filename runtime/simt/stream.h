#ifndef COCONET_RUNTIME_SIMT_STREAM_H_
#define COCONET_RUNTIME_SIMT_STREAM_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/simt/machine/block.h"
#include "runtime/simt/machine/clock.h"
#include "runtime/simt/machine/shadow.h"

namespace coconet {

struct SimtStream;

/// Recorded in streams, waited for in others. A record is reached when its stream comes to it.
struct SimtEvent {
  int recorded = 0, reached = 0;
  Clock clock;  // of the last record that was reached
  uint64_t when_ns = 0;
  // Where it was last recorded, when that was in a capture.
  struct SimtGraph* capture = nullptr;
  int branch = 0;
  size_t work = 0;  // of the graph, until then
};

struct KernelWork {
  SimtKernel kernel;
  const std::string* name;
  const void* params;
  int blocks, threads;
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
/// What the host computes.
struct CallWork {
  std::function<void()> call;
  std::vector<SimtAccess> accesses;
};
/// What some streams do together, once, when all of them have come: a collective.
struct SimtMeeting {
  int size = 1, come = 0;
  std::shared_ptr<void> operands = nullptr;  // of whom they belong to
  std::function<void()> work = nullptr;      // by the last that comes
  Clock clock = {};                          // what they all know
};
struct MeetWork {
  std::shared_ptr<SimtMeeting> meeting;
  std::vector<SimtAccess> accesses;  // of this stream's rank
};
using SimtWork =
    std::variant<KernelWork, CopyWork, FillWork, RecordWork, AwaitWork, CallWork, MeetWork>;

/// What streams were given while they were captured: to which of them, and what.
struct SimtGraph {
  std::vector<std::pair<int, SimtWork>> work;  // by branch
  std::vector<SimtStream*> branches;           // the capture began in the first
  std::vector<size_t>
      joined;  // by branch: so much of the work is before something of the first one

  /// Of a stream that is a branch. False: it waits for an event of another capture, or of none.
  bool Add(SimtStream& stream, SimtWork what);
  /// Whether all that other branches were given is before something of the first.
  bool AllJoined() const;
};

/// Does what it is given in order.
struct SimtStream {
  struct Given {
    SimtWork work;
    std::shared_ptr<const Clock> after;  // what its giver knew
  };
  int rank = 0;
  Agent agent;  // knows `clock`
  Clock clock;
  std::deque<Given> queue;
  bool runs_kernel = false;
  bool has_come = false;  // to the meeting that is first in the queue
  SimtGraph* capture = nullptr;
  int branch = 0;

  bool idle() const { return queue.empty() && !runs_kernel; }
  /// As the next branch; null: it is captured no more.
  void JoinCapture(SimtGraph* graph);
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_SIMT_STREAM_H_
