#include "bench/embedding/embedding.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/baselines/mpi_settings.h"
#include "bench/harness/finding.h"
#include "bench/harness/launch.h"
#include "bench/harness/machine.h"
#include "bench/harness/user.h"
#include "bench/nodes/node_row.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

/// The times of ours in both orders of destinations, which differ in that alone.
void SetOrders(const std::vector<Finding>& found, Row& row) {
  const Finding* const other = FastestOf(found, "other_order");
  if (other == nullptr) return;  // the schedule that was picked has no such order
  const std::string picked = FactOf(found, "order");
  const Timing& ours = FastestOf(found, "ours")->timing;
  SetTime(row, "remote_first", picked == "plain" ? other->timing : ours);
  SetTime(row, "plain_order", picked == "plain" ? ours : other->timing);
  row.Set("order_ratio", row.Number("plain_order_us") / row.Number("remote_first_us"));
  row.Set("order_picked", picked);
}

absl::Status MeasureExchanged(const EmbeddingCase& c, int ranks, const std::string& scratch,
                              Row& row) {
  ASSIGN_OR_RETURN(
      const SettingFindings best,
      RunWithBestSetting(ranks, Arguments(c), scratch, [](const std::vector<Finding>& found) {
        return FastestOf(found, "baseline")->timing.median_us;
      }));
  for (absl::string_view side : {"ours", "pooling", "baseline", "loop"})
    SetTime(row, side, FastestOf(best.found, side)->timing);
  const double ours_us = row.Number("ours_us"), loop_us = row.Number("loop_us"),
               baseline_us = row.Number("baseline_us");
  row.Set("rounds", FastestOf(best.found, "ours")->timing.samples);
  row.Set("variant", FactOf(best.found, "variant", "ours"));
  row.Set("pooling_variant", FactOf(best.found, "variant", "pooling"));
  row.Set("imbalance", std::stod(FactOf(best.found, "imbalance")));
  row.Set("sets", CountOf(best.found, "sets"));
  row.Set("baseline_pools_by", FactOf(best.found, "pools_by"));
  row.Set("bound_us", row.Number("pooling_us"));
  row.Set("of_bound", row.Number("bound_us") / ours_us);
  row.Set("ratio", baseline_us / ours_us).Set("ceiling", baseline_us / loop_us);
  row.Set("of_ceiling", loop_us / ours_us)
      .Set("pooling_vs_loop", loop_us / row.Number("pooling_us"));
  SetOrders(best.found, row);
  row.Set("mpi_setting", best.setting);
  return absl::OkStatus();
}

absl::Status MeasureAlone(const EmbeddingCase& c, const std::string& scratch, Row& row) {
  ASSIGN_OR_RETURN(
      const std::vector<Finding> found,
      RunWorker({.processes = 1,
                 .arguments = Arguments(c),
                 .environment = {absl::StrCat("COCONET_CACHE_DIR=", scratch, "/cache")},
                 .scratch = scratch}));
  for (absl::string_view side : {"ours", "loop", "fbgemm"}) {
    if (FastestOf(found, side) != nullptr) SetTime(row, side, FastestOf(found, side)->timing);
  }
  row.Set("rounds", FastestOf(found, "ours")->timing.samples);
  row.Set("variant", FactOf(found, "variant")).Set("sets", CountOf(found, "sets"));
  row.Set("pooling_vs_loop", row.Number("loop_us") / row.Number("ours_us"));
  row.Set("fbgemm", FactOf(found, "fbgemm_is"));
  if (row.Number("fbgemm_us") > 0)
    row.Set("fbgemm_ratio", row.Number("fbgemm_us") / row.Number("ours_us"));
  return absl::OkStatus();
}

absl::Status MeasureOnNodes(const EmbeddingCase& c, const std::string& scratch, Row& row) {
  EmbeddingCase parts = c;
  parts.work = EmbeddingCase::Work::kNodesParts;
  ASSIGN_OR_RETURN(const std::vector<Finding> found,
                   MeasureOnTwoNodes(Arguments(parts), Arguments(c), scratch, "nodes", row));
  row.Set("imbalance", NumberOf(found, "imbalance"));
  return absl::OkStatus();
}

absl::Status MeasureCase(const EmbeddingCase& c, int ranks, const std::string& scratch, Row& row) {
  switch (c.work) {
    case EmbeddingCase::Work::kExchanged:
      return MeasureExchanged(c, ranks, scratch, row);
    case EmbeddingCase::Work::kPooling:
      return MeasureAlone(c, scratch, row);
    case EmbeddingCase::Work::kNodes:
    case EmbeddingCase::Work::kNodesParts:
      break;
  }
  return MeasureOnNodes(c, scratch, row);
}

std::vector<Bar> BarsOf(absl::string_view name, const EmbeddingCase& c, const Row& row) {
  if (c.work == EmbeddingCase::Work::kPooling) {
    if (row.Number("fbgemm_us") == 0) return {};
    return {{"fbgemm_ratio", Bar::Side::kAtLeast, 0.95}};
  }
  if (c.work == EmbeddingCase::Work::kNodes) return {{"of_ceiling", Bar::Side::kAtLeast, 0.9}};
  std::vector<Bar> bars = {{"of_bound", Bar::Side::kAtLeast, 0.9},
                           {"of_ceiling", Bar::Side::kAtLeast, 0.9}};
  if (name == "low") bars.push_back({"ratio", Bar::Side::kAtLeast, 1.25});
  return bars;
}

}  // namespace

absl::StatusOr<Row> EmbeddingRow(absl::string_view name, const EmbeddingCase& c, int ranks,
                                 const std::string& scratch) {
  Row row;
  const std::string indices = c.zipf == 0 ? "uniform" : "zipf";
  row.Set("case", std::string(name)).Set("ranks", int64_t{ranks});
  row.Set("dtype", std::string(Name(c.dtype))).Set("indices", indices).Set("what", indices);
  row.Set("tables", static_cast<int64_t>(c.lookups.size())).Set("rows", c.rows);
  row.Set("columns", c.columns).Set("samples", c.samples).Set("budget_s", c.budget_s);
  row.Set("load_before", LoadAverage());
  AddMachine(row);
  const absl::Status status = MeasureCase(c, ranks, scratch, row);
  if (absl::IsCancelled(status) || absl::IsUnavailable(status)) return status;
  if (!status.ok()) row.Set("error", std::string(status.message()));
  if (!IsQuick()) row.SetBars(BarsOf(name, c, row));
  return row;
}

}  // namespace coconet::bench
