#include "bench/optimizers/memory_limit.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "coconet/base/slices.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

/// Elements in memory per stream: many times the caches' size. Longer streams repeat them.
constexpr int64_t kMostPresent = int64_t{8} << 20;

bool GoesTwice(const Cell& cell) { return cell.workload == "lamb"; }

}  // namespace

absl::StatusOr<std::unique_ptr<MemoryLimit>> MemoryLimit::Make(const Cell& cell, int ranks) {
  if (ranks != 1 && ranks != 2 && ranks != 4 && ranks != 8) {
    return absl::InvalidArgumentError(
        absl::StrCat("memory limit: want 1, 2, 4 or 8 ranks, have ", ranks));
  }
  if (GoesTwice(cell) && cell.dtype != DType::kF32) {
    return absl::InvalidArgumentError(absl::StrCat("memory limit of ", Text(cell), ": want f32"));
  }
  auto limit = std::make_unique<MemoryLimit>();
  limit->elements_ = SliceExtent(cell.n, ranks).per;
  limit->present_ = std::min(limit->elements_, kMostPresent);
  LimitStreams& s = limit->streams_;
  s.ranks = ranks;
  s.twice = GoesTwice(cell);
  s.mixed = cell.dtype != DType::kF32;
  const auto stream = [&](int64_t bytes_each) -> absl::StatusOr<void*> {
    ASSIGN_OR_RETURN(Array array, Array::Allocate(limit->present_ * bytes_each));
    limit->arrays_.push_back(std::move(array));
    return limit->arrays_.back().as<void>();
  };
  const int64_t narrow = s.mixed ? 2 : 4;
  const int weights = s.mixed ? ranks : ranks - 1;
  for (int r = 0; r < ranks; ++r) {
    ASSIGN_OR_RETURN(s.gradients[r], stream(narrow));
  }
  for (int r = 0; r < weights; ++r) {
    ASSIGN_OR_RETURN(s.weights[r], stream(narrow));
  }
  for (int i = 0; i < LimitStreams::kStates; ++i) {
    ASSIGN_OR_RETURN(void* const state, stream(4));
    s.states[i] = static_cast<float*>(state);
    if (s.twice) continue;
    ASSIGN_OR_RETURN(void* const fresh, stream(4));
    s.fresh[i] = static_cast<float*>(fresh);
  }
  return limit;
}

std::vector<Contender> MemoryLimit::contenders() const {
  const auto loop = [this](Kernels::Limit kernel) {
    return [this, kernel](int64_t steps) {
      for (int64_t left = steps * elements_; left > 0; left -= present_)
        kernel(streams_, std::min(left, present_));
      return absl::OkStatus();
    };
  };
  const Kernels& kernels = BestKernels();
  std::vector<Contender> all = {
      {"plain stores", loop(kernels.limit_plain)},
      {"streaming stores of the weights", loop(kernels.limit_streaming_weights)},
      {"streaming stores", loop(kernels.limit_streaming)}};
  if (!streams_.twice) all.push_back({"streaming stores elsewhere", loop(kernels.limit_fresh)});
  return all;
}

int64_t StepBytes(const Cell& cell, int ranks) {
  const int64_t each =
      static_cast<int64_t>(SizeOf(cell.dtype)) * ranks;        // gradients; weights are as many
  const int64_t in_place = cell.dtype == DType::kF32 ? 4 : 0;  // f32 weights are their own master
  const int64_t again = GoesTwice(cell) ? LimitStreams::kStates * 4 : 0;
  return cell.n / ranks * (2 * each + 2 * LimitStreams::kStates * 4 - in_place + again);
}

}  // namespace coconet::bench
