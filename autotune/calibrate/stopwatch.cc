#include "autotune/calibrate/stopwatch.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <random>
#include <utility>

#include "autotune/measure/statistics.h"
#include "autotune/runner/machine_load.h"
#include "autotune/store/wire.h"
#include "coconet/base/dtype.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

using Clock = std::chrono::steady_clock;

double MicrosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

/// Elements that differ; the next ones repeat them.
constexpr int64_t kDifferent = 1 << 16;

void FillElements(const Buffer& buffer, int64_t elements, int64_t rows, char* to) {
  std::mt19937_64 random(1);
  const auto size = static_cast<int64_t>(SizeOf(buffer.dtype));
  const int64_t drawn = std::min(elements, kDifferent);
  for (int64_t i = 0; i < drawn; ++i) {
    const uint64_t word = random();
    const double value = IsFloat(buffer.dtype) ? 0.5 + static_cast<double>(word >> 41) * 0x1p-24
                                               : static_cast<double>(word % rows);
    StoreElement(buffer.dtype, to, i, value);
  }
  for (int64_t done = drawn; done < elements; done += std::min(done, elements - done))
    std::memcpy(to + done * size, to, std::min(done, elements - done) * size);
}

/// The time of the slowest rank, and how long a rank was ready to run and had no core meanwhile.
struct Sample {
  double us = 0, lost_s = 0;
};

/// The median of the half of the samples that other programs disturbed least.
double MedianOfUndisturbed(std::vector<Sample> samples) {
  std::stable_sort(samples.begin(), samples.end(),
                   [](const Sample& a, const Sample& b) { return a.lost_s < b.lost_s; });
  std::vector<double> undisturbed;
  for (size_t i = 0; i < (samples.size() + 1) / 2; ++i) undisturbed.push_back(samples[i].us);
  return Median(std::move(undisturbed));
}

}  // namespace

absl::StatusOr<Stopwatch> Stopwatch::Create(Rank& rank, std::vector<TimedPlan> plans) {
  Arena::Needs needs;
  for (const TimedPlan& timed : plans) {
    Arena::Include(*timed.plan, Temporaries::kShared, needs);
  }
  ASSIGN_OR_RETURN(Arena arena, Arena::Create(rank, needs));
  return Stopwatch(rank, std::move(plans), std::move(arena));
}

absl::Status Stopwatch::Fill(const TimedPlan& timed, absl::Span<Memory* const> buffers) const {
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& buffer = timed.plan->buffers[i];
    if (buffers[i] == nullptr) continue;
    ASSIGN_OR_RETURN(HostView view, HostView::Of(*buffers[i], BytesOn(*rank_, buffer)));
    FillElements(buffer, buffer.On(rank_->stage_rank()), timed.rows,
                 static_cast<char*>(view.data()));
    RETURN_IF_ERROR(view.Store());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<BoundPlan>> Stopwatch::Bind(
    const TimedPlan& timed, std::vector<std::shared_ptr<Memory>>& memory) {
  memory = arena_.Place(*rank_, *timed.plan, Temporaries::kShared);
  const std::vector<Memory*> buffers = Pointers(memory);
  RETURN_IF_ERROR(rank_->exchange().Agree(Fill(timed, buffers)));
  return rank_->Bind(*timed.plan, *timed.module, buffers, GetEnv().timeout_s);
}

absl::StatusOr<std::vector<double>> Stopwatch::TimeSteps(size_t plan, int samples) {
  std::vector<std::shared_ptr<Memory>> memory;
  ASSIGN_OR_RETURN(const std::unique_ptr<BoundPlan> bound, Bind(plans_[plan], memory));
  const size_t steps = plans_[plan].plan->steps.size();
  absl::Status status = bound->Run();
  Packer mine;
  for (int sample = 0; sample < samples; ++sample) {
    RETURN_IF_ERROR(rank_->exchange().Barrier());
    absl::StatusOr<std::vector<StepSpan>> spans = bound->Trace();
    status.Update(spans.status());
    if (!spans.ok()) spans = std::vector<StepSpan>(steps);
    for (const StepSpan& span : *spans) mine.Real(span.end_us - span.begin_us);
  }
  RETURN_IF_ERROR(rank_->exchange().Agree(status));
  ASSIGN_OR_RETURN(const std::vector<std::string> all, rank_->exchange().AllGather(mine.bytes()));
  std::vector<std::vector<double>> us(
      steps, std::vector<double>(samples, std::numeric_limits<double>::infinity()));
  for (const std::string& theirs : all) {
    Unpacker in(theirs);
    for (int sample = 0; sample < samples; ++sample) {
      for (size_t step = 0; step < steps; ++step)
        us[step][sample] = std::min(us[step][sample], in.Real());
    }
    RETURN_IF_ERROR(in.Done());
  }
  std::vector<double> medians;
  for (std::vector<double>& of_step : us) medians.push_back(Median(std::move(of_step)));
  return medians;
}

absl::StatusOr<double> Stopwatch::Time(size_t plan, const Terms& terms) {
  std::vector<std::shared_ptr<Memory>> memory;
  ASSIGN_OR_RETURN(const std::unique_ptr<BoundPlan> bound, Bind(plans_[plan], memory));
  absl::Status status;
  const auto run = [&](int64_t steps) {
    const auto start = Clock::now();
    for (int64_t i = 0; i < steps && status.ok(); ++i) status = bound->Run();
    return MicrosecondsSince(start);
  };
  run(1);
  ASSIGN_OR_RETURN(const double once, rank_->exchange().Max(run(2) / 2));
  const int64_t steps =
      std::clamp<int64_t>(static_cast<int64_t>(terms.sample_us / std::max(once, 0.01)), 1, 10000);
  Packer mine;
  for (int sample = 0; sample < terms.samples; ++sample) {
    RETURN_IF_ERROR(rank_->exchange().Barrier());
    const double lost_s = SecondsWithoutCore();
    mine.Real(run(steps) / static_cast<double>(steps)).Real(SecondsWithoutCore() - lost_s);
  }
  RETURN_IF_ERROR(rank_->exchange().Agree(status));
  ASSIGN_OR_RETURN(const std::vector<std::string> all, rank_->exchange().AllGather(mine.bytes()));
  std::vector<Sample> samples(terms.samples);
  for (const std::string& theirs : all) {
    Unpacker in(theirs);
    for (Sample& sample : samples) {
      sample.us = std::max(sample.us, in.Real());
      sample.lost_s = std::max(sample.lost_s, in.Real());
    }
    RETURN_IF_ERROR(in.Done());
  }
  return MedianOfUndisturbed(std::move(samples));
}

}  // namespace coconet
