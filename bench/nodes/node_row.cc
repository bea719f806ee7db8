#include "bench/nodes/node_row.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/harness/finding.h"
#include "bench/harness/launch.h"
#include "bench/harness/user.h"
#include "bench/nodes/cluster_link.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

constexpr int kNodes = 2;

StepParts PartsOf(const std::vector<Finding>& found) {
  return {.computation_us = FastestOf(found, "computation")->timing.median_us,
          .sending_us = FastestOf(found, "sending")->timing.median_us};
}

}  // namespace

absl::StatusOr<std::vector<Finding>> MeasureOnTwoNodes(const std::vector<std::string>& parts,
                                                       const std::vector<std::string>& all,
                                                       const std::string& scratch,
                                                       const std::string& name, Row& row) {
  const auto run = [&](const std::string& rate, const std::vector<std::string>& arguments) {
    return RunWorker({.processes = kNodes,
                      .launcher = ClusterLauncher(kNodes, /*ranks_per_node=*/1, rate),
                      .arguments = arguments,
                      .environment = {absl::StrCat("COCONET_CACHE_DIR=", scratch, "/", name)},
                      .scratch = scratch});
  };
  // The bytes that leave a node are known to its ranks; every run reports them.
  ASSIGN_OR_RETURN(const std::vector<Finding> first, run("none", parts));
  const auto parts_at = [&](const std::string& rate) -> absl::StatusOr<StepParts> {
    if (rate == "none") return PartsOf(first);
    ASSIGN_OR_RETURN(const std::vector<Finding> found, run(rate, parts));
    return PartsOf(found);
  };
  const WantedShare wanted = IsQuick() ? WantedShare{.least = 0, .most = 1e9} : WantedShare{};
  ASSIGN_OR_RETURN(const LinkRate link, ChooseLinkRate(CountOf(first, "bytes"), wanted, parts_at));
  row.Set("link", link.rate);
  ASSIGN_OR_RETURN(std::vector<Finding> found, run(link.rate, all));
  for (absl::string_view side : {"ours", "sequential", "computation", "sending"})
    SetTime(row, side, FastestOf(found, side)->timing);
  const StepParts of_row = PartsOf(found);
  const double processor_us = NumberOf(found, "sending_processor_us"),
               both_us = of_row.computation_us + of_row.sending_us,
               bound_us = OverlapBound(of_row, processor_us), ours_us = row.Number("ours_us");
  row.Set("rounds", FastestOf(found, "ours")->timing.samples);
  row.Set("variant", FactOf(found, "variant", "ours"));
  row.Set("sequential_variant", FactOf(found, "variant", "sequential"));
  row.Set("sending_processor_us", processor_us).Set("share", of_row.share());
  row.Set("bytes", CountOf(found, "bytes"));
  row.Set("bound_us", bound_us).Set("of_bound", bound_us / ours_us);
  row.Set("baseline_us", row.Number("sequential_us"));
  row.Set("ratio", row.Number("sequential_us") / ours_us);
  row.Set("ceiling", both_us / bound_us).Set("of_ceiling", bound_us / ours_us);
  return found;
}

}  // namespace coconet::bench
