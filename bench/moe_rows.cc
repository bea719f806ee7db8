#include "bench/moe_rows.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/cluster_link.h"
#include "bench/launch.h"
#include "bench/machine.h"
#include "bench/summary.h"
#include "bench/user.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

constexpr int kNodes = 2;

absl::StatusOr<std::vector<Finding>> RunAt(const std::string& rate, const MoeCase& c,
                                           const std::string& scratch) {
  return RunWorker({.processes = kNodes,
                    .launcher = ClusterLauncher(kNodes, /*ranks_per_node=*/1, rate),
                    .arguments = Arguments(c),
                    .environment = {absl::StrCat("COCONET_CACHE_DIR=", scratch, "/moe")},
                    .scratch = scratch});
}

double FactNumber(const std::vector<Finding>& found, absl::string_view fact) {
  double number = 0;
  return absl::SimpleAtod(FactOf(found, fact), &number) ? number : 0;
}

StepParts PartsOf(const std::vector<Finding>& found) {
  return {.computation_us = FastestOf(found, "computation")->timing.median_us,
          .sending_us = FastestOf(found, "sending")->timing.median_us};
}

absl::StatusOr<StepParts> PartsAt(const std::string& rate, const MoeCase& c,
                                  const std::string& scratch) {
  ASSIGN_OR_RETURN(const std::vector<Finding> found, RunAt(rate, c, scratch));
  return PartsOf(found);
}

absl::Status Measure(const MoeCase& c, const std::string& scratch, Row& row) {
  MoeCase parts = c;
  parts.parts_only = true;
  // The bytes that leave a node are known to its ranks; every run reports them.
  ASSIGN_OR_RETURN(const std::vector<Finding> first, RunAt("none", parts, scratch));
  const WantedShare wanted = IsQuick() ? WantedShare{.least = 0, .most = 1e9} : WantedShare{};
  ASSIGN_OR_RETURN(const LinkRate link,
                   ChooseLinkRate(CountOf(first, "bytes"), wanted, [&](const std::string& rate) {
                     return rate == "none" ? absl::StatusOr<StepParts>(PartsOf(first))
                                           : PartsAt(rate, parts, scratch);
                   }));
  row.Set("link", link.rate);
  ASSIGN_OR_RETURN(const std::vector<Finding> found, RunAt(link.rate, c, scratch));
  for (absl::string_view side : {"ours", "sequential", "computation", "sending"})
    SetTime(row, side, FastestOf(found, side)->timing);
  const StepParts of_row = PartsOf(found);
  const double processor_us = FactNumber(found, "sending_processor_us"),
               both_us = of_row.computation_us + of_row.sending_us,
               bound_us = OverlapBound(of_row, processor_us), ours_us = row.Number("ours_us");
  row.Set("rounds", FastestOf(found, "ours")->timing.samples);
  row.Set("variant", FactOf(found, "variant", "ours"));
  row.Set("sequential_variant", FactOf(found, "variant", "sequential"));
  row.Set("sending_processor_us", processor_us).Set("share", of_row.share());
  row.Set("bytes", CountOf(found, "bytes")).Set("capacity", CountOf(found, "capacity"));
  row.Set("imbalance", FactNumber(found, "imbalance"));
  row.Set("bound_us", bound_us).Set("of_bound", bound_us / ours_us);
  row.Set("baseline_us", row.Number("sequential_us"));
  row.Set("ratio", row.Number("sequential_us") / ours_us);
  row.Set("ceiling", both_us / bound_us).Set("of_ceiling", bound_us / ours_us);
  return absl::OkStatus();
}

}  // namespace

std::vector<MoeCase> MoeCases(DType dtype) {
  std::vector<MoeCase> cases;
  for (const auto& [experts, per_token, inner] :
       {std::tuple<int64_t, int64_t, int64_t>{8, 2, 1024}, {64, 6, 256}}) {
    if (IsQuick() && experts > 8) continue;
    for (double zipf : {0.0, 0.7}) {
      cases.push_back({.dtype = dtype,
                       .experts = experts,
                       .per_token = per_token,
                       .tokens = IsQuick() ? 32 : 512,
                       .hidden = IsQuick() ? 64 : 1024,
                       .inner = IsQuick() ? 64 : inner,
                       .zipf = zipf,
                       .seconds = IsQuick() ? 0.3 : 8,
                       .budget_s = TuningBudget(/*usual=*/60, /*quick=*/5)});
    }
  }
  return cases;
}

absl::StatusOr<Row> MoeRow(const MoeCase& c, const std::string& scratch) {
  Row row;
  row.Set("case", "moe").Set("ranks", int64_t{kNodes}).Set("dtype", std::string(Name(c.dtype)));
  row.Set("what", absl::StrCat(c.experts, " experts, ", c.zipf == 0 ? "balanced" : "skewed"));
  row.Set("experts", c.experts).Set("per_token", c.per_token).Set("tokens", c.tokens);
  row.Set("hidden", c.hidden).Set("inner", c.inner).Set("zipf", c.zipf);
  row.Set("budget_s", c.budget_s).Set("load_before", LoadAverage());
  AddMachine(row);
  const absl::Status status = Measure(c, scratch, row);
  if (absl::IsCancelled(status) || absl::IsUnavailable(status)) return status;
  if (!status.ok()) row.Set("error", std::string(status.message()));
  if (!IsQuick()) row.SetBars({{"of_ceiling", Bar::Side::kAtLeast, 0.85}});
  return row;
}

}  // namespace coconet::bench
