#include "bench/nodes/node_row.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <stop_token>
#include <thread>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/harness/user.h"
#include "bench/harness/worker.h"
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

StepParts PartsOf(const std::vector<Finding>& found, absl::string_view sending) {
  return {.computation_us = FastestOf(found, "computation")->timing.median_us,
          .sending_us = FastestOf(found, sending)->timing.median_us};
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

absl::StatusOr<std::vector<Finding>> MeasureOnNode(const Contenders& contenders, int64_t bytes,
                                                   double seconds) {
  Rank& rank = contenders.rank();
  ASSIGN_OR_RETURN(std::vector<Finding> findings, contenders.Measure({.seconds = seconds}));
  const auto sending =
      absl::c_find_if(contenders.timed(), [](const Contender& c) { return c.name == "sending"; });
  ASSIGN_OR_RETURN(const double processor_us, ProcessorTime(rank, *sending, /*steps=*/5));
  findings.push_back({.side = "sending_processor_us", .detail = absl::StrCat(processor_us)});
  ASSIGN_OR_RETURN(const double most_bytes, rank.exchange().Max(static_cast<double>(bytes)));
  findings.push_back({.side = "bytes", .detail = absl::StrCat(static_cast<int64_t>(most_bytes))});
  return findings;
}

bool IsSequential(const Schedule& schedule, const Config& config) {
  return schedule.overlaps().empty() && !config.concurrent;
}

absl::StatusOr<std::vector<Finding>> TwoNodes::Run(
    const std::string& rate, const std::vector<std::string>& arguments) const {
  return RunWorker({.processes = 2 * ranks_per_node,
                    .launcher = ClusterLauncher(/*nodes=*/2, ranks_per_node, rate),
                    .arguments = arguments,
                    .cache = absl::StrCat(scratch, "/", cache),
                    .scratch = scratch});
}

absl::StatusOr<LinkRate> TwoNodes::FindRate(const std::vector<std::string>& parts,
                                            const WantedShare& wanted) const {
  // The bytes that leave a node are known to its ranks; every run reports them.
  ASSIGN_OR_RETURN(const std::vector<Finding> first, Run("none", parts));
  const auto parts_at = [&](const std::string& rate) -> absl::StatusOr<StepParts> {
    std::vector<Finding> found = first;
    if (rate != "none") {
      ASSIGN_OR_RETURN(found, Run(rate, parts));
    }
    const StepParts measured = PartsOf(found, sending);
    absl::FPrintF(stderr, "  link %s: computation %.3g us, %s %.3g us\n", rate,
                  measured.computation_us, sending, measured.sending_us);
    return measured;
  };
  return ChooseLinkRate(CountOf(first, "bytes"), wanted, parts_at);
}

absl::Status MeasureOnTwoNodes(const std::vector<std::string>& parts,
                               const std::vector<std::string>& all, const std::string& scratch,
                               const std::string& name, Row& row) {
  const TwoNodes nodes{.scratch = scratch, .cache = name};
  ASSIGN_OR_RETURN(const LinkRate link, nodes.FindRate(parts, UsualShare()));
  row.Set("link", link.rate);
  ASSIGN_OR_RETURN(const std::vector<Finding> found, nodes.Run(link.rate, all));
  SetFindings(row, found);
  const StepParts of_row = PartsOf(found, nodes.sending);
  const double both_us = of_row.computation_us + of_row.sending_us,
               bound_us = OverlapBound(of_row, row.Number("sending_processor_us")),
               ours_us = row.Number("ours_us");
  row.Set("share", of_row.share()).Set("bound_us", bound_us).Set("of_bound", bound_us / ours_us);
  row.Set("baseline_us", row.Number("sequential_us"));
  row.Set("ratio", row.Number("sequential_us") / ours_us);
  row.Set("ceiling", both_us / bound_us).Set("of_ceiling", bound_us / ours_us);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<RowSender>> RowSender::Make(Rank& rank, RankRows rows) {
  auto made = std::make_unique<RowSender>();
  const int ranks = rank.size();
  const int64_t block = rows.groups * rows.capacity * rows.row,
                row_bytes = rows.row * static_cast<int64_t>(SizeOf(rows.dtype));
  made->rank_ = &rank;
  made->step_ = {.kind = CollectiveStep::Kind::kAllToAll,
                 .dtype = rows.dtype,
                 .count = block,
                 .exchanged = {.outer = 1,
                               .inner = block,
                               .low = {ranks, 1},
                               .high = {ranks, 1},
                               .from_low = true,
                               .outer_end = 1,
                               .low_end = 1},
                 .rows = {.leaving = 0, .arriving = 1, .capacity = rows.capacity, .row = rows.row}};
  for (int64_t i = 0; i < ranks * rows.groups; ++i) {
    if (i / rows.groups == rank.rank()) continue;
    made->bytes_there_ += rows.leaving[i] * row_bytes;
    made->bytes_back_ += rows.arriving[i] * row_bytes;
  }
  const int64_t bytes = std::max<int64_t>(1, ranks * rows.groups * rows.capacity * row_bytes);
  ASSIGN_OR_RETURN(made->here_, Array::Allocate(bytes));
  ASSIGN_OR_RETURN(made->there_, Array::Allocate(bytes));
  made->rows_ = std::move(rows);
  return made;
}

absl::Status RowSender::Send() {
  return rank_->library().AllToAlls(
      {{&step_, here_.as<void>(), there_.as<void>(), rows_.leaving.data(), rows_.arriving.data()}});
}

absl::Status RowSender::SendBack() {
  return rank_->library().AllToAlls(
      {{&step_, there_.as<void>(), here_.as<void>(), rows_.arriving.data(), rows_.leaving.data()}});
}

}  // namespace coconet::bench
