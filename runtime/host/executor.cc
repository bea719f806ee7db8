#include "runtime/host/executor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr uint64_t kMostSteps = 1 << 20;  // of a plan, for numbers that tell steps of plans apart

}  // namespace

Executor::Executor(Parts parts) : parts_(std::move(parts)), control_(ControlOf(parts_.rank)) {
  Open(*control_, parts_.rank, parts_.node, parts_.plan.ranks, *parts_.board, parts_.kernel_terms,
       parts_.near.data());
  JoinSteps();
}

void Executor::JoinSteps() {
  // A plan whose names did not resolve has fewer calls, and never runs.
  if (parts_.calls.size() != parts_.plan.steps.size()) return;
  all_to_alls_.reserve(parts_.calls.size());  // spans of it stay valid
  all_reduces_.reserve(parts_.calls.size());
  const LaneOrder order = OrderOf(parts_.plan);
  for (const std::vector<LaneOrder::Entry>& lane : order.of) {
    for (size_t i = 0; i < lane.size(); ++i) {
      const size_t steps = StepsTogether(parts_.plan, lane, i);
      if (steps == 0) continue;
      auto& first = std::get<CollectiveCall>(parts_.calls[lane[i].step]);
      const bool reduces = first.step.kind == CollectiveStep::Kind::kAllReduce;
      const size_t begin = reduces ? all_reduces_.size() : all_to_alls_.size();
      for (size_t k = i; k < i + steps; ++k) {
        const auto& call = std::get<CollectiveCall>(parts_.calls[lane[k].step]);
        if (reduces) {
          all_reduces_.push_back({call.in, call.out, call.step.count});
        } else {
          all_to_alls_.push_back({&call.step, call.in, call.out, call.leaving, call.arriving});
        }
      }
      if (reduces) {
        first.all_reduces = absl::MakeSpan(all_reduces_).subspan(begin, steps);
      } else {
        first.all_to_alls = absl::MakeSpan(all_to_alls_).subspan(begin, steps);
      }
      i += steps - 1;
    }
  }
}

int Executor::StepsAt(int step) const {
  const auto* call = std::get_if<CollectiveCall>(&parts_.calls[step]);
  return call == nullptr ? 1 : std::max(1, static_cast<int>(call->together()));
}

absl::Status Executor::Run() {
  if (!first_error_.ok()) return first_error_;
  const int steps = static_cast<int>(parts_.calls.size());
  for (int step = 0; step < steps; step += StepsAt(step)) {
    first_error_ = Execute(step);
    if (first_error_.ok()) continue;
    StopOthers(step);
    return first_error_;
  }
  return absl::OkStatus();
}

void Executor::DelayWaits(int waits, int64_t ns) {
  control_->delay_ns = ns;
  control_->delayed_waits.store(waits, std::memory_order_relaxed);
}

absl::Status Executor::CheckSyncGuards() const {
  return coconet::CheckSyncGuards(parts_.plan, *parts_.sync);
}

absl::StatusOr<std::vector<StepSpan>> Executor::Trace() {
  RETURN_IF_ERROR(Wait());
  for (const Step& step : parts_.plan.steps)
    spans_.push_back({std::visit([](const auto& s) { return s.label; }, step), LaneOf(step)});
  trace_begun_ = std::chrono::steady_clock::now();
  const absl::Status status = Run();
  std::vector<StepSpan> spans = std::move(spans_);
  spans_.clear();
  RETURN_IF_ERROR(status);
  return spans;
}

absl::Status Executor::ExecuteTimed(int step) {
  const auto us = [this] {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() -
                                                     trace_begun_)
        .count();
  };
  const double begin_us = us();
  const absl::Status status =
      std::visit([&](const auto& call) { return Execute(step, call); }, parts_.calls[step]);
  spans_[step].begin_us = begin_us;
  spans_[step].end_us = us();
  return status;
}

absl::Status Executor::Execute(int step, const KernelCall& call) const {
  if (call.blocks == 1) {
    call.kernel(call.params, 0, 1);
  } else {
    call.team->Run(call.kernel, call.params, call.blocks, parts_.terms);
  }
  if (!call.waits || __atomic_load_n(&control_->abort, __ATOMIC_ACQUIRE) == 0)
    return absl::OkStatus();
  return GaveUp(step);
}

absl::Status Executor::Execute(int step, const CollectiveCall& call) const {
  call.library->Announce(static_cast<uint64_t>(parts_.sync->number + 1) * kMostSteps + step);
  const absl::Status status =
      !call.all_to_alls.empty() ? call.library->AllToAlls(call.all_to_alls)
      : call.all_reduces.size() > 1
          ? call.library->AllReduces(call.all_reduces, call.step.dtype, call.step.reduce)
          : call.library->Run(call.step, call.in, call.out);
  return status.ok() ? status : WithContext(status, StepName(parts_.plan, step, parts_.rank));
}

absl::Status Executor::Execute(int step, const GemmCall& call) const {
  call.team->Run(Gemm::Run, call.gemm.get(), call.threads, parts_.terms);
  if (!call.gemm->failed()) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(StepName(parts_.plan, step, parts_.rank),
                   ": oneDNN failed; the machine may be out of memory"));
}

absl::Status Executor::GaveUp(int step) const {
  const int first = static_cast<int>(__atomic_load_n(&control_->abort, __ATOMIC_ACQUIRE)) - 1;
  const absl::Status why = WhyGaveUp(*ControlOf(first), first, *parts_.board, parts_.plan);
  if (first == parts_.rank) return why;
  return absl::AbortedError(absl::StrCat(StepName(parts_.plan, step, parts_.rank), ": rank ", first,
                                         " gave up: ", why.message()));
}

void Executor::StopOthers(int step) {
  GiveUp(*control_, step);
  const unsigned first = __atomic_load_n(&control_->abort, __ATOMIC_ACQUIRE);
  for (int peer = 0; peer < parts_.stopping.size; ++peer) {
    HostControl* theirs = ControlOf(parts_.stopping.Rank(peer));
    if (theirs == nullptr) continue;  // no kernel of the plan waits for peers
    unsigned running = 0;
    __atomic_compare_exchange_n(&theirs->abort, &running, first, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_ACQUIRE);
  }
}

LanedExecutor::LanedExecutor(Parts parts, LaneThread* thread)
    : Executor(std::move(parts)), thread_(thread), order_(OrderOf(parts_.plan)) {
  for (int lane = 0; lane < kLanes; ++lane) {
    for (unsigned i = 0; i < order_.of[lane].size(); ++i) {
      if (std::holds_alternative<CollectiveStep>(parts_.plan.steps[order_.of[lane][i].step]))
        collectives_[lane] = i + 1;
    }
  }
}

LanedExecutor::~LanedExecutor() { thread_->Finish(parts_.terms.spins); }

absl::Status LanedExecutor::Run() {
  RETURN_IF_ERROR(Advance());
  return Wait();
}

absl::Status LanedExecutor::Advance() {
  if (failed_.load(std::memory_order_acquire)) return Wait();
  const unsigned runs = begun_.fetch_add(1, std::memory_order_release) + 1;
  thread_->Start([](void* self) { static_cast<LanedExecutor*>(self)->RunLane(1); }, this);
  RunLane(0);
  const auto outlasting = static_cast<unsigned>(parts_.plan.outlasting.size());
  SleepUntilReached(progress_[1].done, runs * StepsOn(1) - outlasting, parts_.terms.spins);
  return failed_.load(std::memory_order_acquire) ? Wait() : absl::OkStatus();
}

absl::Status LanedExecutor::Wait() {
  thread_->Finish(parts_.terms.spins);
  return first_error_;
}

void LanedExecutor::RunLane(int lane) {
  const std::vector<LaneOrder::Entry>& order = order_.of[lane];
  Progress& mine = progress_[lane];
  // Steps that lanes have done before this run.
  const unsigned before = mine.runs * StepsOn(lane), theirs = mine.runs * StepsOn(1 - lane);
  ++mine.runs;
  const auto failed = [&] { return failed_.load(std::memory_order_acquire); };
  for (unsigned i = 0; i < StepsOn(lane) && !failed(); i += StepsAt(order[i].step)) {
    const unsigned pending = order[i].awaits > 0 ? 0 : order[i].pending;
    SleepUntilReached(progress_[1 - lane].done, theirs + order[i].awaits - pending,
                      parts_.terms.spins);
    if (failed()) break;
    if (const absl::Status status = Execute(order[i].step); !status.ok()) {
      Fail(lane, order[i].step, status);
      break;
    }
    Publish(mine.done, before + i + StepsAt(order[i].step));
  }
  // Releases the other lane from its waits for this lane's remaining steps.
  if (failed()) Publish(mine.done, before + StepsOn(lane));
}

void LanedExecutor::Fail(int lane, int step, const absl::Status& why) {
  if (failed_.exchange(true)) return;
  first_error_ = why;
  StopOthers(step);
  // The other lane's waits in kernels see the Control; its library collectives see only the board.
  if (MayBeInACollective(1 - lane)) parts_.board->Leave(parts_.rank, why);
}

bool LanedExecutor::MayBeInACollective(int lane) const {
  const unsigned runs = begun_.load(std::memory_order_acquire);
  return !Reached(progress_[lane].done.load(std::memory_order_acquire),
                  (runs - 1) * StepsOn(lane) + collectives_[lane]);
}

}  // namespace coconet
