#include "bench/gpu/gpu_overlap.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "autotune/measure/statistics.h"
#include "bench/gpu/gpu_product.h"
#include "bench/harness/rounds.h"
#include "bench/harness/tuned_contender.h"
#include "coconet/base/status.h"
#include "coconet/schedule/schedule.h"
#include "coconet/workloads/workloads.h"
#include "jit/config/config.h"

namespace coconet::bench {
namespace {

constexpr int kTraces = 9, kCandidates = 4;

absl::StatusOr<std::unique_ptr<TunedContender>> Tune(Rank& rank, const GpuOverlapCase& c,
                                                     const Graph& program, bool overlaps) {
  SessionOptions options;
  options.cache_file = ":none:";
  options.budget_s = c.budget_s;
  options.admits = [overlaps](const Schedule& s, const Config&) {
    return s.overlaps().empty() != overlaps;
  };
  return TunedContender::Make(rank, options, program);
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
double Fastest(const std::vector<Measured>& measured, absl::string_view name) {
  double us = 0;
  for (const Measured& m : measured) {
    if (m.name == name && (us == 0 || m.timing.median_us < us)) us = m.timing.median_us;
  }
  return us;
}

Row RowOf(const Rank& rank, const GpuOverlapCase& c, const std::vector<Measured>& measured,
          double beside_us) {
  Row row;
  row.Set("case", "mlp")
      .Set("ranks", int64_t{rank.size()})
      .Set("n", c.rows * c.columns)
      .Set("dtype", std::string(Name(c.dtype)));
  row.Set("m", c.rows)
      .Set("k", c.inner)
      .Set("columns", c.columns)
      .Set("device", rank.topology().device);
  for (const Measured& m : measured) {
    if (m.name != "ours" && m.name != "sequential") continue;
    row.Set(m.name + "_us", m.timing.median_us)
        .Set(m.name + "_low_us", m.timing.low_us)
        .Set(m.name + "_high_us", m.timing.high_us);
    row.Set("rounds", int64_t{m.timing.samples});
  }
  const double ours = row.Number("ours_us"), sequential = row.Number("sequential_us"),
               product = Fastest(measured, "product");
  row.Set("product_us", product)
      .Set("over_sequential", sequential / ours)
      .Set("bound", sequential / std::max(product, sequential - product));
  if (beside_us > 0) {
    const double same = Fastest(measured, "product_same");
    row.Set("product_beside_us", beside_us)
        .Set("product_same_us", same)
        .Set("of_product", same / beside_us);
  }
  return row;
}

}  // namespace

absl::StatusOr<Row> MeasureGpuOverlap(Rank& rank, const GpuOverlapCase& c) {
  ASSIGN_OR_RETURN(const Graph symbolic, MakeWorkload("mlp", {.dtype = c.dtype}));
  ASSIGN_OR_RETURN(
      const Graph program,
      BindSizes(symbolic,
                {{"B", 1}, {"S", c.rows}, {"K", c.inner * rank.size()}, {"H", c.columns}}));
  ASSIGN_OR_RETURN(const std::unique_ptr<TunedContender> ours, Tune(rank, c, program, true));
  ASSIGN_OR_RETURN(const std::unique_ptr<TunedContender> sequential, Tune(rank, c, program, false));
  const bool gpu = rank.topology().multiprocessors > 0;
  const int beside = gpu ? ours->program().record().best.config.beside : 0;
  std::vector<Contender> contenders = {
      {"ours", [&](int64_t steps) { return ours->Run(steps); }},
      {"sequential", [&](int64_t steps) { return sequential->Run(steps); }}};
  std::vector<std::unique_ptr<Product>> products;
  for (int candidate = 0; candidate < (gpu ? kCandidates : 1); ++candidate) {
    for (const bool same : {false, true}) {
      absl::StatusOr<std::unique_ptr<Product>> product =
          Product::Make(rank, {.rows = c.rows,
                               .inner = c.inner,
                               .columns = c.columns,
                               .dtype = c.dtype,
                               .candidate = candidate,
                               .beside = same ? beside : 0});
      if (absl::IsOutOfRange(product.status())) continue;  // no further algorithm
      ASSIGN_OR_RETURN(products.emplace_back(), std::move(product));
      contenders.push_back(
          {same ? "product_same" : "product",
           [it = products.back().get()](int64_t steps) { return it->Run(steps); }});
    }
  }
  ASSIGN_OR_RETURN(const std::vector<Measured> measured,
                   MeasureInRounds(rank, contenders, {.seconds = c.seconds}));
  ASSIGN_OR_RETURN(const double beside_us, ProductTime(rank, *ours));
  if (rank.rank() != 0) return Row();
  Row row = RowOf(rank, c, measured, beside_us);
  row.Set("beside", int64_t{beside}).Set("ours_variant", Words(ours->program().record().best));
  row.Set("sequential_variant", Words(sequential->program().record().best));
  return row;
}

}  // namespace coconet::bench
