#include "bench/optimizers/memory_limit.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/baselines/array.h"
#include "bench/baselines/kernels.h"
#include "coconet/base/slices.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

/// Elements in memory per stream: many times the caches' size. Longer streams repeat them.
constexpr int64_t kMostPresent = int64_t{8} << 20;

bool GoesTwice(const Cell& cell) { return cell.workload == "lamb"; }

/// The streams of a rank.
struct Streams {
  LimitStreams of_kernel;
  int64_t elements = 0;  // per stream, of which `present` are in memory
  int64_t present = 0;
  std::vector<Array> arrays;

  template <class T>
  absl::Status Add(int64_t bytes_each, T*& stream) {
    ASSIGN_OR_RETURN(arrays.emplace_back(), Array::Allocate(present * bytes_each));
    stream = arrays.back().as<T>();
    return absl::OkStatus();
  }
  absl::Status Allocate() {
    LimitStreams& s = of_kernel;
    const int64_t narrow = s.mixed ? 2 : 4;
    const int weights = s.mixed ? s.ranks : s.ranks - 1;
    for (int r = 0; r < s.ranks; ++r) RETURN_IF_ERROR(Add(narrow, s.gradients[r]));
    for (int r = 0; r < weights; ++r) RETURN_IF_ERROR(Add(narrow, s.weights[r]));
    for (int i = 0; i < LimitStreams::kStates; ++i) {
      RETURN_IF_ERROR(Add(4, s.states[i]));
      if (!s.twice) RETURN_IF_ERROR(Add(4, s.fresh[i]));
    }
    return absl::OkStatus();
  }
};

}  // namespace

absl::StatusOr<std::vector<Contender>> MemoryLimit(const Cell& cell, int ranks) {
  if (ranks != 1 && ranks != 2 && ranks != 4 && ranks != 8) {
    return absl::InvalidArgumentError(
        absl::StrCat("memory limit: want 1, 2, 4 or 8 ranks, have ", ranks));
  }
  if (GoesTwice(cell) && cell.dtype != DType::kF32) {
    return absl::InvalidArgumentError(absl::StrCat("memory limit of ", Text(cell), ": want f32"));
  }
  const auto streams = std::make_shared<Streams>();
  streams->elements = SliceExtent(cell.n, ranks).per;
  streams->present = std::min(streams->elements, kMostPresent);
  streams->of_kernel.ranks = ranks;
  streams->of_kernel.twice = GoesTwice(cell);
  streams->of_kernel.mixed = cell.dtype != DType::kF32;
  RETURN_IF_ERROR(streams->Allocate());
  const auto limit = [&](Kernels::Limit kernel, std::string form) {
    const auto run = [streams, kernel](int64_t steps) {
      for (int64_t left = steps * streams->elements; left > 0; left -= streams->present)
        kernel(streams->of_kernel, std::min(left, streams->present));
      return absl::OkStatus();
    };
    return Contender{"limit", run, std::move(form)};
  };
  const Kernels& kernels = BestKernels();
  std::vector<Contender> all = {
      limit(kernels.limit_plain, "plain stores"),
      limit(kernels.limit_streaming_weights, "streaming stores of the weights"),
      limit(kernels.limit_streaming, "streaming stores")};
  if (!GoesTwice(cell)) all.push_back(limit(kernels.limit_fresh, "streaming stores elsewhere"));
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
