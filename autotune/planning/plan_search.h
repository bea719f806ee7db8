#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "autotune/planning/iteration_plan.h"
#include "autotune/planning/plan_graph.h"

namespace coconet {

/// The search for plans. Both strategies stop at any time, with the best so far.
enum class PlanStrategy : uint8_t {
  /// A constructed plan (first_plan.h), then local search at the critical path
  /// (directed_search.h).
  kDirected,
  /// Backtracking over random moves from the plain plan: DisCo (backtracking.h).
  kBacktracking,
};

/// The progress of a search.
struct PlanProgress {
  double seconds = 0;
  int64_t evaluations = 0;                          // simulated plans
  double us = 0;                                    // of the best plan
  double bound_us = 0;                              // BoundOf the best plan
  double gap() const { return us / bound_us - 1; }  // may be negative by rounding
};

struct PlanSearchOptions {
  double seconds = 10;  // of one thread
  /// With this limit and no limit of time, the result is a function of the seed.
  int64_t evaluations = std::numeric_limits<int64_t>::max();
  /// The search ends after `settled` times the number of simulations at which the best plan last
  /// became faster by 0.2 %, but after at least 4,096. 0: the other limits end it.
  double settled = 0;
  uint64_t seed = 1;
  int keep = 4;  // distinct plans to return
  /// Asked often; once it returns false, the search ends. May be empty.
  std::function<bool()> go_on = nullptr;
  /// Called about once a second, and at the end. May be empty.
  std::function<void(const PlanProgress&)> progress = nullptr;
  // Options of kBacktracking, with the paper's defaults: plans within alpha times the best are
  // kept, up to beta moves are made between two simulations, `patience` plans in a row without an
  // improvement end it.
  double alpha = 1.05;
  int beta = 10;
  int patience = 1000;
};

struct FoundPlan {
  IterationPlan plan;
  double us = 0;
};
struct FoundPlans {
  std::vector<FoundPlan> plans;  // the best first, distinct; at least one
  PlanProgress progress;         // at the end
};
FoundPlans SearchPlans(const PlanGraph& graph, PlanStrategy strategy,
                       const PlanSearchOptions& options);

/// The limits and the best plans of a search.
class PlanRecord {
 public:
  explicit PlanRecord(const PlanSearchOptions& options);

  const PlanSearchOptions& options() const { return options_; }
  double seconds() const;
  /// Counts a simulated plan; calls `progress`.
  void Count();
  bool GoOn() const;
  /// Keeps an accepted plan if it is one of the best.
  void Keep(const IterationPlan& plan, double us);
  double best_us() const;
  const IterationPlan& best() const { return plans_[0].plan; }
  FoundPlans Finish() &&;

 private:
  PlanProgress Progress() const;

  const PlanSearchOptions& options_;
  const double begin_;
  double reported_ = 0;
  int64_t evaluations_ = 0;
  int64_t gained_at_ = 0;  // simulations when the best plan last became faster by kNear
  double gained_us_ = std::numeric_limits<double>::infinity();  // its time then
  std::vector<FoundPlan> plans_;                                // the best first
};

}  // namespace coconet
