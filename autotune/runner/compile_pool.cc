#include "autotune/runner/compile_pool.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace coconet {
namespace {

/// Much shorter than the time limit of a wait.
constexpr auto kHeartBeat = std::chrono::milliseconds(200);
/// A running compiler needs some hundred MB of memory.
constexpr size_t kMostWorkers = 16;

}  // namespace

cpu_set_t OwnCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(getpid(), sizeof(cores), &cores) != 0) CPU_SET(0, &cores);
  return cores;
}

CompilePool::CompilePool(Compiler& compiler, absl::Span<const KernelSource> sources,
                         const cpu_set_t& cores, std::atomic<bool>* stop)
    : compiler_(compiler),
      sources_(sources),
      cores_(cores),
      stop_(stop),
      binaries_(sources.size(), absl::CancelledError("not compiled")) {
  if (stop_ != nullptr) *stop_ = false;
  const size_t count =
      std::min({static_cast<size_t>(CPU_COUNT(&cores)), sources.size(), kMostWorkers});
  for (size_t i = 0; i < count; ++i) threads_.emplace_back([this] { Work(); });
}

CompilePool::~CompilePool() {
  if (!Idle()) Stop();
  for (std::thread& thread : threads_) thread.join();
}

int CompilePool::Wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  finished_.wait_for(lock, kHeartBeat, [this] { return idle_ == threads_.size(); });
  return done_;
}

bool CompilePool::Idle() {
  std::lock_guard<std::mutex> lock(mutex_);
  return idle_ == threads_.size();
}

void CompilePool::Stop() {
  if (stop_ != nullptr) *stop_ = true;
  std::lock_guard<std::mutex> lock(mutex_);
  next_ = sources_.size();
}

void CompilePool::Work() {
  // A new thread inherits the pinning of the rank's thread.
  sched_setaffinity(0, sizeof(cores_), &cores_);
  std::unique_lock<std::mutex> lock(mutex_);
  while (next_ < sources_.size()) {
    const size_t i = next_++;
    lock.unlock();
    absl::StatusOr<Binary> binary = compiler_.Compile(sources_[i]);
    lock.lock();
    ++done_;
    if (binary.ok() && !binary->note.empty()) notes_.push_back(binary->note);
    if (binary.ok()) {
      binaries_[i] = std::move(binary->path);
    } else {
      binaries_[i] = binary.status();
    }
  }
  ++idle_;
  finished_.notify_all();
}

}  // namespace coconet
