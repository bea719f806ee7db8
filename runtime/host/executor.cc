#include "runtime/host/executor.h"

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
Executor::Executor(Parts parts) : parts_(std::move(parts)), control_(ControlOf(parts_.rank)) {
  Open(*control_, parts_.rank, parts_.node, parts_.plan.ranks, *parts_.board, parts_.kernel_terms,
       parts_.near.data());
}

absl::Status Executor::Run() {
  if (!first_error_.ok()) return first_error_;
  const int steps = static_cast<int>(parts_.calls.size());
  for (int step = 0; step < steps; ++step) {
    first_error_ = Execute(step);
    if (first_error_.ok()) continue;
    StopOthers(step);
    return first_error_;
  }
  return absl::OkStatus();
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
  const absl::Status status = call.library->Run(call.step, call.in, call.out);
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

}  // namespace coconet
