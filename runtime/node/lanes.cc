#include "runtime/node/lanes.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/arguments.h"
#include "runtime/node/cpu.h"
#include "runtime/node/wait.h"

namespace coconet {
namespace {

/// Whether the step uses a buffer that the host does between runs.
bool UsesInputsOrOutputs(const Plan& plan, Step step) {
  bool uses = false;
  ForBuffers(step, [&](int& buffer) {
    const bool is_known = buffer < std::ssize(plan.buffers);
    const BufferRole role = is_known ? plan.buffers[buffer].role : BufferRole::kInput;
    uses = uses || role == BufferRole::kInput || role == BufferRole::kOutput;
  });
  return uses;
}

absl::Status CheckOutlasting(const Plan& plan) {
  std::vector<int> of_lane;  // the steps of lane 1
  std::vector<bool> awaited(plan.steps.size());
  for (int i = 0; i < std::ssize(plan.steps); ++i) {
    if (LaneOf(plan.steps[i]) == 1) of_lane.push_back(i);
    for (int before : AfterOf(plan.steps[i]))
      awaited[before] = awaited[before] || LaneOf(plan.steps[i]) != 1;
  }
  const ptrdiff_t shorter = std::ssize(of_lane) - std::ssize(plan.outlasting);
  for (ptrdiff_t i = 0; i < std::ssize(plan.outlasting); ++i) {
    const Outlasting& o = plan.outlasting[i];
    const bool is_last = shorter >= 0 && o.step == of_lane[shorter + i];
    if (!is_last || awaited[o.step] || o.until < -1 || o.until >= std::ssize(plan.steps) ||
        UsesInputsOrOutputs(plan, plan.steps[o.step])) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Bind: plan: want outlasting steps that are lane 1's last ones, use no inputs "
          "and outputs, and for which no step waits, have step ",
          o.step, " until ", o.until));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckLanes(const Plan& plan) {
  for (int i = 0; i < static_cast<int>(plan.steps.size()); ++i) {
    const Step& step = plan.steps[i];
    const auto bad = [&](absl::string_view want, int have) {
      const std::string& label =
          std::visit([](const auto& s) -> const std::string& { return s.label; }, step);
      return absl::InvalidArgumentError(
          absl::StrCat("Bind: ", label, ": want ", want, ", have ", have));
    };
    if (LaneOf(step) < 0 || LaneOf(step) >= kLanes) return bad("lane 0 or 1", LaneOf(step));
    for (int before : AfterOf(step)) {
      if (before < 0 || before >= i)
        return bad(absl::StrCat("steps before ", i, " in `after`"), before);
    }
    const auto* kernel = std::get_if<KernelStep>(&step);
    if (kernel == nullptr || kernel->awaits == -1) continue;
    const KernelStep* awaited = kernel->awaits < i ? AwaitedBy(plan, *kernel) : nullptr;
    if (awaited == nullptr || awaited->lane == kernel->lane)
      return bad("an earlier kernel of the other lane in `awaits`", kernel->awaits);
  }
  return CheckOutlasting(plan);
}

LaneOrder OrderOf(const Plan& plan) {
  LaneOrder order;
  std::vector<unsigned> place;  // 1 + the step's index in its lane
  for (int i = 0; i < static_cast<int>(plan.steps.size()); ++i) {
    const int lane = LaneOf(plan.steps[i]);
    LaneOrder::Entry entry{.step = i};
    for (int before : AfterOf(plan.steps[i])) {
      if (LaneOf(plan.steps[before]) != lane) entry.awaits = std::max(entry.awaits, place[before]);
    }
    if (lane == 0) {
      const auto awaited =
          std::find_if(plan.outlasting.rbegin(), plan.outlasting.rend(),
                       [&](const Outlasting& o) { return o.until >= 0 && o.until <= i; });
      entry.pending = static_cast<unsigned>(awaited - plan.outlasting.rbegin());
    }
    order.of[lane].push_back(entry);
    place.push_back(static_cast<unsigned>(order.of[lane].size()));
  }
  return order;
}

size_t StepsTogether(const Plan& plan, absl::Span<const LaneOrder::Entry> lane, size_t first) {
  using Kind = CollectiveStep::Kind;
  const auto collective = [&](size_t i) {
    const auto* step = std::get_if<CollectiveStep>(&plan.steps[lane[i].step]);
    const bool joins =
        step != nullptr && (step->kind == Kind::kAllToAll || step->kind == Kind::kAllReduce);
    return joins ? step : nullptr;
  };
  const CollectiveStep* const one = collective(first);
  if (one == nullptr) return 0;
  const auto alike = [&](const CollectiveStep& other) {
    return other.kind == one->kind && other.group == one->group &&
           (one->kind == Kind::kAllToAll ||
            (other.dtype == one->dtype && other.reduce == one->reduce));
  };
  size_t end = first + 1;
  for (; end < lane.size() && lane[end].awaits <= lane[first].awaits; ++end) {
    const CollectiveStep* const next = collective(end);
    if (next == nullptr || !alike(*next)) break;
    bool depends = false;
    for (size_t i = first; i < end; ++i) {
      const CollectiveStep& earlier = *collective(i);
      for (int used : {next->in, next->out, next->rows.leaving, next->rows.arriving})
        depends |= used == earlier.out;
      for (int read : {earlier.in, earlier.rows.leaving, earlier.rows.arriving})
        depends |= read == next->out;
    }
    if (depends) break;
  }
  return end - first;
}

bool UsesLane(const Plan& plan, int lane) {
  return absl::c_any_of(plan.steps, [&](const Step& step) { return LaneOf(step) == lane; });
}

LaneThread::LaneThread(std::vector<int> cores)
    : thread_([this, cores = std::move(cores)] {
        if (!cores.empty()) RunOn(cores);
        BecomePrompt();
        Loop();
      }) {}

LaneThread::~LaneThread() {
  Start(nullptr, nullptr);
  thread_.join();
}

void LaneThread::Start(void (*work)(void*), void* argument) {
  if (work != work_ || argument != argument_) {
    Finish(0);
    work_ = work;
    argument_ = argument;
  }
  Publish(job_, ++started_);
}

void LaneThread::Finish(unsigned spins) const { SleepUntilReached(done_, started_, spins); }

void LaneThread::Loop() {
  for (unsigned job = 1;; ++job) {
    SleepUntilReached(job_, job, 0);
    if (work_ == nullptr) return;
    work_(argument_);
    Publish(done_, job);
  }
}

}  // namespace coconet
