#ifndef COCONET_RUNTIME_SIMT_DEVICE_STREAMS_H_
#define COCONET_RUNTIME_SIMT_DEVICE_STREAMS_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/simt/machine/machine.h"
#include "runtime/simt/stream.h"

namespace coconet {

/// The streams of all devices: launches their kernels on the machine and does their copies, fills
/// and collectives on the host. Not thread-safe.
class DeviceStreams {
 public:
  DeviceStreams(int ranks, SimtMachine& machine) : machine_(machine), cancelled_(ranks) {}

  /// Null where the machine has no slot left.
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
  /// Something has happened since StartWork that streams or hosts may wait for.
  bool changed() const { return changed_; }
  /// Some stream waits in a collective.
  bool any_in_meeting() const;
  /// What streams wait for, one per line; for a report of a deadlock.
  std::string DescribeWaits() const;

 private:
  /// Whether the first work of the stream is done, or is a kernel that has begun.
  bool StartFirst(SimtStream& stream);
  void StartKernel(SimtStream& stream, const KernelWork& work);
  /// Whether the meeting is over for the stream, which waits there otherwise.
  bool Attend(SimtStream& stream, const SimtStream::Given& given, const MeetWork& work);
  void Note(const Agent& agent, const std::vector<SimtAccess>& accesses);
  void Copy(const Agent& agent, const CopyWork& work);
  void Fill(const Agent& agent, const FillWork& work);
  /// Outside streams. To fill a whole buffer is part of its allocation, before all else.
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

#endif  // COCONET_RUNTIME_SIMT_DEVICE_STREAMS_H_
