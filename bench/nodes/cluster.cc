// Overlap of computation and communication across two nodes, and the boundary of two pipeline
// stages, on a small cluster of network namespaces. bench/README.md explains the rows.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/harness/finding.h"
#include "bench/harness/machine.h"
#include "bench/harness/user.h"
#include "bench/layers/model_cases.h"
#include "bench/nodes/node_row.h"
#include "coconet/base/status.h"

ABSL_FLAG(std::string, rate, "",
          "of each node's link, each way, as tc(8) writes it (default: of `attention` the one at "
          "which communication takes 0.6 to 1 of the computation, of `pipeline` 2gbit)");

namespace coconet::bench {
namespace {

struct ClusterCase {
  const char* name;
  ModelCase what;
  int ranks_per_node;
  const char* bars;
};

std::vector<ClusterCase> Cases() {
  const bool quick = IsQuick();
  const int64_t tokens = quick ? 64 : 512, wide = quick ? 256 : 2048, hidden = quick ? 128 : 1024;
  const Sizes product = {{"B", 1}, {"S", tokens}, {"H", hidden}, {"K", wide}},
              boundary = {{"B", 1}, {"S", 4 * tokens}, {"H", hidden}};
  std::vector<ClusterCase> cases = {
      {"attention",
       {.kind = ModelCase::Kind::kAcross, .sizes = product},
       1,
       "ratio >= 1.3, hidden >= 0.6"},
      {"attention", {.kind = ModelCase::Kind::kAcross, .sizes = product}, 2, ""},
      {"pipeline",
       {.kind = ModelCase::Kind::kPipeline, .sizes = boundary},
       2,
       "ratio >= 1.8, vs_slices >= 1.1"},
      {"pipeline",
       {.kind = ModelCase::Kind::kPipeline, .dtype = DType::kBF16, .sizes = boundary},
       2,
       "ratio >= 1.8, vs_slices >= 1.1"},
  };
  for (ClusterCase& c : cases) {
    c.what.budget_s = TuningBudget(/*usual=*/40, /*quick=*/5);
    c.what.seconds = quick ? 1 : 12;
  }
  return cases;
}

TwoNodes NodesOf(const ClusterCase& c, const std::string& scratch) {
  return {.scratch = scratch,
          .cache = "cache",
          .ranks_per_node = c.ranks_per_node,
          .sending = "communication"};
}

/// The rate of the links: --rate; else for stages 2gbit, for the others one that is found by
/// measuring computation and communication alone.
absl::StatusOr<std::string> RateOf(const ClusterCase& c, const std::string& scratch) {
  const std::string given = absl::GetFlag(FLAGS_rate);
  if (!given.empty()) return given;
  if (c.what.kind == ModelCase::Kind::kPipeline) return std::string("2gbit");
  ModelCase parts = c.what;
  parts.parts_only = true;
  parts.budget_s = TuningBudget(/*usual=*/10, /*quick=*/2);
  parts.seconds = IsQuick() ? 0.5 : 3;
  ASSIGN_OR_RETURN(const LinkRate link,
                   NodesOf(c, scratch).FindRate(Arguments(parts), UsualShare()));
  return link.rate;
}

/// Why an overlap gains nothing: what the processor and the link allow, and what of the step is
/// beyond that.
std::string WhyNoGain(const Row& row) {
  const StepParts parts{row.Number("computation_us"), row.Number("communication_us")};
  const double processor_us = row.Number("communication_cores") * parts.sending_us,
               bound_us = OverlapBound(parts, processor_us);
  return absl::StrFormat(
      "computation and the processor's part of communication (%.2g ms), or the link, take %.3g ms; "
      "pieces and waiting %.3g ms more",
      processor_us / 1e3, bound_us / 1e3, (row.Number("overlapped_us") - bound_us) / 1e3);
}

/// Sets the ratios between the times of a worker.
void SetRatios(const ClusterCase& c, Row& row) {
  const double overlapped = row.Number("overlapped_us"), sequential = row.Number("sequential_us");
  row.Set("ratio", sequential / overlapped);
  if (c.what.kind == ModelCase::Kind::kAcross) {
    const double could = std::min(row.Number("computation_us"), row.Number("communication_us"));
    row.Set("hidden", (sequential - overlapped) / could);
    row.Set("share", row.Number("communication_us") / row.Number("computation_us"));
    if (overlapped >= sequential) row.Set("why", WhyNoGain(row));
  } else {
    row.Set("vs_slices", row.Number("slices_us") / overlapped);
    row.Set("vs_slices_at_most", row.Number("slices_us") / row.Number("communication_us"));
  }
}

absl::Status MeasureCase(const ClusterCase& c, const std::string& scratch, Row& row) {
  ASSIGN_OR_RETURN(const std::string rate, RateOf(c, scratch));
  row.Set("link", rate);
  ASSIGN_OR_RETURN(const std::vector<Finding> found,
                   NodesOf(c, scratch).Run(rate, Arguments(c.what)));
  SetFindings(row, found);
  SetRatios(c, row);
  return absl::OkStatus();
}

absl::Status Run() {
  std::vector<RowTask> tasks;
  for (const ClusterCase& c : Cases()) {
    const std::string ranks =
        absl::StrCat(c.ranks_per_node, c.ranks_per_node == 1 ? " rank" : " ranks");
    tasks.push_back(
        {absl::StrCat(c.name, ", ", Name(c.what.dtype), ", ", ranks, " per node"),
         NewModelRow(c.name, c.what, 2 * c.ranks_per_node,
                     absl::StrCat("2 nodes, ", ranks, " each")),
         [c](const std::string& scratch, Row& row) { return MeasureCase(c, scratch, row); },
         c.bars});
  }
  const auto title = [](const Row& row) {
    return absl::StrCat(TextOf(row, "case"), ", ", TextOf(row, "processes"));
  };
  return MeasureRows(
      tasks,
      ColumnsOf("case|*, dtype, link, overlapped|time, sequential|time, ratio|ratio, slices|time, "
                "ratio|ratio|vs_slices, at most|ratio|vs_slices_at_most, computation|time, "
                "communication|time, its cores|ratio|communication_cores, its share|ratio|share, "
                "hidden|ratio, bar, met, variant|result|overlapped_variant, why no gain|text|why",
                {{"case", title}}));
}

const Registered kBenchmark({.name = "cluster",
                             .purpose = "measures layers on several nodes",
                             .heeds = {"quick", "budget"},
                             .run = Run});

}  // namespace
}  // namespace coconet::bench
