// Prints how long whole training steps take, beside the matrix products in them alone.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/harness/finding.h"
#include "bench/harness/machine.h"
#include "bench/harness/rounds.h"
#include "bench/harness/tuned_contender.h"
#include "bench/harness/user.h"
#include "bench/iteration/model_flags.h"
#include "bench/iteration/numbers.h"
#include "bench/iteration/products.h"
#include "bench/iteration/torch.h"
#include "coconet/base/status.h"
#include "coconet/workloads/training_steps.h"
#include "runtime/world.h"

ABSL_FLAG(int, ranks, 2, "threads of this process");
ABSL_FLAG(std::string, torch, "", "a Python interpreter that has PyTorch");

namespace coconet::bench {
namespace {

absl::Status MeasureStep(Rank& rank, const GptModel& s, double budget_s, Row& row) {
  ASSIGN_OR_RETURN(const Graph program, GptStep(s));
  SessionOptions options;
  options.budget_s = budget_s;
  options.cache_file = ":none:";
  ASSIGN_OR_RETURN(const std::unique_ptr<TunedContender> ours,
                   TunedContender::Make(rank, options, program, NumbersOf(s)));
  ASSIGN_OR_RETURN(Products products, Products::Of(program));
  const std::vector<Contender> contenders = {
      {"ours", [&](int64_t steps) { return ours->Run(steps); }},
      {"products", [&](int64_t steps) -> absl::Status {
         for (int64_t i = 0; i < steps; ++i) RETURN_IF_ERROR(products.Run());
         return absl::OkStatus();
       }}};
  ASSIGN_OR_RETURN(const std::vector<Finding> measured,
                   MeasureInRounds(rank, contenders, {.seconds = IsQuick() ? 0.3 : 10}));
  if (rank.rank() != 0) return absl::OkStatus();
  const TuningRecord& record = ours->program().record();
  row.Set("operations", int64_t{program.size()}).Set("products", int64_t{products.count()});
  row.Set("gflop", products.flops() / 1e9).Set("variants", int64_t{record.variants});
  row.Set("tried", int64_t{record.search.tried}).Set("variant", Words(record.best));
  for (const Finding& m : measured) SetTime(row, m.side, m.timing);
  row.Set("over_products", row.Number("ours_us") / row.Number("products_us"));
  return absl::OkStatus();
}

/// Adds what PyTorch takes for the same step, or why that is absent.
absl::Status AddTorch(const GptModel& s, Row& row) {
  const std::string python = absl::GetFlag(FLAGS_torch);
  absl::StatusOr<TorchStep> torch = absl::UnavailableError("no --torch=PYTHON");
  if (!python.empty())
    torch = MeasureTorch(python, s, absl::GetFlag(FLAGS_ranks), IsQuick() ? 0.3 : 10);
  if (absl::IsUnavailable(torch.status())) {
    row.Set("torch", absl::StrCat("absent: ", torch.status().message()));
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(torch.status());
  row.Set("torch", torch->version).Set("torch_form", torch->form);
  row.Set("torch_products", int64_t{torch->count});
  SetTime(row, "torch", torch->step);
  SetTime(row, "torch_products", torch->products);
  row.Set("torch_over_products", row.Number("torch_us") / row.Number("torch_products_us"));
  return absl::OkStatus();
}

absl::Status RunAll() {
  const GptModel s = IsQuick() ? QuickModel() : ModelOfFlags();
  const double budget_s = TuningBudget(/*usual=*/120, /*quick=*/10);
  Row row;
  row.Set("case", std::string("node")).Set("ranks", int64_t{absl::GetFlag(FLAGS_ranks)});
  row.Set("dtype", std::string("f32")).Set("layers", s.layers).Set("width", s.width);
  row.Set("vocabulary", s.vocabulary).Set("tokens", s.tokens()).Set("sequence", s.sequence);
  row.Set("budget_s", budget_s).Set("load_before", LoadAverage());
  AddMachine(row);
  absl::Status status = RunWorld({.ranks = absl::GetFlag(FLAGS_ranks)},
                                 [&](Rank& rank) { return MeasureStep(rank, s, budget_s, row); });
  if (status.ok()) status = AddTorch(s, row);
  if (!status.ok()) row.Set("error", std::string(status.message()));
  constexpr int64_t kTokensOfBar = 512;
  std::vector<Bar> bars = {{"over_products", Bar::Side::kAtMost, 1.35}};
  if (const double torch = row.Number("torch_over_products"); torch > 0)
    bars.push_back({"over_products", Bar::Side::kAtMost, torch});
  if (s.tokens() >= kTokensOfBar) row.SetBars(bars);
  const std::vector<Column> columns = ColumnsOf(
      "case, ranks|%.0f, layers|%.0f, width|%.0f, tokens|%.0f, operations|%.0f, ours|time, "
      "products|time, over products|ratio, torch|time, its products|time|torch_products_us, "
      "over them|ratio|torch_over_products, bar, met, variant|*",
      {{"variant", [](const Row& r) { return TextOrError(r, "variant").substr(0, 80); }}});
  return Show({row}, columns);
}

const Registered kBenchmark(
    {.name = "iteration",
     .usage = "measures whole training steps; see bench/README.md\n\n  iteration [--ranks=2] "
              "[--layers=2] [--width=64] [--vocabulary=128] [--sequence=16] [--examples=2] "
              "[--torch=PYTHON] [--budget=120] [--quick] "
              "[--json=FILE] [--markdown=FILE]",
     .run = RunAll});

}  // namespace
}  // namespace coconet::bench
