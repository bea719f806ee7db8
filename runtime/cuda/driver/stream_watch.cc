#include "runtime/cuda/driver/stream_watch.h"

#include "absl/strings/str_cat.h"
#include "runtime/node/board.h"

namespace coconet {

void StreamWatch::Reset() {
  enqueued_ = 0;
  first_ = {};
  seen_ = {};
}

const StreamWatch::Watched* StreamWatch::Current(int lane) {
  size_t& first = first_[lane];
  while (first < enqueued_ && (all_[first].lane != lane || Done(all_[first].ended))) {
    ++first;
    seen_[lane] = {};
  }
  return first < enqueued_ && Done(all_[first].begun) ? &all_[first] : nullptr;
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
