#include "runtime/cuda/driver/stream_watch.h"

#include "absl/strings/str_cat.h"
#include "runtime/control/board.h"

namespace coconet {

void StreamWatch::BeginRun() {
  if (all_.empty()) return;
  const size_t in_flight = (all_[0].ended.size() - 1) * all_.size();
  for (int lane = 0; lane < kLanes; ++lane) {
    if (first_[lane] + in_flight >= enqueued_) continue;
    first_[lane] = enqueued_ - in_flight;
    seen_[lane] = {};
  }
}

const StreamWatch::Watched* StreamWatch::Current(int lane) {
  size_t& first = first_[lane];
  while (first < enqueued_ && (At(first).lane != lane || Done(At(first).ended[SlotOf(first)]))) {
    ++first;
    seen_[lane] = {};
  }
  return first < enqueued_ && Done(At(first).begun[SlotOf(first)]) ? &At(first) : nullptr;
}

absl::Status StreamWatch::Look() {
  for (int lane = 0; lane < kLanes; ++lane) {
    if (Current(lane) == nullptr) continue;
    const Clock::time_point now = Clock::now();
    if (seen_[lane] == Clock::time_point()) seen_[lane] = now;
    if (now - seen_[lane] < timeout_) continue;
    return absl::DeadlineExceededError(absl::StrCat(
        "waited ", timeout_.count(), " s for the other ranks, one of which ", kDeadlineAdvice));
  }
  return absl::OkStatus();
}

int StreamWatch::UnderWay() {
  for (int lane = 0; lane < kLanes; ++lane) {
    if (const Watched* current = Current(lane); current != nullptr) return current->step;
  }
  return -1;
}

}  // namespace coconet
