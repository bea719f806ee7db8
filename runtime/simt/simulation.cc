#include "runtime/simt/simulation.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// Device time that passes at once when nothing else can happen.
constexpr std::chrono::seconds kLeap(10);
/// How long the loop gives host threads to help.
constexpr std::chrono::milliseconds kPause(1);

}  // namespace

absl::StatusOr<std::shared_ptr<Simulation>> Simulation::Make(const SimtOptions& options, int ranks,
                                                             double patience_s) {
  ASSIGN_OR_RETURN(std::unique_ptr<SimtMachine> machine, SimtMachine::Make(options, ranks));
  std::shared_ptr<Simulation> made(new Simulation(ranks, patience_s, std::move(machine)));
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
  if (--wanted_ == 0) to_loop_.notify_all();
  return lock;
}

// ---- Host threads

std::unique_ptr<SimtHost> Simulation::Attach(const std::string& who) {
  const auto lock = Lock();
  auto host = std::make_unique<SimtHost>();
  host->agent = machine_->slots().Take(who);
  hosts_.push_back(host.get());
  return host;
}

void Simulation::Detach(std::unique_ptr<SimtHost> host) {
  const auto lock = Lock();
  machine_->slots().Give(host->agent);
  hosts_.erase(absl::c_find(hosts_, host.get()));
  to_loop_.notify_all();
}

void Simulation::WaitForHost(SimtHost& host, absl::FunctionRef<bool()> ready) {
  const auto lock = Lock();
  host.ready.emplace(ready);
  to_loop_.notify_all();
}

void Simulation::GoOn(SimtHost& host) {
  const auto lock = Lock();
  host.ready.reset();
}

bool Simulation::AllWait() const {
  const auto waits = absl::c_count_if(
      hosts_, [](const SimtHost* host) { return host->ready.has_value() && !(*host->ready)(); });
  return waits_.size() + static_cast<size_t>(waits) >= hosts_.size();
}

bool Simulation::AwaitUntil(SimtHost& host, const std::function<bool()>& done, const Clock& clock) {
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

bool Simulation::Await(SimtHost& host, SimtStream* stream) {
  return AwaitUntil(host, [stream] { return stream->idle(); }, stream->clock);
}

bool Simulation::Await(SimtHost& host, SimtEvent* event) {
  return AwaitUntil(host, [event] { return event->reached >= event->recorded; }, event->clock);
}

std::string Simulation::mistake() {
  const auto lock = Lock();
  return machine_->finding().has_value() ? machine_->finding()->text : "";
}

void Simulation::CancelMeetings(int rank) {
  const auto lock = Lock();
  streams_.CancelMeetings(rank);
  to_loop_.notify_all();
}

// ---- The loop

void Simulation::Loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ends_) {
    to_loop_.wait(lock, [&] { return ends_ || !waits_.empty(); });
    waits_for_hosts_ =
        waits_for_hosts_ && to_loop_.wait_for(lock, patience_, [&] { return ends_ || AllWait(); });
    if (ends_) return;
    RunAWhile();
    waits_for_hosts_ |= EndWaits(/*all=*/machine_->finding().has_value());
    if (!waits_.empty() && machine_->stuck()) LookForHelp(lock);
    to_loop_.wait(lock, [&] { return wanted_ == 0; });  // std::mutex is not fair
  }
}

void Simulation::RunAWhile() {
  constexpr int kSteps = 256;
  for (int i = 0; i < kSteps; ++i) {
    if (streams_.changed()) {
      streams_.StartWork();
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
  // More often than an executor polls a stream before it looks for messages of other ranks.
  constexpr int kFruitless = 6 * kRoundsPerLook;
  if (std::exchange(last_change_, machine_->last_change()) != machine_->last_change())
    fruitless_ = 0;
  const bool all_wait = waits_.size() >= hosts_.size(),
             all_here = static_cast<int>(hosts_.size()) == ranks_;
  // The deadline of a collective is in host time. While one waits, device time must not pass: a
  // kernel behind it would reach its own deadline first.
  const bool in_collective = streams_.any_in_meeting();
  if (fruitless_++ % (all_wait ? kRoundsPerLook : kQuickRoundsPerLook) == 0)
    return machine_->LookAgain();
  if (all_wait && fruitless_ > kFruitless) {
    // Kernels that wait for a rank that has left do so until their deadlines, in device time. That
    // is no deadlock.
    if (all_here) machine_->reporter().Report(FindingKind::kDeadlock, DescribeWaits());
    if (!in_collective) machine_->PassTime(std::chrono::nanoseconds(kLeap).count());
    fruitless_ -= kRoundsPerLook;
  }
  EndWaits(/*all=*/true);
  if (all_wait && (!in_collective || all_here)) return;
  const auto begin = std::chrono::steady_clock::now();
  to_loop_.wait_for(lock, kPause, [&] { return ends_; });
  machine_->PassTime(std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count());
}

std::string Simulation::DescribeWaits() const {
  const std::string threads = machine_->DescribeWaits(), streams = streams_.DescribeWaits();
  return absl::StrCat(threads, threads.empty() || streams.empty() ? "" : "\n", streams);
}

}  // namespace coconet
