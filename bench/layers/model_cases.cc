#include "bench/layers/model_cases.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autotune/command/sizes.h"
#include "bench/baselines/array.h"
#include "bench/harness/tuned_contender.h"
#include "bench/harness/worker.h"
#include "bench/harness/workload.h"
#include "bench/layers/product_baseline.h"
#include "bench/nodes/node_row.h"
#include "coconet/base/status.h"
#include "coconet/schedule/describe.h"

namespace coconet::bench {
namespace {

int64_t SizeOf(const Sizes& sizes, const std::string& symbol) { return sizes.at(symbol).sizes[0]; }

bool Overlaps(const Schedule& schedule, const Config& /*config*/) {
  return !schedule.overlaps().empty();
}

/// OK when both are equal within some roundings of the largest value: sums may be in another order
/// and rounded in between.
absl::Status Agree(DType dtype, absl::string_view what, const std::vector<float>& a,
                   const std::vector<float>& b) {
  constexpr double kRoundings = 16;
  double largest = 0, off = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
    off = std::max(off, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  if (a.size() == b.size() && off <= kRoundings * UnitRoundoff(dtype) * largest)
    return absl::OkStatus();
  return absl::InternalError(absl::StrCat(what, ": results differ by ", off, ", of values up to ",
                                          largest, "; want at most ", kRoundings, " roundings"));
}

/// OK when all of ours compute the same, and not only zeros, except in the first pipeline stage,
/// which receives nothing.
absl::Status CheckOurs(const ModelCase& c, const Contenders& contenders) {
  std::vector<float> first;
  for (size_t i = 0; i < contenders.tuned().size(); ++i) {
    RETURN_IF_ERROR(contenders.tuned()[i]->Run(1));
    ASSIGN_OR_RETURN(std::vector<float> here, contenders.tuned()[i]->Read("y"));
    if (i > 0) RETURN_IF_ERROR(Agree(c.dtype, contenders.timed()[i].name, here, first));
    if (i == 0) first = std::move(here);
  }
  const bool computes = c.kind != ModelCase::Kind::kPipeline || contenders.rank().stage() > 0;
  if (computes && absl::c_all_of(first, [](float value) { return value == 0; }))
    return absl::InternalError("y is all zeros");
  return absl::OkStatus();
}

// ---- A product and its epilogue, against oneDNN and MPI

absl::StatusOr<std::vector<Finding>> Epilogue(Rank& rank, const ModelCase& c) {
  ASSIGN_OR_RETURN(const Graph program, BoundWorkload("attention", c.dtype, c.sizes));
  const ProductCase product = {.rest = ProductCase::Rest::kDropout,
                               .dtype = c.dtype,
                               .tokens = SizeOf(c.sizes, "B") * SizeOf(c.sizes, "S"),
                               .k = SizeOf(c.sizes, "K"),
                               .columns = SizeOf(c.sizes, "H")};
  Contenders contenders(rank, c.budget_s);
  RETURN_IF_ERROR(contenders.Tune("ours", program));
  RETURN_IF_ERROR(contenders.last().Run(1));
  ASSIGN_OR_RETURN(const std::vector<float> ours, contenders.last().Read("y"));
  std::vector<std::unique_ptr<ProductBaseline>> baselines;
  absl::Status alike;
  using Weights = OneDnnGemm::Weights;
  for (const auto& [weights, suffix] :
       {std::pair{Weights::kAsTheyLie, ""}, std::pair{Weights::kPacked, "_packed"}}) {
    for (bool in_f32 : {false, true}) {
      if (in_f32 && c.dtype == DType::kF32) continue;
      ASSIGN_OR_RETURN(baselines.emplace_back(),
                       ProductBaseline::Make(product, {weights, in_f32}, rank));
      ProductBaseline* const it = baselines.back().get();
      const std::string name = absl::StrCat(in_f32 ? "sums in f32" : "sums in the product's type",
                                            it->widens() ? ", product by way of f32" : "");
      RETURN_IF_ERROR(it->Run());
      alike.Update(Agree(c.dtype, absl::StrCat("baseline, ", name), it->Result(), ours));
      contenders.AddStep(absl::StrCat("baseline", suffix), [it] { return it->Run(); }, name);
      contenders.AddStep(absl::StrCat("product", suffix), [it] { return it->RunProduct(); }, name);
    }
  }
  RETURN_IF_ERROR(rank.exchange().Agree(alike));
  // Bytes to move besides the product, if each rank computes its slice: the sums of all ranks and
  // the residual in, the result out to all. A copy moves each twice.
  const int64_t slice = product.tokens * product.columns / rank.size() *
                        static_cast<int64_t>(coconet::SizeOf(c.dtype)),
                bytes = slice * (2 * rank.size() + 1) / 2;
  ASSIGN_OR_RETURN(const Array from, Array::Allocate(bytes));
  ASSIGN_OR_RETURN(const Array to, Array::Allocate(bytes));
  const auto copy = [&] {
    std::memcpy(to.as<char>(), from.as<char>(), static_cast<size_t>(bytes));
    return absl::OkStatus();
  };
  contenders.AddStep("rest", copy, "memcpy");
  return contenders.Measure({.seconds = c.seconds});
}

// ---- Across nodes

/// y = dropout(x . w + b) + r of each rank's own tensors, without communication.
constexpr absl::string_view kComputation = R"(program computation
input x : $0[B, S, K] local
input w : $0[K, H] local
input b : $0[H] replicated
input r : $0[B, S, H] replicated
input seed : i64[] replicated
output y = dropout(matmul(x, w) + b, seed, 0.1) + r
)";

constexpr absl::string_view kCommunication = R"(program communication
input z : $0[B, S, H] local
output y = all_reduce(sum, z)
)";

/// Sends each rank's slice to the next pipeline stage: the least that any schedule of
/// the boundary does.
constexpr absl::string_view kSlices = R"(program slices
input x : $0[B, S, H] sliced(1)
output y = send(x, next)
)";

/// Processor time over wall time of this process while the contender runs.
absl::StatusOr<double> CoresOf(const Contender& contender) {
  const std::clock_t before = std::clock();
  const double start_s = SecondsNow();
  RETURN_IF_ERROR(contender.run(20));
  const double wall_s = SecondsNow() - start_s;
  return static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC / wall_s;
}

absl::StatusOr<std::vector<Finding>> Across(Rank& rank, const ModelCase& c) {
  Contenders contenders(rank, c.budget_s);
  if (!c.parts_only) {
    ASSIGN_OR_RETURN(const Graph program, BoundWorkload("attention", c.dtype, c.sizes));
    RETURN_IF_ERROR(contenders.Tune("overlapped", program, Overlaps));
    RETURN_IF_ERROR(contenders.Tune("sequential", program, IsSequential));
    RETURN_IF_ERROR(CheckOurs(c, contenders));
  }
  Sizes of_rank = c.sizes, of_sum = c.sizes;
  of_rank.insert_or_assign("K", SizeOf(c.sizes, "K") / rank.size());
  of_sum.erase("K");
  ASSIGN_OR_RETURN(const Graph computation, BoundText(kComputation, c.dtype, of_rank));
  RETURN_IF_ERROR(contenders.Tune("computation", computation));
  ASSIGN_OR_RETURN(const Graph communication, BoundText(kCommunication, c.dtype, of_sum));
  RETURN_IF_ERROR(contenders.Tune("communication", communication));
  // Either node sends the other its half of the sums, and later half of the result.
  int64_t bytes = coconet::SizeOf(c.dtype);
  for (const char* symbol : {"B", "S", "H"}) bytes *= SizeOf(c.sizes, symbol);
  contenders.AddFact("bytes", bytes);
  for (size_t i = 0; i < contenders.timed().size() && !c.parts_only; ++i) {
    const Contender& contender = contenders.timed()[i];
    ASSIGN_OR_RETURN(const double cores, CoresOf(contender));
    contenders.AddFact("cores", absl::StrFormat("%.2f", cores), contender.name);
  }
  return contenders.Measure({.seconds = c.seconds});
}

// ---- The boundary of two pipeline stages

absl::StatusOr<std::vector<Finding>> Pipeline(Rank& rank, const ModelCase& c) {
  ASSIGN_OR_RETURN(const Graph program, BoundWorkload("pipeline", c.dtype, c.sizes));
  Contenders contenders(rank, c.budget_s);
  RETURN_IF_ERROR(contenders.Tune("overlapped", program, Overlaps));
  RETURN_IF_ERROR(contenders.Tune("sequential", program, [](const Schedule& s, const Config&) {
    const std::string words = Describe(s);
    return s.overlaps().empty() && absl::StrContains(words, "AR; ") &&
           absl::EndsWith(words, "; send");
  }));
  RETURN_IF_ERROR(contenders.Tune("slices", program, [](const Schedule& s, const Config&) {
    const std::string words = Describe(s);
    return s.overlaps().empty() && absl::StartsWith(words, "RS[") &&
           absl::StrContains(words, "; send[");
  }));
  RETURN_IF_ERROR(CheckOurs(c, contenders));
  ASSIGN_OR_RETURN(const Graph slices, BoundText(kSlices, c.dtype, c.sizes));
  RETURN_IF_ERROR(contenders.Tune("communication", slices));
  return contenders.Measure({.seconds = c.seconds});
}

absl::StatusOr<std::vector<Finding>> MeasureModelCase(Rank& rank, const ModelCase& c) {
  constexpr decltype(&Across) kMeasures[] = {Epilogue, Across, Pipeline};  // by kind
  return kMeasures[static_cast<int>(c.kind)](rank, c);
}

const Worker<ModelCase> kWorker("model", MeasureModelCase, [](const ModelCase& c) {
  return WorldOptions{.ranks = 0, .stages = c.kind == ModelCase::Kind::kPipeline ? 2 : 1};
});

}  // namespace

std::vector<std::string> Arguments(const ModelCase& c) { return kWorker.Arguments(c); }

Row NewModelRow(absl::string_view name, const ModelCase& c, int ranks,
                absl::string_view processes) {
  Row row;
  row.Set("case", std::string(name)).Set("ranks", int64_t{ranks});
  row.Set("processes", std::string(processes)).Set("dtype", std::string(Name(c.dtype)));
  return row.Set("sizes", SizesText(c.sizes)).Set("budget_s", c.budget_s);
}

}  // namespace coconet::bench
