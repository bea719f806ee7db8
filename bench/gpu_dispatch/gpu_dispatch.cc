#include "bench/gpu_dispatch/gpu_dispatch.h"

#include <functional>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "autotune/session/session.h"
#include "bench/gpu_dispatch/driver_recorder.h"
#include "bench/harness/user.h"
#include "bench/harness/workload.h"
#include "coconet/base/status.h"
#include "runtime/cuda/cuda_world_over.h"

ABSL_FLAG(std::vector<std::string>, ranks, std::vector<std::string>({"1", "2", "4", "8"}),
          "numbers of ranks, each a thread of this process; 1: the usual case, a rank a process");

namespace coconet::bench {
namespace {

/// Counts its steps.
constexpr char kCount[] = "program count\nstate x : $0[1] replicated\nupdate(x, x + 1)\n";

/// A way to dispatch one step.
struct Way {
  const char* name;
  std::function<absl::Status()> dispatch;
};

/// One rank's measurement of all ways.
class DispatchMeter {
 public:
  DispatchMeter(Rank& rank, const DriverApi& driver, const RoundTerms& terms)
      : rank_(rank), driver_(driver), terms_(terms) {}

  absl::StatusOr<std::vector<Row>> Measure() {
    SessionOptions options;
    options.cache_file = ":none:";
    options.policy = Policy::kBaselineOnMiss;  // the program has one variant worth the name
    Session session(rank_, options);
    ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(BoundText(kCount, DType::kF32, {})));
    ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
    ASSIGN_OR_RETURN(CapturedSteps graph, bound.Capture(1));
    CUstream callers = nullptr;  // of the GPU that is current
    RETURN_IF_CU(driver_, StreamCreateWithPriority, &callers, CU_STREAM_NON_BLOCKING, 0);
    const absl::Cleanup destroy = [&] { driver_.StreamDestroy(callers); };
    void *own = session.stream(), *other = callers;
    streams_ = {static_cast<CUstream>(own), callers};
    const std::vector<Way> ways = {
        {"Run", [&] { return bound.Run(); }},
        {"Enqueue", [&] { return bound.Enqueue(other); }},
        {"Enqueue in the rank's stream", [&] { return bound.Enqueue(own); }},
        {"graph: Run", [&] { return graph.Run(); }},
        {"graph: Enqueue", [&] { return graph.Enqueue(other); }},
        {"graph: Enqueue in the rank's stream", [&] { return graph.Enqueue(own); }}};
    std::vector<Row> rows;
    for (const Way& way : ways) {
      ASSIGN_OR_RETURN(rows.emplace_back(), MeasureWay(way));
    }
    RETURN_IF_ERROR(bound.Wait());
    float counted = 0;
    RETURN_IF_ERROR(bound.Read("x", &counted, 1));
    if (counted != static_cast<float>(dispatched_))
      return absl::InternalError(
          absl::StrCat("want ", dispatched_, " steps, of both sides, have ", counted));
    return rows;
  }

 private:
  /// Until the GPU has done what was dispatched.
  absl::Status Settle() {
    for (CUstream stream : streams_) RETURN_IF_CU(driver_, StreamSynchronize, stream);
    return absl::OkStatus();
  }

  /// A side that makes the calls of a dispatch. The GPU has done them all when a step alone ends,
  /// as the untimed one before each sample.
  Contender Side(const char* name, std::function<absl::Status()> dispatch) {
    return {name, [this, dispatch = std::move(dispatch)](int64_t steps) -> absl::Status {
              for (int64_t i = 0; i < steps; ++i) RETURN_IF_ERROR(dispatch());
              dispatched_ += steps;
              return steps == 1 ? Settle() : absl::OkStatus();
            }};
  }

  absl::StatusOr<Row> MeasureWay(const Way& way) {
    ASSIGN_OR_RETURN(const std::vector<DriverCall> calls, Record(way.dispatch));
    dispatched_ += 1;
    RETURN_IF_ERROR(Settle());
    const auto floor = [&] { return Repeat(driver_, calls); };
    ASSIGN_OR_RETURN(
        const std::vector<Finding> measured,
        MeasureInRounds(rank_, {Side("ours", way.dispatch), Side("floor", floor)}, terms_));
    RETURN_IF_ERROR(Settle());
    const double ours = measured[0].timing.median_us, alone = measured[1].timing.median_us;
    Row row;
    row.Set("case", "dispatch")
        .Set("ranks", int64_t{rank_.size()})
        .Set("way", way.name)
        .Set("calls", static_cast<int64_t>(calls.size()))
        .Set("ours_us", ours)
        .Set("floor_us", alone)
        .Set("over_floor", ours / alone)
        .Set("rounds", measured[0].timing.samples)
        .Set("sequence", Words(calls))
        .Set("device", rank_.topology().device);
    return row;
  }

  Rank& rank_;
  const DriverApi& driver_;
  const RoundTerms terms_;
  std::vector<CUstream> streams_;
  int64_t dispatched_ = 0;
};

std::vector<Column> Columns() {
  return ColumnsOf(
      "dispatch by|result|way, ranks, calls, ours|time, driver alone|time|floor_us, "
      "over it|ratio|over_floor, bar, met, the driver's calls|text|sequence");
}

}  // namespace

absl::StatusOr<std::vector<Row>> MeasureGpuDispatch(const CudaLibraries& libraries, int ranks,
                                                    const RoundTerms& terms) {
  const CudaLibraries recorded{.driver = Recorded(libraries.driver),
                               .open_cublaslt = libraries.open_cublaslt,
                               .open_libraries = libraries.open_libraries,
                               .green_contexts = libraries.green_contexts,
                               .multicast = libraries.multicast,
                               .control = libraries.control};
  std::vector<Row> rows;
  RETURN_IF_ERROR(RunCudaWorldOver(recorded, {.ranks = ranks}, [&](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(std::vector<Row> mine, DispatchMeter(rank, libraries.driver, terms).Measure());
    if (rank.rank() == 0) rows = std::move(mine);
    return absl::OkStatus();
  }));
  return rows;
}

absl::Status RunGpuDispatch(const CudaLibraries& libraries, bool judged) {
  const int rounds = IsQuick() ? 11 : 101;
  const RoundTerms terms = {.min_rounds = rounds, .max_rounds = rounds, .steps = 32};
  std::vector<Row> rows;
  for (const int ranks : IntegersOf(absl::GetFlag(FLAGS_ranks))) {
    absl::StatusOr<std::vector<Row>> of_ranks = MeasureGpuDispatch(libraries, ranks, terms);
    if (absl::IsUnavailable(of_ranks.status())) return of_ranks.status();
    if (!of_ranks.ok()) {
      const std::string error(of_ranks.status().message());
      of_ranks = {Row().Set("case", "dispatch").Set("ranks", int64_t{ranks}).Set("error", error)};
    }
    for (Row& row : *of_ranks) {
      row.Set("date", absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone()));
      const bool awaits_gpu = absl::StrContains(TextOf(row, "way"), "Run");
      const bool has_bars = judged && ranks == 1;
      row.SetBars(BarsOf(!has_bars    ? ""
                         : awaits_gpu ? "over_floor <= 1.3"
                                      : "over_floor <= 1.3, ours_us <= 5"));
      rows.push_back(std::move(row));
    }
    RETURN_IF_ERROR(Save(rows, Columns()));  // what follows may be cut off
  }
  return Show(rows, Columns());
}

}  // namespace coconet::bench
