#include "autotune/search/compile_pool.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "autotune/store/wire.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// Much shorter than the time limit of a wait.
constexpr auto kHeartBeat = std::chrono::milliseconds(200);
/// A running compiler needs some hundred MB of memory.
constexpr size_t kMostWorkers = 16;

/// The cores of the process's main thread. Threads of ranks are pinned to fewer.
cpu_set_t OwnCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(getpid(), sizeof(cores), &cores) != 0) CPU_SET(0, &cores);
  return cores;
}

/// Collective. The cores of all ranks: idle while their ranks wait for the compilers.
absl::StatusOr<cpu_set_t> CoresOfAll(Rank& rank) {
  cpu_set_t cores = OwnCores();
  ASSIGN_OR_RETURN(
      const std::vector<std::string> all,
      rank.exchange().AllGather({reinterpret_cast<const char*>(&cores), sizeof(cores)}));
  if (rank.topology().nodes > 1) return cores;  // other machines number other cores
  for (const std::string& theirs : all) {
    cpu_set_t other;
    if (theirs.size() != sizeof(other))
      return absl::DataLossError("compile: a message between ranks is damaged");
    std::memcpy(&other, theirs.data(), sizeof(other));
    CPU_OR(&cores, &cores, &other);
  }
  return cores;
}

/// Threads that compile sources, and their results.
class Workers {
 public:
  Workers(Compiler* compiler, absl::Span<const std::string> sources, const cpu_set_t& cores)
      : compiler_(compiler),
        sources_(sources),
        cores_(cores),
        binaries_(sources.size(), absl::CancelledError("not compiled")) {
    const size_t count =
        std::min({static_cast<size_t>(CPU_COUNT(&cores)), sources.size(), kMostWorkers});
    for (size_t i = 0; i < count; ++i) threads_.emplace_back([this] { Work(); });
  }
  ~Workers() {
    for (std::thread& thread : threads_) thread.join();
  }

  /// Returns how many sources are compiled, after one heart beat or when all threads are idle.
  int Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    finished_.wait_for(lock, kHeartBeat, [this] { return idle_ == threads_.size(); });
    return done_;
  }
  bool Idle() {
    std::lock_guard<std::mutex> lock(mutex_);
    return idle_ == threads_.size();
  }
  void Stop() {
    std::lock_guard<std::mutex> lock(mutex_);
    next_ = sources_.size();
  }
  /// Requires Idle().
  const std::vector<absl::StatusOr<std::string>>& binaries() const { return binaries_; }
  std::vector<std::string> notes() const { return notes_; }

 private:
  void Work() {
    // A new thread inherits the pinning of the rank's thread.
    sched_setaffinity(0, sizeof(cores_), &cores_);
    std::unique_lock<std::mutex> lock(mutex_);
    while (next_ < sources_.size()) {
      const size_t i = next_++;
      lock.unlock();
      absl::StatusOr<Binary> binary = compiler_->Compile(sources_[i]);
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

  Compiler* const compiler_;
  const absl::Span<const std::string> sources_;
  const cpu_set_t cores_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable finished_;
  size_t next_ = 0, idle_ = 0;
  int done_ = 0;
  std::vector<absl::StatusOr<std::string>> binaries_;
  std::vector<std::string> notes_;
  std::vector<std::thread> threads_;
};

constexpr absl::string_view kStillBusy = "busy";

std::string PackBinaries(const std::vector<absl::StatusOr<std::string>>& binaries) {
  Packer out;
  out.Int(static_cast<int64_t>(binaries.size()));
  for (const absl::StatusOr<std::string>& binary : binaries) {
    PackStatus(out, binary.status());
    out.Text(binary.ok() ? *binary : "");
  }
  return out.bytes();
}

absl::StatusOr<std::vector<absl::StatusOr<std::string>>> UnpackBinaries(absl::string_view bytes) {
  Unpacker in(bytes);
  std::vector<absl::StatusOr<std::string>> binaries;
  for (int64_t left = in.Int(); left > 0; --left) {
    absl::Status status = UnpackStatus(in);
    std::string path = in.Text();
    binaries.push_back(status.ok() ? absl::StatusOr<std::string>(std::move(path))
                                   : std::move(status));
  }
  RETURN_IF_ERROR(in.Done());
  return binaries;
}

absl::StatusOr<std::vector<absl::StatusOr<std::string>>> CompileHere(Rank& rank, Workers& workers,
                                                                     int sources,
                                                                     const CompileWatch& watch) {
  int reported = 0;
  while (!workers.Idle()) {
    const int done = workers.Wait();
    if (watch.stop && watch.stop()) workers.Stop();
    if (watch.progress && done > reported) watch.progress(done, sources);
    reported = done;
    if (workers.Idle()) break;
    RETURN_IF_ERROR(rank.exchange().Broadcast(kStillBusy).status());
  }
  for (const std::string& note : workers.notes()) {
    if (watch.warn) watch.warn(note);
  }
  ASSIGN_OR_RETURN(const std::string same,
                   rank.exchange().Broadcast(PackBinaries(workers.binaries())));
  return UnpackBinaries(same);
}

}  // namespace

absl::StatusOr<std::vector<absl::StatusOr<std::string>>> CompileTogether(
    Rank& rank, Compiler* compiler, absl::Span<const std::string> sources,
    const CompileWatch& watch) {
  ASSIGN_OR_RETURN(const cpu_set_t cores, CoresOfAll(rank));
  if (rank.rank() == 0) {
    Workers workers(compiler, sources, cores);
    absl::StatusOr<std::vector<absl::StatusOr<std::string>>> binaries =
        CompileHere(rank, workers, static_cast<int>(sources.size()), watch);
    if (!binaries.ok()) workers.Stop();
    return binaries;
  }
  while (true) {
    ASSIGN_OR_RETURN(const std::string message, rank.exchange().Broadcast(""));
    if (message != kStillBusy) return UnpackBinaries(message);
  }
}

}  // namespace coconet
