#pragma once

#include <cuda.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace coconet {

class HostStream;

/// The work that streams were given during a capture.
struct HostGraph {
  struct Work {
    int branch;
    std::function<void(HostStream&)> give;  // appends it to the branch's stream
  };
  std::vector<Work> work;
  std::vector<HostStream*> branches;  // the capture began in the first
  std::vector<size_t> joined;         // by branch: the length of the work that the first one awaits
};

/// Does its work in order on a thread of its own; during a capture, adds it to the graph.
class HostStream {
 public:
  explicit HostStream(CUcontext context) : context_(context), thread_([this] { Loop(); }) {}
  ~HostStream() {
    Give(nullptr);
    thread_.join();
  }
  void Give(std::function<void()> work) {
    if (capture_ != nullptr && work != nullptr) {
      capture_->work.push_back({branch_, [work](HostStream& stream) { stream.Give(work); }});
      return;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    work_.push_back(std::move(work));
    pending_ += 1;
    changed_.notify_all();
  }
  CUcontext context() const { return context_; }
  HostGraph* capture() const { return capture_; }
  int branch() const { return branch_; }
  /// Joins the graph as its next branch. Null: ends the capture.
  void JoinCapture(HostGraph* graph) {
    capture_ = graph;
    if (graph == nullptr) return;
    branch_ = static_cast<int>(graph->branches.size());
    graph->branches.push_back(this);
    graph->joined.push_back(0);
  }
  bool Idle() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return pending_ == 0;
  }
  void Finish() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return pending_ == 0; });
  }

 private:
  void Loop() {
    while (true) {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [&] { return !work_.empty(); });
      const std::function<void()> work = std::move(work_.front());
      work_.pop_front();
      if (work == nullptr) return;
      lock.unlock();
      work();
      lock.lock();
      pending_ -= 1;
      changed_.notify_all();
    }
  }
  const CUcontext context_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  int pending_ = 0;
  HostGraph* capture_ = nullptr;  // used by the giving thread only
  int branch_ = 0;
  std::thread thread_;
};

/// Recorded in streams, awaited in others. A record is reached when its stream comes to it.
class HostEvent {
 public:
  explicit HostEvent(CUcontext context) : context_(context) {}
  CUcontext context() const { return context_; }
  /// Returns the number of a new record, which its stream passes to Reach.
  int Record() {
    const std::lock_guard<std::mutex> lock(mutex_);
    pending_.insert(++recorded_);
    return recorded_;
  }
  /// Records in several streams may be reached in any order.
  void Reach(int number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    pending_.erase(number);
    when_ = std::chrono::steady_clock::now();
    changed_.notify_all();
  }
  int last() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return recorded_;
  }
  /// When its last record was reached.
  std::chrono::steady_clock::time_point when() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return when_;
  }
  /// Whether it has no record, or its last one was reached.
  bool Idle() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return pending_.count(recorded_) == 0;
  }
  void Wait(int number) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return pending_.count(number) == 0; });
  }

  // Set if its last record was captured.
  HostGraph* capture = nullptr;
  int branch = 0;
  size_t work = 0;  // length of the graph's work behind the record

 private:
  const CUcontext context_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int recorded_ = 0;
  std::set<int> pending_;  // the records not yet reached
  std::chrono::steady_clock::time_point when_;
};

}  // namespace coconet
