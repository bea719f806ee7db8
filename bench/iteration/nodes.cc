// Prints how long whole training steps take on two nodes, beside their computation and their
// communication alone.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/harness/finding.h"
#include "bench/harness/machine.h"
#include "bench/harness/user.h"
#include "bench/iteration/numbers.h"
#include "bench/iteration/on_nodes.h"
#include "bench/iteration/torch.h"
#include "bench/nodes/node_row.h"
#include "coconet/base/status.h"
#include "jit/compile/temp_dir.h"
#include "runtime/world.h"

ABSL_FLAG(std::string, case, "gpt_step", "what is timed: gpt_step or local_sgd");
ABSL_FLAG(int64_t, layers, 4, "of the model");
ABSL_FLAG(int64_t, width, 0, "of the model; 0: 256, or 512 of local_sgd");
ABSL_FLAG(int64_t, vocabulary, 1000, "of gpt_step");
ABSL_FLAG(int64_t, sequence, 128, "of gpt_step: tokens of an example");
ABSL_FLAG(int64_t, examples, 0, "of a rank; 0: 4, or of local_sgd in each local step 128");
ABSL_FLAG(int64_t, local_steps, 4, "of a round of local_sgd");
ABSL_FLAG(double, seconds, 20, "of the rounds");
ABSL_FLAG(std::string, torch, "",
          "a Python interpreter with PyTorch, whose training step is timed, too; \"\": none");
ABSL_FLAG(std::string, timeline, "",
          "a file for the launches of a step: lane, begin and end in microseconds, what it is");

namespace coconet::bench {
namespace {

/// The flag's value, or `usual` where it is 0.
int64_t Or(int64_t flag, int64_t usual) { return flag == 0 ? usual : flag; }

NodesCase CaseOfFlags() {
  if (IsQuick()) {
    return {
        .name = absl::GetFlag(FLAGS_case),
        .model = QuickModel(),
        .local =
            {.layers = 2, .inputs = 32, .width = 32, .outputs = 8, .examples = 8, .local_steps = 2},
        .seconds = 1,
        .budget_s = TuningBudget(/*usual=*/60, /*quick=*/10),
        .timeline = Resolve(absl::GetFlag(FLAGS_timeline))};
  }
  const int64_t layers = absl::GetFlag(FLAGS_layers), width = absl::GetFlag(FLAGS_width),
                of_gpt = Or(width, 256), of_local = Or(width, 512),
                examples = absl::GetFlag(FLAGS_examples);
  return {.name = absl::GetFlag(FLAGS_case),
          .model = {.layers = layers,
                    .width = of_gpt,
                    .heads = std::max<int64_t>(1, of_gpt / 64),
                    .vocabulary = absl::GetFlag(FLAGS_vocabulary),
                    .sequence = absl::GetFlag(FLAGS_sequence),
                    .examples = Or(examples, 4)},
          .local = {.layers = layers,
                    .inputs = of_local,
                    .width = of_local,
                    .outputs = 64,
                    .examples = Or(examples, 128),
                    .local_steps = absl::GetFlag(FLAGS_local_steps)},
          .seconds = absl::GetFlag(FLAGS_seconds),
          .budget_s = TuningBudget(/*usual=*/60, /*quick=*/10),
          .timeline = Resolve(absl::GetFlag(FLAGS_timeline))};
}

/// Sets the time of PyTorch's step at the row's link rate; "absent" where there is none.
void SetTorch(const NodesCase& c, const std::string& scratch, Row& row) {
  const std::string python = absl::GetFlag(FLAGS_torch);
  row.Set("torch", std::string("absent"));
  if (python.empty()) return;
  const absl::StatusOr<TorchStep> torch =
      MeasureTorchOnNodes(python, c.model, TextOf(row, "link"), scratch, c.seconds);
  if (absl::IsUnavailable(torch.status())) return;
  if (!torch.ok()) {
    row.Set("error", std::string(torch.status().message()));
    return;
  }
  row.Set("torch", torch->version).Set("torch_attention", torch->form);
  SetTime(row, "torch", torch->step);
  row.Set("torch_over_ours", row.Number("torch_us") / row.Number("ours_us"));
}

absl::Status RunAll() {
  const NodesCase c = CaseOfFlags();
  Row row;
  row.Set("case", std::string("nodes")).Set("ranks", int64_t{2}).Set("dtype", std::string("f32"));
  const bool is_gpt = c.name == "gpt_step";
  row.Set("program", c.name).Set("tokens", c.tokens());
  row.Set("layers", is_gpt ? c.model.layers : c.local.layers);
  row.Set("width", is_gpt ? c.model.width : c.local.width);
  if (is_gpt) row.Set("vocabulary", c.model.vocabulary);
  if (!is_gpt) row.Set("local_steps", c.local.local_steps);
  row.Set("budget_s", c.budget_s).Set("load_before", LoadAverage());
  AddMachine(row);
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> scratch, TempDir::Make());
  NodesCase parts = c;
  parts.parts_only = true;
  parts.seconds = std::min(c.seconds, 4.0);
  const absl::StatusOr<std::vector<Finding>> found =
      MeasureOnTwoNodes(Arguments(parts), Arguments(c), scratch->path(), "nodes", row);
  const absl::Status& status = found.status();
  if (found.ok() && is_gpt) {
    SetTime(row, "buckets", FastestOf(*found, "buckets")->timing);
    row.Set("buckets_variant", FactOf(*found, "variant", "buckets"));
  }
  if (!status.ok()) row.Set("error", std::string(status.message()));
  row.Set("ratio_of_ceiling", row.Number("ratio") / row.Number("ceiling"));
  if (status.ok() && is_gpt) {
    row.Set("over_buckets", row.Number("buckets_us") / row.Number("ours_us"));
    SetTorch(c, scratch->path(), row);
  }
  constexpr int64_t kTokensOfBar = 512;
  std::vector<Bar> bars = {{"ratio_of_ceiling", Bar::Side::kAtLeast, 0.9}};
  if (is_gpt) bars.push_back({"over_buckets", Bar::Side::kAtLeast, 1});
  if (row.Number("torch_us") > 0) bars.push_back({"torch_over_ours", Bar::Side::kAtLeast, 1.1});
  if (c.tokens() >= kTokensOfBar) row.SetBars(bars);
  const std::vector<Column> columns = ColumnsOf(
      "program, layers|%.0f, width|%.0f, tokens|%.0f, link, c|ratio|share, computation|time, "
      "sending|time, its processor|time|sending_processor_us, ours|time, sequential|time, "
      "ratio|ratio, ceiling|ratio, of ceiling|ratio|ratio_of_ceiling, buckets|time, torch|time, "
      "torch/ours|ratio|torch_over_ours, bar, met, variant|*",
      {{"variant", [](const Row& r) { return TextOrError(r, "variant").substr(0, 120); }}});
  return Show({row}, columns);
}

const Registered kBenchmark(
    {.name = "nodes",
     .usage = "measures whole training steps on two nodes; see bench/README.md\n\n"
              "  nodes [--case=gpt_step|local_sgd] [--layers=4] [--width=256] "
              "[--vocabulary=1000] [--sequence=128] [--examples=4] "
              "[--local_steps=4] [--torch=PYTHON] [--timeline=FILE] [--budget=60] [--quick] "
              "[--json=FILE] [--markdown=FILE]",
     .run = RunAll});

}  // namespace
}  // namespace coconet::bench
