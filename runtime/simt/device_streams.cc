#include "runtime/simt/device_streams.h"

#include <algorithm>
#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/status.h"

namespace coconet {

void SimtStream::JoinCapture(SimtGraph* graph) {
  capture = graph;
  if (graph == nullptr) return;
  branch = static_cast<int>(graph->branches.size());
  graph->branches.push_back(this);
  graph->joined.push_back(0);
}

bool SimtGraph::Add(SimtStream& stream, SimtWork what) {
  if (const auto* await = std::get_if<AwaitWork>(&what); await != nullptr) {
    if (await->event->capture != this) return false;
    if (stream.branch == 0) joined[await->event->branch] = await->event->work;
  }
  work.emplace_back(stream.branch, std::move(what));
  if (const auto* record = std::get_if<RecordWork>(&work.back().second); record != nullptr) {
    record->event->capture = this;
    record->event->branch = stream.branch;
    record->event->work = work.size();
  }
  return true;
}

bool SimtGraph::AllJoined() const {
  std::vector<size_t> last(branches.size());
  for (size_t i = 0; i < work.size(); ++i) last[work[i].first] = i + 1;
  for (size_t branch = 1; branch < last.size(); ++branch) {
    if (joined[branch] < last[branch]) return false;
  }
  return true;
}

SimtStream* DeviceStreams::Make(int rank) {
  if (!machine_.slots().has_free()) return nullptr;
  auto stream = std::make_unique<SimtStream>();
  stream->rank = rank;
  stream->agent = machine_.slots().Take(absl::StrCat("a copy in a stream of rank ", rank));
  // Kernels are launched in this order: by rank, independently of the order of host threads.
  const auto after = [](int of, const std::unique_ptr<SimtStream>& other) {
    return of < other->rank;
  };
  return streams_.insert(absl::c_upper_bound(streams_, rank, after), std::move(stream))->get();
}

void DeviceStreams::Destroy(SimtStream* stream) {
  machine_.slots().Give(stream->agent);
  streams_.erase(
      absl::c_find_if(streams_, [&](const auto& other) { return other.get() == stream; }));
}

bool DeviceStreams::Give(SimtHost& host, SimtStream* stream, SimtWork work) {
  auto* record = std::get_if<RecordWork>(&work);
  auto* await = std::get_if<AwaitWork>(&work);
  if (await != nullptr && stream->capture == nullptr && await->event->capture != nullptr)
    stream->JoinCapture(await->event->capture);
  if (stream != nullptr && stream->capture != nullptr)
    return stream->capture->Add(*stream, std::move(work));
  if (record != nullptr)
    record->event->capture = nullptr, record->number = ++record->event->recorded;
  if (await != nullptr) await->number = await->event->recorded;
  if (stream == nullptr) {
    host.agent.clock = &host.clock;
    std::visit(Match{[&](const CopyWork& copy) { Copy(host.agent, copy); },
                     [&](const FillWork& fill) { FillAtOnce(host, fill); }, [](const auto&) {}},
               work);
  } else {
    stream->queue.push_back({std::move(work), std::make_shared<Clock>(host.clock)});
    // Everything but kernels is done as soon as possible, whatever the other hosts do.
    while (!stream->queue.empty() && !stream->runs_kernel &&
           !std::holds_alternative<RunWork>(stream->queue.front().work) && StartFirst(*stream))
      continue;
    changed_ = true;
  }
  host.clock.JoinSlot(host.agent.slot, ++host.agent.generation);
  return true;
}

void DeviceStreams::StartWork() {
  while (std::exchange(changed_, false)) {
    for (const std::unique_ptr<SimtStream>& stream : streams_) {
      while (!stream->queue.empty() && !stream->runs_kernel && StartFirst(*stream)) changed_ = true;
    }
  }
}

bool DeviceStreams::StartFirst(SimtStream& stream) {
  const SimtStream::Given given = stream.queue.front();
  if (const auto* await = std::get_if<AwaitWork>(&given.work); await != nullptr) {
    if (await->event->reached < await->number) return false;
    stream.clock.Join(await->event->clock);
  }
  if (const auto* meet = std::get_if<MeetWork>(&given.work);
      meet != nullptr && !Attend(stream, given, *meet))
    return false;
  stream.queue.pop_front();
  stream.clock.Join(*given.after);
  stream.agent.clock = &stream.clock;
  std::visit(Match{[&](const RunWork& work) { StartKernel(stream, work); },
                   [&](const CopyWork& work) { Copy(stream.agent, work); },
                   [&](const FillWork& work) { Fill(stream.agent, work); },
                   [&](const CallWork& work) {
                     Note(stream.agent, work.accesses);
                     work.call();
                   },
                   [&](const RecordWork& work) {
                     work.event->clock = stream.clock;
                     work.event->when_ns = machine_.now_ns();
                     work.event->reached = work.number;
                   },
                   [](const AwaitWork&) {}, [](const MeetWork&) {}},
             given.work);
  stream.clock.JoinSlot(stream.agent.slot, ++stream.agent.generation);
  return true;
}

bool DeviceStreams::Attend(SimtStream& stream, const SimtStream::Given& given,
                           const MeetWork& work) {
  SimtMeeting& meeting = *work.meeting;
  if (cancelled_[stream.rank] && meeting.come < meeting.size) {
    if (std::exchange(stream.has_come, false)) --meeting.come;  // the others do not use its memory
    return true;
  }
  if (!std::exchange(stream.has_come, true)) {
    stream.clock.Join(*given.after);
    stream.agent.clock = &stream.clock;
    Note(stream.agent, work.accesses);
    stream.clock.JoinSlot(stream.agent.slot, ++stream.agent.generation);
    meeting.clock.Join(stream.clock);
    if (++meeting.come == meeting.size) {
      if (!machine_.finding().has_value()) meeting.work();
      changed_ = true;
    }
  }
  if (meeting.come < meeting.size) return false;
  stream.has_come = false;
  stream.clock.Join(meeting.clock);
  return true;
}

std::shared_ptr<SimtMeeting> DeviceStreams::Meet(const std::string& name, int size,
                                                 const std::function<void(SimtMeeting&)>& join) {
  Open& open = meetings_[name];
  if (open.meeting == nullptr)
    open.meeting = std::make_shared<SimtMeeting>(SimtMeeting{.size = size});
  const std::shared_ptr<SimtMeeting> meeting = open.meeting;
  join(*meeting);
  if (++open.joined == size) meetings_.erase(name);
  return meeting;
}

void DeviceStreams::CancelMeetings(int rank) {
  cancelled_[rank] = changed_ = true;
  machine_.checker().GiveUpPlan();
}

void DeviceStreams::StartKernel(SimtStream& stream, const RunWork& work) {
  auto launch = std::make_shared<SimtLaunch>();
  launch->kernel = work.kernel;
  launch->name = *work.name;
  launch->params = work.params;
  launch->blocks = work.blocks;
  launch->threads = work.threads;
  launch->shared_bytes = work.shared_bytes;
  launch->rank = stream.rank;
  launch->start = std::make_shared<Clock>(stream.clock);
  launch->done = [this, &stream, of = launch.get()] {
    stream.clock.Join(of->end);
    stream.runs_kernel = false;
    changed_ = true;
  };
  stream.runs_kernel = true;
  machine_.Launch(std::move(launch));
}

void DeviceStreams::Note(const Agent& agent, const std::vector<SimtAccess>& accesses) {
  for (const SimtAccess& access : accesses)
    machine_.checker().CheckHost(agent, access.p, access.bytes, access.writes);
}

void DeviceStreams::Copy(const Agent& agent, const CopyWork& work) {
  machine_.checker().CheckHost(agent, const_cast<void*>(work.from), work.bytes, /*writes=*/false);
  machine_.checker().CheckHost(agent, work.to, work.bytes, /*writes=*/true);
  std::memcpy(work.to, work.from, work.bytes);
}

void DeviceStreams::Fill(const Agent& agent, const FillWork& work) {
  for (size_t row = 0; row < work.height; ++row) {
    char* to = static_cast<char*>(work.to) + row * work.pitch;
    machine_.checker().CheckHost(agent, to, work.width, /*writes=*/true);
    std::memset(to, work.byte, work.width);
  }
}

void DeviceStreams::FillAtOnce(const SimtHost& host, const FillWork& work) {
  SimtBuffer* buffer = machine_.memory().Find(work.to);
  const bool whole = buffer != nullptr && buffer->base() == work.to && work.height == 1 &&
                     work.width == buffer->bytes();
  if (!whole) return Fill(host.agent, work);
  std::memset(work.to, work.byte, work.width);
  buffer->shadow().Initialize();
}

bool DeviceStreams::any_in_meeting() const {
  return absl::c_any_of(streams_, [](const auto& stream) { return stream->has_come; });
}

std::string DeviceStreams::DescribeWaits() const {
  std::vector<std::string> lines;
  for (const std::unique_ptr<SimtStream>& stream : streams_) {
    if (stream->queue.empty() || stream->runs_kernel) continue;
    lines.push_back(absl::StrCat(
        "a stream of rank ", stream->rank,
        stream->has_come ? " waits for other ranks in a collective" : " waits for an event"));
  }
  return absl::StrJoin(lines, "\n");
}

}  // namespace coconet
