// Prints how long whole training steps take on two nodes, beside their computation and their
// communication alone.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "bench/harness/machine.h"
#include "bench/harness/user.h"
#include "bench/iteration/on_nodes.h"
#include "bench/iteration/step.h"
#include "bench/nodes/node_row.h"
#include "coconet/base/status.h"

ABSL_FLAG(std::string, case, "gpt_step", "what is timed: gpt_step or local_sgd");
ABSL_FLAG(int64_t, local_steps, 0, "of a round of local_sgd; 0: 4");
ABSL_FLAG(double, seconds, 20, "of the rounds");
ABSL_FLAG(std::string, torch, "",
          "a Python interpreter with PyTorch, whose training step is timed, too; \"\": none");
ABSL_FLAG(std::string, timeline, "",
          "a file for the launches of a step: lane, begin and end in microseconds, label");

namespace coconet::bench {
namespace {

absl::Status MeasureRow(const NodesCase& c, const std::string& scratch, Row& row) {
  NodesCase parts = c;
  parts.parts_only = true;
  parts.seconds = std::min(c.seconds, 4.0);
  RETURN_IF_ERROR(MeasureOnTwoNodes(Arguments(parts), Arguments(c), scratch, "nodes", row));
  if (c.program != "gpt_step") return absl::OkStatus();
  if (const double buckets_us = row.Number("buckets_us"); buckets_us > 0)
    row.Set("over_buckets", buckets_us / row.Number("ours_us"));
  // PyTorch's step runs at the row's link rate.
  RETURN_IF_ERROR(SetTorch(
      {.python = absl::GetFlag(FLAGS_torch),
       .arguments = {absl::StrCat("--meeting=", scratch, "/torch"), "--interface=eth0"},
       .launcher = ClusterLauncher(/*nodes=*/2, /*ranks_per_node=*/1, TextOf(row, "link"))},
      c.sizes, /*ranks=*/2, c.seconds, row));
  if (row.Number("torch_us") == 0) return absl::OkStatus();
  row.Set("torch_attention", TextOf(row, "torch_form"));
  row.Set("torch_over_ours", row.Number("torch_us") / row.Number("ours_us"));
  return absl::OkStatus();
}

absl::Status RunAll() {
  NodesCase c{.program = absl::GetFlag(FLAGS_case),
              .seconds = IsQuick() ? 1 : absl::GetFlag(FLAGS_seconds),
              .budget_s = TuningBudget(/*usual=*/60, /*quick=*/10),
              .timeline = Resolve(absl::GetFlag(FLAGS_timeline))};
  c.sizes = SizesOf(c.program);
  const bool is_gpt = c.program == "gpt_step";
  if (const int64_t steps = absl::GetFlag(FLAGS_local_steps); steps != 0 && !is_gpt && !IsQuick())
    c.sizes.insert_or_assign("local_steps", steps);
  const auto measure = [&](const std::string& scratch, Row& row) {
    const absl::Status status = MeasureRow(c, scratch, row);
    row.Set("ratio_of_ceiling", row.Number("ratio") / row.Number("ceiling"));
    std::string bars = "ratio_of_ceiling >= 0.9";
    if (row.Number("buckets_us") > 0) bars += ", over_buckets >= 1";
    if (row.Number("torch_us") > 0) bars += ", torch_over_ours >= 1.1";
    if (TokensOf(c.sizes) >= kTokensOfBar) row.SetBars(BarsOf(bars));
    return status;
  };
  RowTask task{c.program, Row(), measure};
  task.row.Set("case", "nodes").Set("ranks", 2).Set("dtype", "f32").Set("program", c.program);
  SetSizes(c.sizes, task.row);
  task.row.Set("budget_s", c.budget_s);
  const std::vector<Column> columns = ColumnsOf(
      "program, layers|%.0f, width|%.0f, tokens|%.0f, link, c|ratio|share, computation|time, "
      "sending|time, its processor|time|sending_processor_us, ours|time, sequential|time, "
      "ratio|ratio, ceiling|ratio, of ceiling|ratio|ratio_of_ceiling, buckets|time, torch|time, "
      "torch/ours|ratio|torch_over_ours, bar, met, variant|*",
      {{"variant", [](const Row& r) { return TextOrError(r, "variant").substr(0, 120); }}});
  return MeasureRows({task}, columns);
}

const Registered kBenchmark({.name = "nodes",
                             .purpose = "measures whole training steps on two nodes",
                             .heeds = {"quick", "budget"},
                             .words = {{"case", "gpt_step, local_sgd"}},
                             .run = RunAll});

}  // namespace
}  // namespace coconet::bench
