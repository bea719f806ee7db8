#include "bench/gpu/gpu_allreduce.h"

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "autotune/measure/statistics.h"
#include "autotune/session/session.h"
#include "bench/gpu/gpu_copy.h"
#include "bench/harness/rounds.h"
#include "coconet/base/status.h"
#include "coconet/language/language.h"

namespace coconet::bench {
namespace {

constexpr int kDispatchRounds = 21;

absl::StatusOr<Graph> Sum(int64_t elements) {
  Program program("all_reduce");
  program.Output("s", AllReduce(ReduceKind::kSum,
                                program.Input("g", DType::kF32, {elements}, Layout::Local())));
  return program.graph();
}

double MicrosecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

/// The median of the microseconds that the host spends in `enqueue`; all ranks call it together and
/// wait for its work.
template <class Enqueue>
absl::StatusOr<double> HostTime(Rank& rank, BoundProgram& bound, Enqueue enqueue) {
  std::vector<double> us;
  for (int round = 0; round < kDispatchRounds; ++round) {
    RETURN_IF_ERROR(rank.exchange().Barrier());
    const auto start = std::chrono::steady_clock::now();
    RETURN_IF_ERROR(enqueue());
    us.push_back(MicrosecondsSince(start));
    RETURN_IF_ERROR(bound.Wait());
  }
  return rank.exchange().Max(Median(std::move(us)));
}

}  // namespace

absl::StatusOr<Row> MeasureGpuAllReduce(Rank& rank, const GpuAllReduceCase& c) {
  SessionOptions options;
  options.cache_file = ":none:";
  options.budget_s = c.budget_s;
  Session session(rank, options);
  ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(Sum(c.bytes / 4)));
  ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
  absl::StatusOr<CapturedSteps> graph = bound.Capture(c.steps);
  if (!graph.ok() && !absl::IsUnimplemented(graph.status())) return graph.status();
  const auto run = [&](int64_t times) -> absl::Status {
    for (int64_t i = 0; i < times; ++i)
      RETURN_IF_ERROR(graph.ok() ? graph->Run() : bound.RunSteps(c.steps));
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(
      const std::vector<Measured> measured,
      MeasureInRounds(rank, std::vector<Contender>{{"ours", run}}, {.seconds = c.seconds}));
  const auto a_step = static_cast<double>(c.steps);
  Row row;
  row.Set("case", "all_reduce")
      .Set("ranks", int64_t{rank.size()})
      .Set("n", c.bytes / 4)
      .Set("dtype", "f32")
      .Set("bytes", c.bytes);
  row.Set("steps_a_graph", c.steps).Set("ours_us", measured[0].timing.median_us / a_step);
  row.Set("ours_low_us", measured[0].timing.low_us / a_step)
      .Set("ours_high_us", measured[0].timing.high_us / a_step);
  row.Set("rounds", int64_t{measured[0].timing.samples})
      .Set("ours_variant", Words(tuned.record().best))
      .Set("device", rank.topology().device);
  if (graph.ok()) {
    ASSIGN_OR_RETURN(const std::unique_ptr<GpuStream> stream, GpuStream::Make());
    ASSIGN_OR_RETURN(const double dispatch_us,
                     HostTime(rank, bound, [&] { return bound.Enqueue(stream->get()); }));
    ASSIGN_OR_RETURN(const double launch_us,
                     HostTime(rank, bound, [&] { return graph->Enqueue(stream->get()); }));
    row.Set("dispatch_us", dispatch_us).Set("replay_us", launch_us / a_step);
  }
  return rank.rank() == 0 ? row : Row();
}

}  // namespace coconet::bench
