#include "runtime/simt/simulation.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// How long the devices wait for a thread of the host that waits neither for them nor for other
/// ranks: it computes, or nobody knows what it waits for.
constexpr std::chrono::milliseconds kPatience(100);
/// How much of the devices' time passes at once where nothing else can happen.
constexpr std::chrono::seconds kLeap(10);
/// How long a look for help from the host takes.
constexpr std::chrono::milliseconds kPause(1);

}  // namespace

absl::StatusOr<std::shared_ptr<Simulation>> Simulation::Make(const SimtOptions& options,
                                                             int ranks) {
  ASSIGN_OR_RETURN(std::unique_ptr<SimtMachine> machine, SimtMachine::Make(options, ranks));
  std::shared_ptr<Simulation> made(new Simulation(ranks, std::move(machine)));
  made->loop_ = std::thread([simulation = made.get()] { simulation->Loop(); });
  return made;
}

Simulation::~Simulation() {
  {
    const auto lock = Lock();
    ends_ = true;
    to_loop_.notify_all();
  }
  loop_.join();
}

std::unique_lock<std::mutex> Simulation::Lock() {
  ++wanted_;
  std::unique_lock<std::mutex> lock(mutex_);
  --wanted_;
  return lock;
}

// ---- Threads of the host
// -------------------------------------------------------------------------------

std::unique_ptr<Simulation::Host> Simulation::Attach(const std::string& who) {
  const auto lock = Lock();
  auto host = std::make_unique<Host>();
  host->agent = machine_->TakeSlot(who);
  hosts_.push_back(host.get());
  return host;
}

void Simulation::Detach(std::unique_ptr<Host> host) {
  const auto lock = Lock();
  machine_->GiveSlot(host->agent);
  hosts_.erase(absl::c_find(hosts_, host.get()));
  to_loop_.notify_all();
}

void Simulation::WaitForHost(Host& host, absl::FunctionRef<bool()> ready) {
  const auto lock = Lock();
  host.ready.emplace(ready);
  to_loop_.notify_all();
}

void Simulation::GoOn(Host& host) {
  const auto lock = Lock();
  host.ready.reset();
}

bool Simulation::AllWait() const {
  const auto waits = absl::c_count_if(
      hosts_, [](const Host* host) { return host->ready.has_value() && !(*host->ready)(); });
  return waits_.size() + static_cast<size_t>(waits) >= hosts_.size();
}

bool Simulation::AwaitUntil(Host& host, const std::function<bool()>& done, const Clock& clock) {
  auto lock = Lock();
  Wait wait{done};
  if (!done() && !machine_->finding().has_value()) {
    waits_.push_back(&wait);
    to_loop_.notify_all();
    to_hosts_.wait(lock, [&] { return wait.over; });
  }
  if (!done() && !machine_->finding().has_value()) return false;
  host.clock.Join(clock);
  return true;
}

bool Simulation::Await(Host& host, SimtStream* stream) {
  return AwaitUntil(host, [stream] { return stream->idle(); }, stream->clock);
}

bool Simulation::Await(Host& host, SimtEvent* event) {
  return AwaitUntil(host, [event] { return event->reached >= event->recorded; }, event->clock);
}

uint64_t Simulation::now_ns() {
  const auto lock = Lock();
  return machine_->now_ns();
}

std::string Simulation::mistake() {
  const auto lock = Lock();
  return machine_->finding().has_value() ? machine_->finding()->text : "";
}

// ---- Memory
// --------------------------------------------------------------------------------------------

void* Simulation::Allocate(size_t bytes, int rank) {
  const auto lock = Lock();
  SimtBuffer* buffer = machine_->memory().Allocate(bytes, rank);
  return buffer == nullptr ? nullptr : buffer->base();
}

bool Simulation::Free(void* base) {
  const auto lock = Lock();
  return machine_->memory().Free(base);
}

void Simulation::Register(void* base, size_t bytes) {
  const auto lock = Lock();
  machine_->memory().Register(base, bytes);
  machine_->BeginPlan();
}

void Simulation::Unregister(void* base) {
  const auto lock = Lock();
  machine_->memory().Unregister(base);
}

void Simulation::NameBuffer(const void* base, size_t bytes, const std::string& name) {
  const auto lock = Lock();
  if (SimtBuffer* buffer = machine_->memory().Find(base); buffer != nullptr)
    buffer->NamePart(buffer->OffsetOf(base), bytes, name);
}

void Simulation::Forget(const void* p, size_t bytes) {
  const auto lock = Lock();
  if (SimtBuffer* buffer = machine_->memory().Find(p); buffer != nullptr)
    buffer->shadow().Forget(buffer->OffsetOf(p), bytes);
}

void Simulation::CheckWritten(const void* p, size_t bytes) {
  const auto lock = Lock();
  machine_->CheckWritten(p, bytes);
}

void Simulation::BearBuffer(const void* base) {
  const auto lock = Lock();
  if (SimtBuffer* buffer = machine_->memory().Find(base); buffer != nullptr)
    machine_->Bear(*buffer);
}

// ---- Streams
// -------------------------------------------------------------------------------------------

SimtStream* Simulation::MakeStream(int rank) {
  const auto lock = Lock();
  if (!machine_->HasSlot()) return nullptr;
  auto stream = std::make_unique<SimtStream>();
  stream->rank = rank;
  stream->agent = machine_->TakeSlot(absl::StrCat("a copy in a stream of rank ", rank));
  // By rank, whichever thread of the host comes first: kernels are launched in this order.
  const auto after = [](int of, const std::unique_ptr<SimtStream>& other) {
    return of < other->rank;
  };
  return streams_
      .insert(std::upper_bound(streams_.begin(), streams_.end(), rank, after), std::move(stream))
      ->get();
}

void Simulation::DestroyStream(SimtStream* stream) {
  const auto lock = Lock();
  machine_->GiveSlot(stream->agent);
  streams_.erase(
      absl::c_find_if(streams_, [&](const auto& other) { return other.get() == stream; }));
}

bool Simulation::Give(Host& host, SimtStream* stream, SimtWork work) {
  const auto lock = Lock();
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
    // What is no kernel is done when it can be, whatever the other hosts do.
    while (!stream->queue.empty() && !stream->runs_kernel &&
           !std::holds_alternative<KernelWork>(stream->queue.front().work) && StartFirst(*stream))
      continue;
    changed_ = true;
  }
  host.clock.JoinSlot(host.agent.slot, ++host.agent.generation);
  return true;
}

void Simulation::StartWork() {
  while (std::exchange(changed_, false)) {
    for (const std::unique_ptr<SimtStream>& stream : streams_) {
      while (!stream->queue.empty() && !stream->runs_kernel && StartFirst(*stream)) changed_ = true;
    }
  }
}

bool Simulation::StartFirst(SimtStream& stream) {
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
  std::visit(Match{[&](const KernelWork& work) { StartKernel(stream, work); },
                   [&](const CopyWork& work) { Copy(stream.agent, work); },
                   [&](const FillWork& work) { Fill(stream.agent, work); },
                   [&](const CallWork& work) {
                     Note(stream.agent, work.accesses);
                     work.call();
                   },
                   [&](const RecordWork& work) {
                     work.event->clock = stream.clock;
                     work.event->when_ns = machine_->now_ns();
                     work.event->reached = work.number;
                   },
                   [](const AwaitWork&) {}, [](const MeetWork&) {}},
             given.work);
  stream.clock.JoinSlot(stream.agent.slot, ++stream.agent.generation);
  return true;
}

bool Simulation::Attend(SimtStream& stream, const SimtStream::Given& given, const MeetWork& work) {
  SimtMeeting& meeting = *work.meeting;
  if (cancelled_[stream.rank] && meeting.come < meeting.size) {
    if (std::exchange(stream.has_come, false)) --meeting.come;  // its memory is its own again
    return true;
  }
  if (!std::exchange(stream.has_come, true)) {
    stream.clock.Join(*given.after);
    stream.agent.clock = &stream.clock;
    Note(stream.agent, work.accesses);
    stream.clock.JoinSlot(stream.agent.slot, ++stream.agent.generation);
    meeting.clock.Join(stream.clock);
    if (++meeting.come == meeting.size) {
      if (!machine_->finding().has_value()) meeting.work();
      changed_ = true;
    }
  }
  if (meeting.come < meeting.size) return false;
  stream.has_come = false;
  stream.clock.Join(meeting.clock);
  return true;
}

std::shared_ptr<SimtMeeting> Simulation::Meet(const std::string& name, int size,
                                              const std::function<void(SimtMeeting&)>& join) {
  const auto lock = Lock();
  Open& open = meetings_[name];
  if (open.meeting == nullptr)
    open.meeting = std::make_shared<SimtMeeting>(SimtMeeting{.size = size});
  const std::shared_ptr<SimtMeeting> meeting = open.meeting;
  join(*meeting);
  if (++open.joined == size) meetings_.erase(name);
  return meeting;
}

void Simulation::CancelMeetings(int rank) {
  const auto lock = Lock();
  cancelled_[rank] = changed_ = true;
  machine_->GiveUp();
  to_loop_.notify_all();
}

void Simulation::StartKernel(SimtStream& stream, const KernelWork& work) {
  auto launch = std::make_shared<SimtLaunch>();
  launch->kernel = work.kernel;
  launch->name = *work.name;
  launch->params = work.params;
  launch->blocks = work.blocks;
  launch->threads = work.threads;
  launch->rank = stream.rank;
  launch->start = std::make_shared<Clock>(stream.clock);
  launch->done = [this, &stream, of = launch.get()] {
    stream.clock.Join(of->end);
    stream.runs_kernel = false;
    changed_ = true;
  };
  stream.runs_kernel = true;
  machine_->Launch(std::move(launch));
}

void Simulation::Note(const Agent& agent, const std::vector<SimtAccess>& accesses) {
  for (const SimtAccess& access : accesses)
    machine_->AccessFromHost(agent, access.p, access.bytes, access.writes);
}

void Simulation::Copy(const Agent& agent, const CopyWork& work) {
  machine_->AccessFromHost(agent, const_cast<void*>(work.from), work.bytes, /*writes=*/false);
  machine_->AccessFromHost(agent, work.to, work.bytes, /*writes=*/true);
  std::memcpy(work.to, work.from, work.bytes);
}

void Simulation::Fill(const Agent& agent, const FillWork& work) {
  for (size_t row = 0; row < work.height; ++row) {
    char* to = static_cast<char*>(work.to) + row * work.pitch;
    machine_->AccessFromHost(agent, to, work.width, /*writes=*/true);
    std::memset(to, work.byte, work.width);
  }
}

void Simulation::FillAtOnce(const Host& host, const FillWork& work) {
  SimtBuffer* buffer = machine_->memory().Find(work.to);
  const bool whole = buffer != nullptr && buffer->base() == work.to && work.height == 1 &&
                     work.width == buffer->bytes();
  if (!whole) return Fill(host.agent, work);
  std::memset(work.to, work.byte, work.width);
  machine_->Bear(*buffer);
}

// ---- The loop
// ------------------------------------------------------------------------------------------

void Simulation::Loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ends_) {
    to_loop_.wait(lock, [&] { return ends_ || !waits_.empty(); });
    patient_ = patient_ && to_loop_.wait_for(lock, kPatience, [&] { return ends_ || AllWait(); });
    if (ends_) return;
    RunAWhile();
    patient_ |= EndWaits(/*all=*/machine_->finding().has_value());
    if (!waits_.empty() && machine_->stuck()) LookForHelp(lock);
    while (wanted_ > 0) {  // the lock need not be fair
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
  }
}

void Simulation::RunAWhile() {
  constexpr int kSteps = 256;
  for (int i = 0; i < kSteps; ++i) {
    if (changed_) {
      StartWork();
      for (const Wait* wait : waits_) {
        if (wait->done()) return;
      }
    }
    if (!machine_->Step() || machine_->stuck()) return;
  }
}

bool Simulation::EndWaits(bool all) {
  const size_t before = waits_.size();
  const auto is_over = [&](Wait* wait) { return wait->over = all || wait->done(); };
  waits_.erase(std::remove_if(waits_.begin(), waits_.end(), is_over), waits_.end());
  if (waits_.size() == before) return false;
  to_hosts_.notify_all();
  return true;
}

void Simulation::LookForHelp(std::unique_lock<std::mutex>& lock) {
  constexpr int kRoundsPerLook = 256, kQuickRoundsPerLook = 8;
  constexpr int kFruitless = 6 * kRoundsPerLook;  // more often than an executor asks before it
                                                  // looks at what else there is to hear
  if (std::exchange(last_change_, machine_->last_change()) != machine_->last_change())
    fruitless_ = 0;
  const bool all_wait = waits_.size() >= hosts_.size(),
             all_here = static_cast<int>(hosts_.size()) == ranks_;
  // A collective's deadline is of the host's time, and who waits for a kernel behind it must not
  // come to its own before.
  const bool in_collective =
      absl::c_any_of(streams_, [](const auto& stream) { return stream->has_come; });
  if (fruitless_++ % (all_wait ? kRoundsPerLook : kQuickRoundsPerLook) == 0)
    return machine_->LookAgain();
  if (all_wait && fruitless_ > kFruitless) {
    // Kernels that wait for a rank which has gone do so until their deadlines, of the devices'
    // time: that is not their mistake.
    if (all_here) machine_->Report(FindingKind::kDeadlock, WhoWaits());
    if (!in_collective) machine_->PassTime(std::chrono::nanoseconds(kLeap).count());
    fruitless_ -= kRoundsPerLook;
  }
  EndWaits(/*all=*/true);
  if (all_wait && (!in_collective || all_here)) return;
  const auto begin = std::chrono::steady_clock::now();
  to_loop_.wait_for(lock, kPause, [&] { return ends_; });
  machine_->PassTime(std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count());
}

std::string Simulation::WhoWaits() const {
  std::string words = machine_->WhoWaits();
  for (const std::unique_ptr<SimtStream>& stream : streams_) {
    if (stream->queue.empty() || stream->runs_kernel) continue;
    absl::StrAppend(
        &words, words.empty() ? "" : "\n", "a stream of rank ", stream->rank,
        stream->has_come ? " waits for other ranks in a collective" : " waits for an event");
  }
  return words;
}

}  // namespace coconet
