// Overlap of computation and communication across two nodes, and the boundary of two pipeline
// stages, on a small cluster of network namespaces. README.md in this folder says what the rows
// mean.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/cluster_link.h"
#include "bench/launch.h"
#include "bench/model_cases.h"
#include "bench/model_table.h"
#include "bench/user.h"
#include "coconet/base/status.h"

ABSL_FLAG(std::string, rate, "2gbit", "of each node's link, each way, as tc(8) writes it");

namespace coconet::bench {
namespace {

constexpr int kNodes = 2;

struct ClusterCase {
  const char* name;
  ModelCase what;
  int ranks_per_node;
  bool has_bars;
};

std::vector<ClusterCase> Cases() {
  const bool quick = IsQuick();
  const int64_t tokens = quick ? 64 : 512, wide = quick ? 256 : 2048, hidden = quick ? 128 : 1024;
  const Sizes product = {{"B", 1}, {"S", tokens}, {"H", hidden}, {"K", wide}},
              boundary = {{"B", 1}, {"S", 4 * tokens}, {"H", hidden}};
  std::vector<ClusterCase> cases = {
      {"attention", {.kind = ModelCase::Kind::kAcross, .sizes = product}, 1, true},
      {"attention", {.kind = ModelCase::Kind::kAcross, .sizes = product}, 2, false},
      {"pipeline", {.kind = ModelCase::Kind::kPipeline, .sizes = boundary}, 2, true},
      {"pipeline",
       {.kind = ModelCase::Kind::kPipeline, .dtype = DType::kBF16, .sizes = boundary},
       2,
       true},
  };
  for (ClusterCase& c : cases) {
    c.what.budget_s = TuningBudget(/*usual=*/40, /*quick=*/5);
    c.what.seconds = quick ? 1 : 12;
  }
  return cases;
}

Launch OnCluster(const ClusterCase& c, const std::string& scratch) {
  return {.processes = kNodes * c.ranks_per_node,
          .launcher = ClusterLauncher(kNodes, c.ranks_per_node, absl::GetFlag(FLAGS_rate)),
          .arguments = Arguments(c.what),
          .scratch = scratch};
}

/// Sets the ratios between the times of a worker.
void SetRatios(const ClusterCase& c, Row& row) {
  const double overlapped = row.Number("overlapped_us"), sequential = row.Number("sequential_us");
  row.Set("ratio", sequential / overlapped);
  std::vector<Bar> bars;
  if (c.what.kind == ModelCase::Kind::kAcross) {
    const double could = std::min(row.Number("computation_us"), row.Number("communication_us"));
    row.Set("hidden", (sequential - overlapped) / could);
    bars = {{"ratio", Bar::Side::kAtLeast, 1.3}, {"hidden", Bar::Side::kAtLeast, 0.6}};
  } else {
    row.Set("vs_slices", row.Number("slices_us") / overlapped);
    row.Set("vs_slices_at_most", row.Number("slices_us") / row.Number("communication_us"));
    bars = {{"ratio", Bar::Side::kAtLeast, 1.8}, {"vs_slices", Bar::Side::kAtLeast, 1.1}};
  }
  if (c.has_bars && !IsQuick()) row.SetBars(bars);
}

absl::Status MeasureAll(const std::string& scratch, std::vector<Row>& rows) {
  for (const ClusterCase& c : Cases()) {
    absl::FPrintF(stderr, "%s, %s, %d %s per node\n", c.name, Name(c.what.dtype), c.ranks_per_node,
                  c.ranks_per_node == 1 ? "rank" : "ranks");
    Row row = NewModelRow(c.name, c.what, kNodes * c.ranks_per_node,
                          absl::StrCat(kNodes, " nodes, ", c.ranks_per_node,
                                       c.ranks_per_node == 1 ? " rank each" : " ranks each"));
    row.Set("link", absl::GetFlag(FLAGS_rate));
    const absl::StatusOr<std::vector<Finding>> found = RunWorker(OnCluster(c, scratch));
    if (absl::IsCancelled(found.status()) || absl::IsUnavailable(found.status()))
      return found.status();
    if (found.ok()) {
      SetSides(row, *found);
      SetRatios(c, row);
    } else {
      SetError(row, found.status());
    }
    rows.push_back(std::move(row));
  }
  return absl::OkStatus();
}

std::vector<Column> Columns() {
  return {
      {"case",
       [](const Row& row) {
         return absl::StrCat(TextOf(row, "case"), ", ", TextOf(row, "processes"));
       }},
      {"dtype", [](const Row& row) { return TextOf(row, "dtype"); }},
      {"overlapped", [](const Row& row) { return TimeText(row.Number("overlapped_us")); }},
      {"sequential", [](const Row& row) { return TimeText(row.Number("sequential_us")); }},
      {"ratio", [](const Row& row) { return RatioOf(row, "ratio"); }},
      {"slices", [](const Row& row) { return TimeText(row.Number("slices_us")); }},
      {"ratio", [](const Row& row) { return RatioOf(row, "vs_slices"); }},
      {"at most", [](const Row& row) { return RatioOf(row, "vs_slices_at_most"); }},
      {"computation", [](const Row& row) { return TimeText(row.Number("computation_us")); }},
      {"communication", [](const Row& row) { return TimeText(row.Number("communication_us")); }},
      {"its cores", [](const Row& row) { return RatioOf(row, "communication_cores"); }},
      {"hidden", [](const Row& row) { return RatioOf(row, "hidden"); }},
      {"bar", [](const Row& row) { return TextOf(row, "bar"); }},
      {"met", MetOf},
      {"variant", [](const Row& row) { return TextOrError(row, "overlapped_variant"); }}};
}

}  // namespace
}  // namespace coconet::bench

int main(int argc, char** argv) {
  return coconet::bench::ModelMain(argc, argv, "cluster", coconet::bench::Columns(),
                                   coconet::bench::MeasureAll);
}
