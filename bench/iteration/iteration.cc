// Prints how long whole training steps take, beside the matrix products in them alone.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "autotune/cost/work.h"
#include "bench/baselines/array.h"
#include "bench/baselines/gemm.h"
#include "bench/harness/machine.h"
#include "bench/harness/rounds.h"
#include "bench/harness/user.h"
#include "bench/iteration/step.h"
#include "coconet/base/status.h"
#include "coconet/workloads/training_steps.h"
#include "runtime/world.h"

ABSL_FLAG(int, ranks, 2, "threads of this process");
ABSL_FLAG(std::string, torch, "", "a Python interpreter that has PyTorch");

namespace coconet::bench {
namespace {

/// The matrix products of a program on one rank, by oneDNN on one thread, one after the other: the
/// bound of a step that computes them so. Each has operands of its own, as in a step. Transposed
/// operands are multiplied as if they were not transposed, which is no slower.
class Products {
 public:
  /// `program` is bound.
  static absl::StatusOr<Products> Of(const Graph& program) {
    ASSIGN_OR_RETURN(const TypedGraph typed, TypedGraph::Of(program));
    Products products;
    for (NodeId id = 0; id < typed.size(); ++id) {
      if (As<MatMul>(program, id) == nullptr) continue;
      const Work work = WorkOf(typed, {id}, Target(1));
      const GemmSize size{.m = work.m, .n = work.n, .k = work.k};
      if (size.flops() == 0) continue;
      const auto element = static_cast<int64_t>(SizeOf(work.dtype));
      One one{.batches = work.batch,
              .a_bytes = size.m * size.k * element,
              .b_bytes = size.k * size.n * element,
              .c_bytes = size.m * size.n * element};
      ASSIGN_OR_RETURN(one.a, Array::Allocate(one.batches * one.a_bytes));
      ASSIGN_OR_RETURN(one.b, Array::Allocate(one.batches * one.b_bytes));
      ASSIGN_OR_RETURN(one.c, Array::Allocate(one.batches * one.c_bytes));
      ASSIGN_OR_RETURN(one.gemm,
                       OneDnnGemm::Make(work.dtype, size, OneDnnGemm::Weights::kAsTheyLie));
      products.flops_ += static_cast<double>(one.batches) * size.flops();
      products.all_.push_back(std::move(one));
    }
    return products;
  }

  absl::Status Run() {
    for (const One& one : all_) {
      for (int64_t i = 0; i < one.batches; ++i) {
        RETURN_IF_ERROR(one.gemm->SetWeights(one.b.as<char>() + i * one.b_bytes));
        RETURN_IF_ERROR(
            one.gemm->Run(one.a.as<char>() + i * one.a_bytes, one.c.as<char>() + i * one.c_bytes));
      }
    }
    return absl::OkStatus();
  }
  int64_t count() const { return std::ssize(all_); }
  double flops() const { return flops_; }

 private:
  struct One {
    std::unique_ptr<OneDnnGemm> gemm = nullptr;
    Array a = {}, b = {}, c = {};
    int64_t batches = 1, a_bytes = 0, b_bytes = 0, c_bytes = 0;  // of one batch
  };
  std::vector<One> all_;
  double flops_ = 0;
};

absl::Status MeasureStep(Rank& rank, const Sizes& sizes, double budget_s, Row& row) {
  ASSIGN_OR_RETURN(const Graph program, MakeTrainingStep("gpt_step", sizes));
  ASSIGN_OR_RETURN(Products products, Products::Of(program));
  Contenders contenders(rank, budget_s);
  contenders.options().cache_file = ":none:";
  RETURN_IF_ERROR(contenders.Tune("ours", program, nullptr, NumbersOf(sizes)));
  contenders.AddStep("products", [&] { return products.Run(); });
  ASSIGN_OR_RETURN(const std::vector<Finding> measured,
                   contenders.Measure({.seconds = IsQuick() ? 0.3 : 10}));
  if (rank.rank() != 0) return absl::OkStatus();
  const TuningRecord& record = contenders.last().program().record();
  row.Set("operations", int64_t{program.size()}).Set("products", products.count());
  row.Set("gflop", products.flops() / 1e9).Set("variants", int64_t{record.variants});
  row.Set("tried", int64_t{record.search.tried});
  SetFindings(row, measured);
  row.Set("over_products", row.Number("ours_us") / row.Number("products_us"));
  return absl::OkStatus();
}

absl::Status MeasureRow(const Sizes& sizes, int ranks, double budget_s, Row& row) {
  RETURN_IF_ERROR(RunWorld({.ranks = ranks},
                           [&](Rank& rank) { return MeasureStep(rank, sizes, budget_s, row); }));
  return SetTorch({.python = absl::GetFlag(FLAGS_torch)}, sizes, ranks, IsQuick() ? 0.3 : 10, row);
}

absl::Status RunAll() {
  const Sizes sizes = SizesOf("gpt_step");
  const int ranks = absl::GetFlag(FLAGS_ranks);
  const double budget_s = TuningBudget(/*usual=*/120, /*quick=*/10);
  const auto measure = [&](const std::string& /*scratch*/, Row& row) {
    const absl::Status status = MeasureRow(sizes, ranks, budget_s, row);
    std::vector<Bar> bars = BarsOf("over_products <= 1.35");
    if (const double torch = row.Number("torch_over_products"); torch > 0)
      bars.push_back({"over_products", Bar::Side::kAtMost, torch});
    if (TokensOf(sizes) >= kTokensOfBar) row.SetBars(bars);
    return status;
  };
  RowTask task{"gpt_step", Row(), measure};
  task.row.Set("case", "node").Set("ranks", ranks).Set("dtype", "f32");
  SetSizes(sizes, task.row);
  task.row.Set("budget_s", budget_s);
  const std::vector<Column> columns = ColumnsOf(
      "case, ranks|%.0f, layers|%.0f, width|%.0f, tokens|%.0f, operations|%.0f, ours|time, "
      "products|time, over products|ratio, torch|time, its products|time|torch_products_us, "
      "over them|ratio|torch_over_products, bar, met, variant|*",
      {{"variant", [](const Row& r) { return TextOrError(r, "variant").substr(0, 80); }}});
  return MeasureRows({task}, columns);
}

const Registered kBenchmark({.name = "iteration",
                             .purpose = "measures whole training steps",
                             .heeds = {"quick", "budget"},
                             .positive = {"ranks"},
                             .run = RunAll});

}  // namespace
}  // namespace coconet::bench
