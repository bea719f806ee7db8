#include "runtime/control/kernel_control.h"

#include <new>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// Lets one of the threads that give up concurrently write the failure, then raises `abort`.
void Record(HostControl& control, WaitEnd end, const WaitFailure& failure) {
  if (control.claimed.exchange(true)) return;
  control.failure = failure;
  control.end = end;
  control.suspect =
      end == WaitEnd::kDeadline ? control.board->Suspect(control.rank, failure.peer) : failure.peer;
  unsigned running = 0;
  __atomic_compare_exchange_n(&control.abort, &running, 1 + control.rank, false, __ATOMIC_ACQ_REL,
                              __ATOMIC_ACQUIRE);
}

/// Control::wait. The caller has already done the spins of the policy.
bool WaitInKernel(Control* kernels, const unsigned* flag, unsigned expected, int kernels_peer,
                  int step, int slot) {
  HostControl& control = static_cast<HostControl&>(*kernels);
  const int peer = WorldRank(control.node, control.rank, control.stage_size, kernels_peer);
  const auto found = [&] { return __atomic_load_n(flag, __ATOMIC_ACQUIRE); };
  LongWait wait(*control.board, control.rank, static_cast<int64_t>(control.timeout_ns));
  const auto in_vain = [&] {
    return __atomic_load_n(&control.abort, __ATOMIC_ACQUIRE) != 0 || wait.InVain(peer);
  };
  const WaitEnd end = WaitUntil(
      {.spins = 0, .timeout_ns = static_cast<int64_t>(control.timeout_ns)},
      [&] { return Reached(found(), expected); }, in_vain);
  if (end == WaitEnd::kReady) {
    control.board->NoteWait(control.rank, -1);
    if (control.delayed_waits.load(std::memory_order_relaxed) > 0 &&
        control.delayed_waits.fetch_sub(1, std::memory_order_relaxed) > 0) {
      absl::SleepFor(absl::Nanoseconds(control.delay_ns));
    }
    return true;
  }
  Record(control, end,
         {.peer = peer, .step = step, .slot = slot, .expected = expected, .found = found()});
  return false;
}

const KernelStep* KernelAt(const Plan& plan, int step) {
  if (step < 0 || step >= static_cast<int>(plan.steps.size())) return nullptr;
  return std::get_if<KernelStep>(&plan.steps[step]);
}

/// The flag's name by FlagSlots: "enter[0]".
std::string FlagName(const Plan& plan, const WaitFailure& failure) {
  if (failure.slot == FlagSlots::kInData) return "in data";
  if (failure.slot >= FlagSlots::Tile(0) && failure.slot < FlagSlots::Tile(FlagSlots::kMostTiles))
    return absl::StrCat("tile[", failure.slot - FlagSlots::Tile(0), "]");
  const KernelStep* kernel = KernelAt(plan, failure.step);
  if (kernel == nullptr) return absl::StrCat("slot ", failure.slot);
  const int blocks = kernel->blocks;
  if (failure.slot < 0) {
    const int slot = ~failure.slot - FlagSlots::Round(blocks, 0, 0);
    return absl::StrCat("round ", slot / blocks, "[", slot % blocks, "]");
  }
  if (failure.slot < blocks) return absl::StrCat("enter[", failure.slot, "]");
  if (failure.slot < 2 * blocks) return absl::StrCat("done[", failure.slot - blocks, "]");
  return absl::StrCat("chunk[", failure.slot - 2 * blocks, "]");
}

}  // namespace

void Open(HostControl& control, int rank, const Members& node, int stage_size, Board& board,
          const WaitTerms& terms, const unsigned char* near) {
  new (&control) HostControl();
  control.spins = terms.spins;
  control.near = near;
  control.timeout_ns = static_cast<unsigned long long>(terms.timeout_ns);
  control.wait = WaitInKernel;
  control.rank = rank;
  control.node = node;
  control.stage_size = stage_size;
  control.board = &board;
}

int WorldRank(const Members& node, int rank, int stage_size, int peer) {
  if (peer < node.size) return node.Rank(peer);
  return rank + (peer == Beside::Number(node.size, true) ? stage_size : -stage_size);
}

void GiveUp(HostControl& control, int step) {
  Record(control, WaitEnd::kReady,
         {.peer = -1, .step = step, .slot = -1, .expected = 0, .found = 0});
}

absl::Status WhyGaveUp(const HostControl& control, int rank, const Board& board, const Plan& plan) {
  const WaitFailure& failure = control.failure;
  const std::string where = StepName(plan, failure.step, rank);
  const absl::Status left = board.Left();
  if (AreCallingDifferently(left)) return left;
  if (control.end == WaitEnd::kReady)
    return WithContext(left.ok() ? absl::AbortedError("failed") : left, where);
  if (failure.slot == FlagSlots::kBulkLoad)
    return absl::DeadlineExceededError(
        absl::StrCat(where, ": waited ", static_cast<double>(control.timeout_ns) * 1e-9,
                     " s for a bulk copy of the rank's own memory; its GPU has probably failed"));
  const std::string flag = absl::StrCat(", flag ", FlagName(plan, failure), ": want epoch ",
                                        failure.expected, ", found ", failure.found);
  if (control.end == WaitEnd::kInVain) {
    return absl::AbortedError(absl::StrCat(where, ": waited for rank ", failure.peer, flag, "; ",
                                           board.Gone(failure.peer).message(),
                                           board.CallsOf(rank, failure.peer)));
  }
  return absl::DeadlineExceededError(absl::StrCat(
      where, ": ", WaitedFor(static_cast<int64_t>(control.timeout_ns), failure.peer), flag,
      MayBeDead(failure.peer, control.suspect), board.CallsOf(rank, control.suspect)));
}

std::string StepName(const Plan& plan, int step, int rank) {
  std::string label;
  if (step >= 0 && step < static_cast<int>(plan.steps.size())) {
    label = std::visit([](const auto& s) { return absl::StrCat(" \"", s.label, "\""); },
                       plan.steps[step]);
  }
  return absl::StrCat("step ", step, label, " on rank ", rank);
}

}  // namespace coconet
