#ifndef COCONET_RUNTIME_CUDA_TESTING_HOST_STREAM_H_
#define COCONET_RUNTIME_CUDA_TESTING_HOST_STREAM_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace coconet {

/// Does what it is given in order, on a thread of its own.
class HostStream {
 public:
  HostStream() : thread_([this] { Loop(); }) {}
  ~HostStream() {
    Give(nullptr);
    thread_.join();
  }
  void Give(std::function<void()> work) {
    const std::lock_guard<std::mutex> lock(mutex_);
    work_.push_back(std::move(work));
    pending_ += 1;
    changed_.notify_all();
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
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  int pending_ = 0;
  std::thread thread_;
};

/// Of several streams: what waits for it goes on when the stream that it was last given to comes to it.
class HostEvent {
 public:
  /// The number of a new record, which the stream says when it comes to it.
  int Record() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ++recorded_;
  }
  void Reach(int number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    reached_ = number;
    changed_.notify_all();
  }
  int last() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return recorded_;
  }
  /// Nothing has recorded it, or its last record was come to.
  bool Idle() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return reached_ == recorded_;
  }
  void Wait(int number) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return reached_ >= number; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int recorded_ = 0, reached_ = 0;
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_CUDA_TESTING_HOST_STREAM_H_
