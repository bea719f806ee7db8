#include "autotune/planning/plan_search.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/algorithm/container.h"
#include "autotune/planning/backtracking.h"
#include "autotune/planning/directed_search.h"
#include "autotune/planning/plan_tasks.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// Plans this near differ in what no measurement tells.
constexpr double kNear = 0.002;
/// The least simulations of a search that PlanSearchOptions::settled ends.
constexpr double kLeastSimulations = 4096;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Whether two plans have the same kernels, buckets and lanes.
bool HaveTheSameGroups(const IterationPlan& a, const IterationPlan& b) {
  for (int item = 0; item < a.graph().size(); ++item) {
    const IterationPlan::Group &x = a.group(a.group_of(item)), &y = b.group(b.group_of(item));
    if (x.items.size() != y.items.size() || x.lane != y.lane) return false;
    if (a.group_of(x.items[0]) != a.group_of(item)) return false;
    // The same partner in one is the same partner in the other.
    if (b.group_of(x.items[0]) != b.group_of(item)) return false;
  }
  return true;
}

}  // namespace

PlanRecord::PlanRecord(const PlanSearchOptions& options) : options_(options), begin_(Now()) {}

double PlanRecord::seconds() const { return Now() - begin_; }

double PlanRecord::best_us() const {
  return plans_.empty() ? std::numeric_limits<double>::infinity() : plans_[0].us;
}

PlanProgress PlanRecord::Progress() const {
  return {seconds(), evaluations_, best_us(), plans_.empty() ? 0 : BoundOf(best())};
}

void PlanRecord::Count() {
  ++evaluations_;
  if (!options_.progress || plans_.empty() || evaluations_ % 64 != 0) return;
  const double now = seconds();
  if (now - reported_ < 1) return;
  reported_ = now;
  options_.progress(Progress());
}

bool PlanRecord::GoOn() const {
  const double settled =
      std::max(options_.settled * static_cast<double>(gained_at_), kLeastSimulations);
  if (options_.settled > 0 && static_cast<double>(evaluations_) > settled) return false;
  return evaluations_ < options_.evaluations && seconds() < options_.seconds &&
         (!options_.go_on || options_.go_on());
}

void PlanRecord::Keep(const IterationPlan& plan, double us) {
  if (us < gained_us_ * (1 - kNear)) {
    gained_us_ = us;
    gained_at_ = evaluations_;
  }
  if (plans_.empty() || us < plans_[0].us * (1 - kNear)) {
    plans_.insert(plans_.begin(), {plan, us});
    if (static_cast<int>(plans_.size()) > options_.keep) plans_.pop_back();
  } else if (us < plans_[0].us) {
    plans_[0] = {plan, us};
  }
}

FoundPlans PlanRecord::Finish() && {
  CC_CHECK(!plans_.empty());
  const PlanProgress progress = Progress();
  if (options_.progress) options_.progress(progress);
  std::vector<FoundPlan> distinct;
  for (FoundPlan& found : plans_) {
    if (absl::c_none_of(distinct, [&](const FoundPlan& other) {
          return HaveTheSameGroups(found.plan, other.plan);
        }))
      distinct.push_back(std::move(found));
  }
  return {std::move(distinct), progress};
}

FoundPlans SearchPlans(const PlanGraph& graph, PlanStrategy strategy,
                       const PlanSearchOptions& options) {
  PlanRecord record(options);
  switch (strategy) {
    case PlanStrategy::kDirected:
      SearchDirected(graph, record);
      break;
    case PlanStrategy::kBacktracking:
      SearchBacktracking(graph, record);
      break;
  }
  return std::move(record).Finish();
}

}  // namespace coconet
