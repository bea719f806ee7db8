#include "bench/nodes/cluster_link.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <stop_token>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/harness/user.h"
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
  int64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  void Count(const std::stop_token& stop) {
    const sched_param none{};
    sched_setscheduler(0, SCHED_IDLE, &none);
    while (!stop.stop_requested()) {
      for (int i = 0; i < 256; ++i) asm volatile("");  // keeps the loop
      count_.fetch_add(1, std::memory_order_relaxed);
    }
  }

  std::atomic<int64_t> count_{0};
  std::jthread thread_{[this](const std::stop_token& stop) { Count(stop); }};
};

/// How long something took, and the loop's counts per second meanwhile.
struct Beside {
  double seconds = 0, counts_a_second = 0;
};
absl::StatusOr<Beside> CountBeside(const IdleLoop& loop, absl::FunctionRef<absl::Status()> body) {
  const int64_t before = loop.count();
  const double start_s = SecondsNow();
  RETURN_IF_ERROR(body());
  const double took_s = SecondsNow() - start_s;
  return Beside{took_s, static_cast<double>(loop.count() - before) / took_s};
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

WantedShare UsualShare() {
  return IsQuick() ? WantedShare{.least = 0, .most = 1e9} : WantedShare{};
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
  const absl::Status status = contender.run(1);
  const IdleLoop loop;
  const auto pause = [] {
    absl::SleepFor(absl::Milliseconds(200));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(pause());
  ASSIGN_OR_RETURN(const Beside alone, CountBeside(loop, pause));
  RETURN_IF_ERROR(rank.exchange().Agree(status));
  const absl::StatusOr<Beside> running = CountBeside(loop, [&] { return contender.run(steps); });
  RETURN_IF_ERROR(rank.exchange().Agree(running.status()));
  const double lost = std::max(0.0, 1 - running->counts_a_second / alone.counts_a_second);
  return rank.exchange().Max(1e6 * running->seconds / static_cast<double>(steps) * lost);
}

double OverlapBound(const StepParts& parts, double sending_processor_us) {
  return std::max(parts.computation_us + sending_processor_us, parts.sending_us);
}

}  // namespace coconet::bench
