#include "runtime/host/laned_executor.h"

#include <utility>

namespace coconet {

LanedExecutor::LanedExecutor(Parts parts, LaneThread* thread)
    : Executor(std::move(parts)), thread_(thread), order_(OrderOf(parts_.plan)) {
  for (int lane = 0; lane < kLanes; ++lane) {
    for (unsigned i = 0; i < order_.of[lane].size(); ++i) {
      if (std::holds_alternative<CollectiveStep>(parts_.plan.steps[order_.of[lane][i].step]))
        collectives_[lane] = i + 1;
    }
  }
}

absl::Status LanedExecutor::Run() {
  if (!first_error_.ok()) return first_error_;
  for (Progress& progress : progress_) progress.done.store(0, std::memory_order_relaxed);
  thread_->Start([](void* self) { static_cast<LanedExecutor*>(self)->RunLane(1); }, this);
  RunLane(0);
  thread_->Finish(parts_.terms.spins);
  return first_error_;
}

void LanedExecutor::RunLane(int lane) {
  const std::vector<LaneOrder::Entry>& order = order_.of[lane];
  const unsigned steps = static_cast<unsigned>(order.size());
  for (unsigned i = 0; i < steps; ++i) {
    SleepUntilReached(progress_[1 - lane].done, order[i].awaits, parts_.terms.spins);
    if (failed_.load(std::memory_order_acquire)) break;
    if (const absl::Status status = Execute(order[i].step); !status.ok()) {
      Fail(lane, order[i].step, status);
      break;
    }
    Publish(progress_[lane].done, i + 1);
  }
  // Releases the other lane from its waits for this lane's remaining steps.
  if (failed_.load(std::memory_order_acquire)) Publish(progress_[lane].done, steps);
}

void LanedExecutor::Fail(int lane, int step, const absl::Status& why) {
  if (failed_.exchange(true)) return;
  first_error_ = why;
  StopOthers(step);
  // The other lane's waits in kernels see the Control; its library collectives see only the board.
  if (MayBeInACollective(1 - lane)) parts_.board->Leave(parts_.rank, why);
}

bool LanedExecutor::MayBeInACollective(int lane) const {
  return progress_[lane].done.load(std::memory_order_acquire) < collectives_[lane];
}

}  // namespace coconet
