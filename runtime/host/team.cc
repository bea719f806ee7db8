#include "runtime/host/team.h"

#include <limits>

#include "coconet/base/status.h"
#include "runtime/node/cpu.h"

namespace coconet {

Team::~Team() {
  for (const std::unique_ptr<Worker>& worker : workers_) {
    worker->kernel = nullptr;
    worker->job.fetch_add(1, std::memory_order_release);
    worker->job.notify_one();
    worker->thread.join();
  }
}

void Team::Grow(int blocks) {
  while (static_cast<int>(workers_.size()) + 1 < blocks) {
    const int block = static_cast<int>(workers_.size()) + 1;
    workers_.push_back(std::make_unique<Worker>());
    Worker& worker = *workers_.back();
    const int core = cores_.empty() ? -1 : cores_[block % cores_.size()];
    worker.thread = std::thread([&worker, block, core] {
      if (core >= 0) RunOn({core});
      Work(worker, block);
    });
  }
}

void Team::Run(HostKernel kernel, const void* params, int blocks, const WaitTerms& terms) {
  CC_CHECK(blocks - 1 <= static_cast<int>(workers_.size()));
  for (int i = 0; i + 1 < blocks; ++i) {
    Worker& worker = *workers_[i];
    worker.kernel = kernel;
    worker.params = params;
    worker.blocks = blocks;
    worker.terms = terms;
    worker.job.fetch_add(1, std::memory_order_release);
    worker.job.notify_one();
  }
  kernel(params, 0, blocks);
  // No deadline: the waits inside a kernel have one.
  const WaitTerms forever{terms.spins, std::numeric_limits<int64_t>::max()};
  for (int i = 0; i + 1 < blocks; ++i) {
    const Worker& worker = *workers_[i];
    const unsigned job = worker.job.load(std::memory_order_relaxed);
    WaitUntil(
        forever, [&] { return worker.done.load(std::memory_order_acquire) == job; },
        [] { return false; });
  }
}

void Team::Work(Worker& worker, int block) {
  WaitTerms terms;
  for (unsigned job = 1;; ++job) {
    Pauser pauser(terms);
    while (worker.job.load(std::memory_order_acquire) != job) {
      const Pauser::Phase phase = pauser.Next();
      if (phase == Pauser::Phase::kSpin || phase == Pauser::Phase::kYield) {
        pauser.Pause(phase);
      } else {
        worker.job.wait(
            job - 1,
            std::memory_order_acquire);  // asleep until there is work: teams may idle for hours
      }
    }
    if (worker.kernel == nullptr) return;
    worker.kernel(worker.params, block, worker.blocks);
    terms = worker.terms;
    worker.done.store(job, std::memory_order_release);
  }
}

}  // namespace coconet
