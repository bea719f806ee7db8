#include "autotune/simulation/bounds.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <queue>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

using Edges = std::vector<std::vector<int>>;  // by task

/// The least time before each task, given what comes `before` it in the topological order.
class Heads {
 public:
  Heads(const TaskGraph& graph, const std::vector<int>& order, const Edges& before)
      : g_(graph), order_(order), before_(before), heads_(graph.tasks.size()) {}

  std::vector<double> Find() {
    // Heads of ancestors by longest paths; with these, the work of ancestors by lane.
    for (int t : order_) FollowPaths(t);
    const std::vector<double> by_paths = heads_;
    for (size_t from = 0; from < order_.size(); from += 64) AddWorkOf(from, by_paths);
    for (int t : order_) {
      for (size_t lane = 0; lane < g_.lanes.size(); ++lane) {
        const Ancestors& ancestors = work_[t * g_.lanes.size() + lane];
        if (ancestors.us > 0) heads_[t] = std::max(heads_[t], ancestors.head + ancestors.us);
      }
      FollowPaths(t);
    }
    return std::move(heads_);
  }

 private:
  /// A task's ancestors on a lane.
  struct Ancestors {
    double head = std::numeric_limits<double>::infinity();  // the earliest
    double us = 0;                                          // of all
  };

  void FollowPaths(int t) {
    for (int before : before_[t])
      heads_[t] = std::max(heads_[t], heads_[before] + g_.tasks[before].us);
  }

  /// Adds 64 tasks, from `from` on in the order, to all that come after them.
  void AddWorkOf(size_t from, const std::vector<double>& by_paths) {
    if (work_.empty()) work_.resize(g_.tasks.size() * g_.lanes.size());
    std::vector<uint64_t> ancestors(g_.tasks.size());  // of the 64, by bit
    const size_t count = std::min<size_t>(64, order_.size() - from);
    for (size_t i = from; i < order_.size(); ++i) {
      const int t = order_[i];
      uint64_t set = 0;
      for (int before : before_[t]) set |= ancestors[before];
      for (uint64_t left = set; left != 0; left &= left - 1) {
        const int ancestor = order_[from + std::countr_zero(left)];
        Ancestors& of_lane = work_[t * g_.lanes.size() + g_.tasks[ancestor].lane];
        of_lane.head = std::min(of_lane.head, by_paths[ancestor]);
        of_lane.us += g_.tasks[ancestor].us;
      }
      ancestors[t] = i < from + count ? set | uint64_t{1} << (i - from) : set;
    }
  }

  const TaskGraph& g_;
  const std::vector<int>& order_;
  const Edges& before_;
  std::vector<double> heads_;
  std::vector<Ancestors> work_;  // [task * lanes + lane]
};

absl::StatusOr<std::vector<int>> TopologicalOrder(const TaskGraph& graph, const Edges& followers) {
  std::vector<size_t> missing;
  std::vector<int> order;
  for (int t = 0; t < graph.size(); ++t) {
    missing.push_back(graph.tasks[t].after.size());
    if (missing[t] == 0) order.push_back(t);
  }
  for (size_t next = 0; next < order.size(); ++next) {
    for (int follower : followers[order[next]]) {
      if (--missing[follower] == 0) order.push_back(follower);
    }
  }
  if (order.size() == graph.tasks.size()) return order;
  return absl::FailedPreconditionError(
      absl::StrCat("bounds: ", graph.tasks.size() - order.size(), " of ", graph.tasks.size(),
                   " tasks wait for each other; want dependencies without cycles"));
}

/// The least time for work of a computing lane and of collectives beside it, begun together.
double BesideEachOther(double work, double collectives, const Contention& contention) {
  const double gain = 1 / contention.computation + 1 / contention.collective - 1;
  const double both = std::min(contention.computation * work, contention.collective * collectives);
  return work + collectives - std::max(0.0, gain) * both;
}

/// For the work of a computing lane and the collectives of a lane.
double ContentionBound(double work, std::vector<MachineJob> collectives,
                       const Contention& contention) {
  absl::c_sort(collectives,
               [](const MachineJob& a, const MachineJob& b) { return a.head > b.head; });
  double bound = 0, us = 0, tail = std::numeric_limits<double>::infinity();
  for (const MachineJob& job : collectives) {  // those with this head or a later one
    us += job.us;
    tail = std::min(tail, job.tail);
    const double outside = job.head + tail;
    bound =
        std::max(bound, outside + BesideEachOther(std::max(0.0, work - outside), us, contention));
  }
  return bound;
}

/// The bound by the last two of sets of collectives of one lane, for the work of another lane.
class LastTwoBound {
 public:
  /// `reversed`: followers come before what they follow.
  LastTwoBound(const TaskGraph& graph, const std::vector<int>& reversed, const Edges& followers,
               const std::vector<double>& tails, int lane)
      : g_(graph) {
    for (int t = 0; t < graph.size(); ++t) {
      if (graph.tasks[t].lane == lane && graph.tasks[t].kind == TaskKind::kCollective)
        collectives_.push_back(t);
    }
    absl::c_stable_sort(collectives_,
                        [&](int a, int b) { return graph.tasks[a].us > graph.tasks[b].us; });
    if (collectives_.size() > 64) collectives_.resize(64);
    needed_by_.resize(graph.tasks.size());
    for (size_t i = 0; i < collectives_.size(); ++i) {
      needed_by_[collectives_[i]] = uint64_t{1} << i;
      least_tail_.push_back(
          std::min(i == 0 ? tails[collectives_[i]] : least_tail_[i - 1], tails[collectives_[i]]));
    }
    for (int t : reversed) {
      for (int follower : followers[t]) needed_by_[t] |= needed_by_[follower];
    }
  }

  double Of(int computing_lane) const {
    absl::flat_hash_map<uint64_t, double> work;  // by those that it comes before
    for (int t = 0; t < g_.size(); ++t) {
      if (g_.tasks[t].lane == computing_lane && needed_by_[t] != 0)
        work[needed_by_[t]] += g_.tasks[t].us;
    }
    double bound = 0;
    for (size_t count = 2; count <= collectives_.size(); ++count) {
      const uint64_t set = ~uint64_t{0} >> (64 - count);
      double all = 0;
      std::vector<double> of_one(count);  // what comes before no other of the set
      for (const auto& [before, us] : work) {
        const uint64_t of_set = before & set;
        if (of_set != 0) all += us;
        if (std::has_single_bit(of_set)) of_one[std::countr_zero(of_set)] += us;
      }
      double end = std::numeric_limits<double>::infinity();
      for (size_t last = 0; last < count; ++last) {
        const size_t shortest = last + 1 == count ? count - 2 : count - 1;
        end = std::min(end, all - of_one[last] + g_.tasks[collectives_[last]].us +
                                g_.tasks[collectives_[shortest]].us);
      }
      bound = std::max(bound, end + least_tail_[count - 1]);
    }
    return bound;
  }

 private:
  const TaskGraph& g_;
  std::vector<int> collectives_;     // the longest first
  std::vector<uint64_t> needed_by_;  // by task: those of these that come after it, by bit
  std::vector<double> least_tail_;   // of the first so many and one more
};

}  // namespace

double PreemptiveEnd(absl::Span<const MachineJob> jobs) {
  std::vector<int> by_head(jobs.size());
  for (size_t i = 0; i < jobs.size(); ++i) by_head[i] = static_cast<int>(i);
  absl::c_sort(by_head, [&](int a, int b) {
    return std::pair(jobs[a].head, a) < std::pair(jobs[b].head, b);
  });
  std::vector<double> left;
  for (const MachineJob& job : jobs) left.push_back(job.us);
  std::priority_queue<std::pair<double, int>> arrived;  // tail, job
  double now = 0, end = 0;
  for (size_t next = 0; next < by_head.size() || !arrived.empty();) {
    if (arrived.empty()) now = std::max(now, jobs[by_head[next]].head);
    while (next < by_head.size() && jobs[by_head[next]].head <= now) {
      arrived.emplace(jobs[by_head[next]].tail, by_head[next]);
      ++next;
    }
    const int job = arrived.top().second;
    const double until =
        next < by_head.size() ? jobs[by_head[next]].head : std::numeric_limits<double>::infinity();
    if (now + left[job] <= until) {
      now += left[job];
      end = std::max(end, now + jobs[job].tail);
      arrived.pop();
    } else {
      left[job] -= until - now;
      now = until;
    }
  }
  return end;
}

absl::StatusOr<Bounds> BoundsOf(const TaskGraph& graph, const Contention& contention) {
  RETURN_IF_ERROR(CheckTaskGraph(graph));
  Edges before, followers(graph.tasks.size());
  for (int t = 0; t < graph.size(); ++t) {
    before.push_back(graph.tasks[t].after);
    for (int earlier : graph.tasks[t].after) followers[earlier].push_back(t);
  }
  ASSIGN_OR_RETURN(std::vector<int> order, TopologicalOrder(graph, followers));
  const std::vector<double> heads = Heads(graph, order, before).Find();
  absl::c_reverse(order);
  const std::vector<double> tails = Heads(graph, order, followers).Find();
  Bounds bounds;
  for (int lane = 0; lane < static_cast<int>(graph.lanes.size()); ++lane) {
    const LastTwoBound last_two(graph, order, followers, tails, lane);
    for (int other = 0; other < static_cast<int>(graph.lanes.size()); ++other) {
      if (other != lane)
        bounds.dependencies_us = std::max(bounds.dependencies_us, last_two.Of(other));
    }
  }
  std::vector<std::vector<MachineJob>> jobs(graph.lanes.size()), collectives(graph.lanes.size());
  std::vector<double> computation(graph.lanes.size());  // by lane
  for (int t = 0; t < graph.size(); ++t) {
    const double us = graph.tasks[t].us;
    const int lane = graph.tasks[t].lane;
    jobs[lane].push_back({heads[t], us, tails[t]});
    if (graph.tasks[t].kind == TaskKind::kCollective)
      collectives[lane].push_back(jobs[lane].back());
    if (graph.tasks[t].kind == TaskKind::kComputation) computation[lane] += us;
    bounds.dependencies_us = std::max(bounds.dependencies_us, heads[t] + us + tails[t]);
  }
  for (const std::vector<MachineJob>& lane : jobs) {
    double work = 0;
    for (const MachineJob& job : lane) work += job.us;
    bounds.full_overlap_us = std::max(bounds.full_overlap_us, work);
    bounds.dependencies_us = std::max(bounds.dependencies_us, PreemptiveEnd(lane));
  }
  for (double work : computation) {
    for (const std::vector<MachineJob>& of_lane : collectives)
      bounds.dependencies_us =
          std::max(bounds.dependencies_us, ContentionBound(work, of_lane, contention));
  }
  return bounds;
}

}  // namespace coconet
