#include "bench/nodes/cluster_link.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

/// In kbit below 10 mbit, so that a step is below a thousandth.
std::string RateText(double bits_per_s) {
  return bits_per_s >= 1e7 ? absl::StrFormat("%.0fmbit", bits_per_s / 1e6)
                           : absl::StrFormat("%.0fkbit", std::max(bits_per_s / 1e3, 1.0));
}

/// A thread of the scheduling class SCHED_IDLE that increments a counter. It runs only while its
/// core is otherwise idle, so its rate falls by the share of the core that other threads,
/// interrupts and the kernel's network stack take.
class IdleLoop {
 public:
  IdleLoop() : thread_([this] { Count(); }) {}
  ~IdleLoop() {
    ends_ = true;
    thread_.join();
  }
  IdleLoop(const IdleLoop&) = delete;
  IdleLoop& operator=(const IdleLoop&) = delete;

  int64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  void Count() {
    const sched_param none{};
    sched_setscheduler(0, SCHED_IDLE, &none);
    while (!ends_.load(std::memory_order_relaxed)) {
      for (int i = 0; i < 256; ++i) asm volatile("");  // keeps the loop
      count_.fetch_add(1, std::memory_order_relaxed);
    }
  }

  std::atomic<bool> ends_{false};
  std::atomic<int64_t> count_{0};
  std::thread thread_;
};

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// The loop's counts per second while `body` runs, which takes `seconds`.
double CountsASecond(const IdleLoop& loop, absl::FunctionRef<absl::Status()> body,
                     absl::Status& status, double& seconds) {
  const int64_t before = loop.count();
  const auto begin = Clock::now();
  status.Update(body());
  seconds = SecondsSince(begin);
  return static_cast<double>(loop.count() - before) / seconds;
}

}  // namespace

std::vector<std::string> ClusterLauncher(int nodes, int ranks_per_node, const std::string& rate) {
  return {"bench/cluster/run.sh",
          absl::StrCat("--nodes=", nodes),
          absl::StrCat("--ranks-per-node=", ranks_per_node),
          absl::StrCat("--rate=", rate),
          "--mpirun=--timeout",
          "--mpirun=900",
          "--"};
}

absl::StatusOr<LinkRate> ChooseLinkRate(
    int64_t bytes, const WantedShare& wanted,
    absl::FunctionRef<absl::StatusOr<StepParts>(const std::string& rate)> measure) {
  ASSIGN_OR_RETURN(const StepParts unlimited, measure("none"));
  if (!(unlimited.computation_us > 0) || unlimited.share() > wanted.most) {
    return absl::FailedPreconditionError(
        absl::StrFormat("links without a limit: sending takes %.3g us, computation %.3g us, want "
                        "at most %.2g of it",
                        unlimited.sending_us, unlimited.computation_us, wanted.most));
  }
  double rate = 8e6 * static_cast<double>(bytes) / (wanted.aim * unlimited.computation_us);
  double share = 0;
  for (int i = 0; i < wanted.tries; ++i) {
    const std::string text = RateText(rate);
    ASSIGN_OR_RETURN(const StepParts parts, measure(text));
    share = parts.share();
    if (share >= wanted.least && share <= wanted.most) return LinkRate{text, parts};
    rate *= std::clamp(share / wanted.aim, 0.25, 4.0);
  }
  return absl::FailedPreconditionError(
      absl::StrFormat("links at %d rates: sending took %.2g of computation in the end, want %.2g "
                      "to %.2g",
                      wanted.tries, share, wanted.least, wanted.most));
}

absl::StatusOr<double> ProcessorTime(Rank& rank, const Contender& contender, int64_t steps) {
  absl::Status status = contender.run(1);
  const IdleLoop loop;
  const auto pause = [] {
    absl::SleepFor(absl::Milliseconds(200));
    return absl::OkStatus();
  };
  double seconds = 0;
  status.Update(pause());
  const double alone = CountsASecond(loop, pause, status, seconds);
  RETURN_IF_ERROR(rank.exchange().Agree(status));
  const double beside = CountsASecond(loop, [&] { return contender.run(steps); }, status, seconds);
  RETURN_IF_ERROR(rank.exchange().Agree(status));
  return rank.exchange().Max(1e6 * seconds / static_cast<double>(steps) *
                             std::max(0.0, 1 - beside / alone));
}

double OverlapBound(const StepParts& parts, double sending_processor_us) {
  return std::max(parts.computation_us + sending_processor_us, parts.sending_us);
}

}  // namespace coconet::bench
