#include "bench/gpu/gpu_cases.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "autotune/measure/statistics.h"
#include "autotune/session/session.h"
#include "bench/harness/rounds.h"
#include "bench/harness/tuned_contender.h"
#include "bench/harness/workload.h"
#include "coconet/base/status.h"
#include "coconet/language/language.h"
#include "coconet/schedule/describe.h"
#include "coconet/schedule/schedule.h"
#include "runtime/cuda/driver/driver_api.h"

namespace coconet::bench {
namespace {

constexpr DType kDType = DType::kBF16;  // of gradients, weights and products; states are f32
constexpr int kDispatchRounds = 21, kStepsAGraph = 100, kTraces = 9, kCandidates = 4;

SessionOptions OptionsOf(const GpuTerms& terms) {
  SessionOptions options;
  options.cache_file = ":none:";
  options.budget_s = terms.budget_s;
  return options;
}

/// Sides that are tuned on these terms.
Contenders ContendersOf(Rank& rank, const GpuTerms& terms) {
  Contenders contenders(rank, terms.budget_s);
  contenders.options() = OptionsOf(terms);
  return contenders;
}

/// Sets the times of sides, and the variants of those that are tuned.
void SetTimesAndVariants(Row& row, const std::vector<Finding>& measured,
                         std::initializer_list<absl::string_view> sides) {
  SetTimes(row, measured, sides);
  for (const Finding& fact : measured) {
    if (fact.side == "variant") row.Set(fact.name + "_variant", fact.detail);
  }
}

Row RowOf(const Rank& rank, absl::string_view name, int64_t n, DType dtype) {
  Row row;
  row.Set("case", std::string(name))
      .Set("ranks", int64_t{rank.size()})
      .Set("n", n)
      .Set("dtype", std::string(Name(dtype)))
      .Set("device", rank.topology().device);
  return row;
}

absl::StatusOr<Graph> Sum(int64_t elements) {
  Program program("all_reduce");
  program.Output("s", AllReduce(ReduceKind::kSum,
                                program.Input("g", DType::kF32, {elements}, Layout::Local())));
  return program.graph();
}

/// The median of the microseconds that the host spends in `enqueue`; all ranks call it together and
/// wait for its work.
absl::StatusOr<double> HostTime(Rank& rank, BoundProgram& bound,
                                absl::FunctionRef<absl::Status()> enqueue) {
  std::vector<double> us;
  for (int round = 0; round < kDispatchRounds; ++round) {
    RETURN_IF_ERROR(rank.exchange().Barrier());
    const double begin_s = SecondsNow();
    RETURN_IF_ERROR(enqueue());
    us.push_back(1e6 * (SecondsNow() - begin_s));
    RETURN_IF_ERROR(bound.Wait());
  }
  return rank.exchange().Max(Median(std::move(us)));
}

/// Sets the host's times of a step in a stream of this rank's, since in a stream shared by ranks
/// each step would wait for the next rank's, and of one in a graph.
absl::Status SetHostTimes(Row& row, Rank& rank, BoundProgram& bound, CapturedSteps& graph) {
  ASSIGN_OR_RETURN(const DriverApi* driver, OpenDriver());
  CUstream stream = nullptr;
  RETURN_IF_CU(*driver, StreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, 0);
  const absl::Cleanup destroy = [&] { driver->StreamDestroy(stream); };
  ASSIGN_OR_RETURN(const double dispatch_us,
                   HostTime(rank, bound, [&] { return bound.Enqueue(stream); }));
  ASSIGN_OR_RETURN(const double launch_us,
                   HostTime(rank, bound, [&] { return graph.Enqueue(stream); }));
  row.Set("dispatch_us", dispatch_us).Set("replay_us", launch_us / kStepsAGraph);
  return absl::OkStatus();
}

/// The product's time within the step by the streams' clock: the median, maximum over ranks; -1
/// without a clock.
absl::StatusOr<double> ProductTime(Rank& rank, TunedContender& overlapped) {
  std::vector<double> times;
  for (int i = 0; i < kTraces; ++i) {
    const absl::StatusOr<std::vector<StepSpan>> spans = overlapped.Trace();
    if (absl::IsUnimplemented(spans.status())) return -1;
    RETURN_IF_ERROR(spans.status());
    double us = 0;
    for (const StepSpan& span : *spans)
      us += absl::StartsWith(span.label, "MM") ? span.end_us - span.begin_us : 0;
    ASSIGN_OR_RETURN(const double slowest, rank.exchange().Max(us));
    times.push_back(slowest);
  }
  return Median(std::move(times));
}

/// The time of the fastest algorithm of the product.
double Fastest(const std::vector<Finding>& measured, absl::string_view side) {
  const Finding* const fastest = FastestOf(measured, side);
  return fastest == nullptr ? 0 : fastest->timing.median_us;
}

/// Appends the product by each of the library's algorithms, on all multiprocessors and, as
/// "product_same", with `beside` of them idle.
absl::Status AddProducts(Rank& rank, ProductCase product, int beside, int candidates,
                         Contenders& contenders) {
  for (product.candidate = 0; product.candidate < candidates; ++product.candidate) {
    for (const bool same : {false, true}) {
      product.beside = same ? beside : 0;
      absl::StatusOr<Contender> made = MakeProduct(rank, product);
      if (absl::IsOutOfRange(made.status())) continue;  // no further algorithm
      RETURN_IF_ERROR(made.status());
      if (same) made->name = "product_same";
      contenders.Add(*std::move(made));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Row> MeasureGpuAdam(Rank& rank, int64_t n, int64_t copied_bytes,
                                   const GpuTerms& terms) {
  ASSIGN_OR_RETURN(const Graph program, BoundWorkload("adam", kDType, {{"N", n}}));
  Contenders contenders = ContendersOf(rank, terms);
  ASSIGN_OR_RETURN(Contender copy, MakeCopy(rank, copied_bytes));
  contenders.Add(std::move(copy));
  RETURN_IF_ERROR(contenders.Tune("ours", program));
  RETURN_IF_ERROR(contenders.Tune("ar_c", program, [](const Schedule& s, const Config&) {
    return Describe(s) == "fuse(RS, AG); fuse(C)";
  }));
  RETURN_IF_ERROR(contenders.Tune("rs_c_ag", program, [](const Schedule& s, const Config&) {
    return absl::StartsWith(Describe(s), "RS; fuse(C); AG p");
  }));
  ASSIGN_OR_RETURN(const std::vector<Finding> measured,
                   contenders.Measure({.seconds = terms.seconds}));
  if (rank.rank() != 0) return Row();
  Row row = RowOf(rank, "adam", n, kDType);
  SetTimesAndVariants(row, measured, {"copy", "ours", "ar_c", "rs_c_ag"});
  const double ours_us = row.Number("ours_us"), copy_us = row.Number("copy_us");
  const int64_t necessary_bytes = contenders.tuned()[0]->program().record().necessary_bytes;
  row.Set("must_move_bytes", necessary_bytes)
      .Set("copy_gb_s", 2e-3 * static_cast<double>(copied_bytes) / copy_us)
      .Set("gb_s", 1e-3 * static_cast<double>(necessary_bytes) / ours_us)
      .Set("of_copy", row.Number("gb_s") / row.Number("copy_gb_s"))
      .Set("over_ar_c", row.Number("ar_c_us") / ours_us)
      .Set("over_rs_c_ag", row.Number("rs_c_ag_us") / ours_us);
  return row;
}

absl::StatusOr<Row> MeasureGpuAllReduce(Rank& rank, int64_t bytes, const GpuTerms& terms) {
  Session session(rank, OptionsOf(terms));
  ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(Sum(bytes / 4)));
  ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
  absl::StatusOr<CapturedSteps> graph = bound.Capture(kStepsAGraph);
  if (!graph.ok() && !absl::IsUnimplemented(graph.status())) return graph.status();
  const auto run = [&] { return graph.ok() ? graph->Run() : bound.RunSteps(kStepsAGraph); };
  ASSIGN_OR_RETURN(const std::vector<Finding> measured,
                   MeasureInRounds(rank, {EachStep("ours", run)}, {.seconds = terms.seconds}));
  Timing a_step = measured[0].timing;
  for (double* us : {&a_step.median_us, &a_step.low_us, &a_step.high_us}) *us /= kStepsAGraph;
  Row row = RowOf(rank, "all_reduce", bytes / 4, DType::kF32);
  row.Set("bytes", bytes).Set("steps_a_graph", int64_t{kStepsAGraph});
  SetTime(row, "ours", a_step);
  row.Set("rounds", int64_t{a_step.samples}).Set("ours_variant", Words(tuned.record().best));
  if (graph.ok()) RETURN_IF_ERROR(SetHostTimes(row, rank, bound, *graph));
  return rank.rank() == 0 ? row : Row();
}

absl::StatusOr<Row> MeasureGpuOverlap(Rank& rank, const ProductCase& product,
                                      const GpuTerms& terms) {
  const Sizes sizes = {
      {"B", 1}, {"S", product.rows}, {"K", product.inner * rank.size()}, {"H", product.columns}};
  ASSIGN_OR_RETURN(const Graph program, BoundWorkload("mlp", kDType, sizes));
  Contenders contenders = ContendersOf(rank, terms);
  RETURN_IF_ERROR(contenders.Tune(
      "ours", program, [](const Schedule& s, const Config&) { return !s.overlaps().empty(); }));
  RETURN_IF_ERROR(contenders.Tune("sequential", program, [](const Schedule& s, const Config&) {
    return s.overlaps().empty();
  }));
  TunedContender& ours = *contenders.tuned()[0];
  const bool gpu = rank.topology().multiprocessors > 0;
  const int beside = gpu ? ours.program().record().best.config.beside : 0;
  RETURN_IF_ERROR(AddProducts(rank, product, beside, gpu ? kCandidates : 1, contenders));
  ASSIGN_OR_RETURN(const std::vector<Finding> measured,
                   contenders.Measure({.seconds = terms.seconds}));
  ASSIGN_OR_RETURN(const double beside_us, ProductTime(rank, ours));
  if (rank.rank() != 0) return Row();
  Row row = RowOf(rank, "mlp", product.rows * product.columns, product.dtype);
  row.Set("m", product.rows).Set("k", product.inner).Set("columns", product.columns);
  SetTimesAndVariants(row, measured, {"ours", "sequential"});
  const double ours_us = row.Number("ours_us"), sequential_us = row.Number("sequential_us"),
               product_us = Fastest(measured, "product");
  row.Set("product_us", product_us)
      .Set("over_sequential", sequential_us / ours_us)
      .Set("bound", sequential_us / std::max(product_us, sequential_us - product_us));
  if (beside_us > 0) {
    const double same_us = Fastest(measured, "product_same");
    row.Set("product_beside_us", beside_us)
        .Set("product_same_us", same_us)
        .Set("of_product", same_us / beside_us);
  }
  return row.Set("beside", beside);
}

}  // namespace coconet::bench
