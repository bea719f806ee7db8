// Measures one GPU with ranks that share it: rows for docs and bars. Needs a driver, this program
// and its libraries only.

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/flags/flag.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "autotune/measure/statistics.h"
#include "autotune/session/session.h"
#include "bench/gpu/ceilings.h"
#include "bench/harness/rounds.h"
#include "bench/harness/tuned_contender.h"
#include "bench/harness/user.h"
#include "bench/harness/workload.h"
#include "coconet/base/status.h"
#include "coconet/schedule/describe.h"
#include "coconet/schedule/schedule.h"
#include "runtime/cuda/driver/driver_api.h"
#include "runtime/world.h"

ABSL_FLAG(std::string, torch, "",
          "file with lines 'RANKS MICROSECONDS' of PyTorch doing the same "
          "(bench/gpu_check/torch_adam.py)");
ABSL_FLAG(bool, host, false, "run on the host's cores: does the program itself work?");

namespace coconet::bench {
namespace {

constexpr int kRanks[] = {2, 4, 8};
constexpr int64_t kElements = int64_t{1} << 28, kQuickElements = int64_t{1} << 16;
constexpr int64_t kSmallBytes[] = {8 << 10, 64 << 10, 256 << 10};
constexpr int64_t kCopied = int64_t{4} << 30, kQuickCopied = int64_t{1} << 20;

constexpr DType kDType = DType::kBF16;  // of gradients, weights and products; states are f32
constexpr int kDispatchRounds = 21, kStepsAGraph = 100, kTraces = 9, kCandidates = 4;

struct GpuTerms {
  double budget_s = 0;  // of tuning one contender
  double seconds = 0;   // of measuring
};

/// Sides that are tuned on these terms.
Contenders ContendersOf(Rank& rank, const GpuTerms& terms) {
  Contenders contenders(rank, terms.budget_s);
  contenders.options().cache_file = ":none:";
  return contenders;
}

Row RowOf(const Rank& rank, absl::string_view name, int64_t n, DType dtype) {
  Row row;
  row.Set("case", std::string(name))
      .Set("ranks", rank.size())
      .Set("n", n)
      .Set("dtype", std::string(Name(dtype)))
      .Set("device", rank.topology().device);
  return row;
}

constexpr char kSum[] =
    "program all_reduce\ninput g : $0[N] local\noutput s = all_reduce(sum, g)\n";

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

/// Appends the product by each of the library's algorithms, on all multiprocessors and, as
/// "product_same", with `beside` of them idle.
absl::Status AddProducts(Rank& rank, GemmStep product, int beside, int candidates,
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

// The functions that measure a row are collective. Rank 0 sets it, with times in microseconds.

/// Mixed-precision Adam over `n` elements on ranks that may share one GPU, in the same rounds as: a
/// copy of `copied_bytes` by all ranks together, which shows the GPU's memory bandwidth; an
/// AllReduce by our own two-shot kernel followed by one fused kernel; and a reduce-scatter, a fused
/// kernel and an all-gather. Each of ours is tuned. The row has "copy_gb_s", "gb_s" (of the bytes
/// that any schedule must move) and "of_copy".
absl::Status MeasureAdam(Rank& rank, int64_t n, int64_t copied_bytes, const GpuTerms& terms,
                         Row& row) {
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
  if (rank.rank() != 0) return absl::OkStatus();
  row = RowOf(rank, "adam", n, kDType);
  SetTimes(row, measured, {"copy", "ours", "ar_c", "rs_c_ag"});
  SetFacts(row, measured, /*ours=*/"");
  const double ours_us = row.Number("ours_us"), copy_us = row.Number("copy_us");
  const int64_t necessary_bytes = contenders.tuned()[0]->program().record().necessary_bytes;
  row.Set("must_move_bytes", necessary_bytes)
      .Set("copy_gb_s", 2e-3 * static_cast<double>(copied_bytes) / copy_us)
      .Set("gb_s", 1e-3 * static_cast<double>(necessary_bytes) / ours_us)
      .Set("of_copy", row.Number("gb_s") / row.Number("copy_gb_s"))
      .Set("over_ar_c", row.Number("ar_c_us") / ours_us)
      .Set("over_rs_c_ag", row.Number("rs_c_ag_us") / ours_us);
  return absl::OkStatus();
}

/// A tuned sum of `bytes` bytes of f32 over all ranks, as one graph of many steps per rank; all
/// ranks launch theirs together. "ours_us" is per step, the maximum over ranks; the host's time per
/// step is "dispatch_us" in a stream and "replay_us" in a graph. Without graphs, steps run one
/// after the other.
absl::Status MeasureAllReduce(Rank& rank, int64_t bytes, const GpuTerms& terms, Row& row) {
  Session session(rank, ContendersOf(rank, terms).options());
  ASSIGN_OR_RETURN(const TunedProgram tuned,
                   session.Compile(BoundText(kSum, DType::kF32, {{"N", bytes / 4}})));
  ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
  absl::StatusOr<CapturedSteps> graph = bound.Capture(kStepsAGraph);
  if (!graph.ok() && !absl::IsUnimplemented(graph.status())) return graph.status();
  const auto run = [&] { return graph.ok() ? graph->Run() : bound.RunSteps(kStepsAGraph); };
  ASSIGN_OR_RETURN(const std::vector<Finding> measured,
                   MeasureInRounds(rank, {EachStep("ours", run)}, {.seconds = terms.seconds}));
  Timing a_step = measured[0].timing;
  for (double* us : {&a_step.median_us, &a_step.low_us, &a_step.high_us}) *us /= kStepsAGraph;
  Row mine = RowOf(rank, "all_reduce", bytes / 4, DType::kF32);
  mine.Set("bytes", bytes).Set("steps_a_graph", kStepsAGraph);
  SetTime(mine, "ours", a_step);
  mine.Set("rounds", a_step.samples).Set("ours_variant", Words(tuned.record().best));
  if (graph.ok()) RETURN_IF_ERROR(SetHostTimes(mine, rank, bound, *graph));
  if (rank.rank() == 0) row = std::move(mine);
  return absl::OkStatus();
}

/// A layer's product, its sum over ranks and its epilogue (bias, dropout, residual), tuned twice
/// and timed in the same rounds: overlapped, and sequential; also the library's product alone, on
/// all multiprocessors of a rank and on those that it has under the overlap. The row has "ours_us"
/// (overlapped), "sequential_us", "product_us" (alone); "over_sequential", and its upper limit
/// "bound": the sequential step over the longer of the product and the rest. With a clock in
/// streams also "product_beside_us", the product's time under the overlap, and "of_product", the
/// time of the product alone on as many multiprocessors ("product_same_us") over it.
absl::Status MeasureOverlap(Rank& rank, const GemmStep& product, const GpuTerms& terms, Row& row) {
  const int64_t m = product.m.total, n = product.n.total, k = product.k.total;
  const Sizes sizes = {{"B", 1}, {"S", m}, {"K", k * rank.size()}, {"H", n}};
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
  if (rank.rank() != 0) return absl::OkStatus();
  row = RowOf(rank, "mlp", m * n, product.dtype);
  row.Set("m", m).Set("k", k).Set("columns", n);
  SetTimes(row, measured, {"ours", "sequential", "product", "product_same"});
  SetFacts(row, measured, /*ours=*/"");
  const double ours_us = row.Number("ours_us"), sequential_us = row.Number("sequential_us"),
               product_us = row.Number("product_us");
  row.Set("over_sequential", sequential_us / ours_us)
      .Set("bound", sequential_us / std::max(product_us, sequential_us - product_us));
  if (beside_us > 0)
    row.Set("product_beside_us", beside_us)
        .Set("of_product", row.Number("product_same_us") / beside_us);
  row.Set("beside", beside);
  return absl::OkStatus();
}

std::vector<Column> Columns() {
  return ColumnsOf(
      "case, ranks, n|count, dtype, ours|time, variant|result|ours_variant, of copy|ratio, "
      "over AR; C|ratio|over_ar_c, over RS; C; AG|ratio|over_rs_c_ag, over sequential|ratio, "
      "bound|ratio, product's speed|ratio|of_product, over PyTorch|ratio|over_torch, "
      "dispatch|time, replay|time, bar, met");
}

/// A row: its bars, and what measures it on a rank.
struct Case {
  std::string name;
  int ranks = 0;
  std::string bars;  // as BarsOf reads them
  std::function<absl::Status(Rank&, Row&)> measure;
  double torch_us = 0;  // of PyTorch doing the same; 0: it was not measured
};

Case AllReduceOf(int64_t bytes) {
  const GpuTerms terms = {.budget_s = TuningBudget(8, 2), .seconds = IsQuick() ? 0.2 : 1};
  return {"all_reduce", absl::GetFlag(FLAGS_host) ? 2 : 8,
          "ours_us <= 8, dispatch_us <= 5, replay_us <= 1.5",
          [=](Rank& rank, Row& row) { return MeasureAllReduce(rank, bytes, terms, row); }};
}

Case Overlap() {
  const GemmStep product = IsQuick() ? ProductStep(kDType, /*m=*/256, /*n=*/256, /*k=*/64)
                                     : ProductStep(kDType, /*m=*/4096, /*n=*/12288, /*k=*/1536);
  const GpuTerms terms = {.budget_s = TuningBudget(12, 2), .seconds = IsQuick() ? 0.2 : 2};
  return {"mlp", 2, "over_sequential >= 1.1, of_product >= 0.9",
          [=](Rank& rank, Row& row) { return MeasureOverlap(rank, product, terms, row); }};
}

Case AdamOn(int ranks, double torch_us) {
  const int64_t n = IsQuick() ? kQuickElements : kElements;
  const int64_t copied_bytes = IsQuick() ? kQuickCopied : kCopied;
  const GpuTerms terms = {.budget_s = TuningBudget(12, 2), .seconds = 3};
  std::string bars = "of_copy >= 0.85, over_rs_c_ag >= 1.15";
  if (ranks == 2) bars += ", over_ar_c >= 1.6";
  if (ranks == 8) bars += ", over_ar_c >= 3";
  if (ranks == 2 && torch_us > 0) bars += ", over_torch >= 1.4";
  if (ranks == 8 && torch_us > 0) bars += ", over_torch >= 1.25";
  return {"adam", ranks, bars,
          [=](Rank& rank, Row& row) { return MeasureAdam(rank, n, copied_bytes, terms, row); },
          torch_us};
}

std::vector<Case> Cases() {
  std::map<int, double> torch_us;  // by number of ranks
  std::ifstream file(Resolve(absl::GetFlag(FLAGS_torch)));
  int of_ranks = 0;
  for (double us = 0; file >> of_ranks >> us;) torch_us[of_ranks] = us;
  std::vector<Case> cases;
  for (int64_t bytes : kSmallBytes) {
    cases.push_back(AllReduceOf(bytes));
    if (IsQuick()) break;
  }
  cases.push_back(Overlap());
  for (int ranks : kRanks) {
    cases.push_back(AdamOn(ranks, torch_us[ranks]));
    if (absl::GetFlag(FLAGS_host)) break;
  }
  return cases;
}

/// Rank 0's row. There are no bars for small sizes and on the host.
absl::StatusOr<Row> Measure(const Case& c) {
  const bool host = absl::GetFlag(FLAGS_host);
  Row row;
  RETURN_IF_ERROR(RunWorld({.ranks = c.ranks, .backend = host ? Backend::kHost : Backend::kCuda},
                           [&](Rank& rank) { return c.measure(rank, row); }));
  if (c.torch_us > 0)
    row.Set("torch_us", c.torch_us).Set("over_torch", c.torch_us / row.Number("ours_us"));
  return row.SetBars(BarsOf(IsQuick() || host ? "" : c.bars));
}

/// A measurement that fails becomes a row with "error". Unavailable if there is no device.
absl::Status RunAll() {
  std::vector<Row> rows;
  for (const Case& c : Cases()) {
    absl::StatusOr<Row> row = Measure(c);
    if (absl::IsUnavailable(row.status())) return row.status();
    if (!row.ok()) {
      const std::string error(row.status().message());
      row = Row().Set("case", c.name).Set("ranks", c.ranks).Set("error", error);
    }
    row->Set("date", absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone()));
    if (!absl::GetFlag(FLAGS_host)) AddGpu(*row);
    rows.push_back(*std::move(row));
    std::fprintf(stderr, "gpu: %s on %d ranks: done\n", c.name.c_str(), c.ranks);
    RETURN_IF_ERROR(Save(rows, Columns()));  // what follows may be cut off
  }
  return Show(rows, Columns());
}

const Registered kBenchmark({.name = "gpu",
                             .purpose = "measures what a GPU does with ranks that share it",
                             .heeds = {"quick", "budget"},
                             .run = RunAll});

}  // namespace
}  // namespace coconet::bench
