#include "autotune/simulation/simulate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <queue>
#include <string>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/philox.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

absl::Status CheckOptions(const SimulationOptions& options) {
  const auto invalid = [](auto... parts) {
    return absl::InvalidArgumentError(absl::StrCat("simulate: ", parts...));
  };
  for (double slower : {options.contention.computation, options.contention.collective,
                        options.contention.collectives}) {
    if (!(slower >= 1) || !std::isfinite(slower))
      return invalid("want contention of 1 or more, have ", slower);
  }
  if (options.ranks < 1) return invalid("want one rank or more, have ", options.ranks);
  if (!options.slowdowns.empty() && static_cast<int>(options.slowdowns.size()) != options.ranks)
    return invalid("want a slowdown per rank, of ", options.ranks, ", have ",
                   options.slowdowns.size());
  for (double slowdown : options.slowdowns) {
    if (!(slowdown > 0) || !std::isfinite(slowdown))
      return invalid("want slowdowns above 0, have ", slowdown);
  }
  if (!(options.jitter >= 0) || !std::isfinite(options.jitter))
    return invalid("want a jitter of 0 or more, have ", options.jitter);
  return absl::OkStatus();
}

bool AreAlike(const SimulationOptions& options) {
  if (options.ranks == 1) return true;
  return options.jitter == 0 &&
         absl::c_all_of(options.slowdowns, [&](double s) { return s == options.slowdowns[0]; });
}

/// A normally distributed number, a pure function of its arguments (Box and Muller, 1958).
double Normal(uint64_t seed, int rank, int task) {
  const auto words = Philox({static_cast<uint32_t>(task), static_cast<uint32_t>(rank), 0, 0}, seed);
  const double u = (words[0] + 1.0) / 4294967296.0, v = words[1] / 4294967296.0;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

/// The events of an iteration on some ranks.
class Events {
 public:
  Events(const TaskGraph& graph, const SimulationOptions& options, int ranks)
      : g_(graph),
        options_(options),
        ranks_(ranks),
        lanes_(ranks * graph.lanes.size()),
        missing_(ranks * graph.tasks.size()),
        arrived_(graph.tasks.size()),
        followers_(graph.tasks.size()),
        busy_(ranks) {
    timeline_.simulated_ranks = ranks;
    timeline_.tasks.resize(missing_.size());
    for (int t = 0; t < g_.size(); ++t) {
      for (int before : g_.tasks[t].after) followers_[before].push_back(t);
    }
    for (int rank = 0; rank < ranks; ++rank) {
      for (int t = 0; t < g_.size(); ++t) {
        missing_[At(rank, t)] = g_.tasks[t].after.size();
        if (g_.tasks[t].after.empty()) MakeReady(rank, t);
      }
    }
  }

  absl::StatusOr<Timeline> Run() {
    while (true) {
      for (int rank = 0; rank < ranks_; ++rank) {
        for (size_t lane = 0; lane < g_.lanes.size(); ++lane) Occupy(rank, lane);
      }
      if (running_.empty()) break;
      Advance();
    }
    if (ended_ < missing_.size()) return Stuck();
    timeline_.us = now_;
    return std::move(timeline_);
  }

 private:
  using Ready = std::tuple<double, double, int>;  // since, -priority, task
  struct LaneState {
    size_t next = 0;  // in the lane's order
    bool is_free = true;
    std::priority_queue<Ready, std::vector<Ready>, std::greater<Ready>> ready;
  };
  struct Running {
    int task = 0, rank = 0;  // rank: -1: all, a collective
    double left = 0;         // us alone
  };
  struct Busy {
    int computations = 0, collectives = 0;
  };

  size_t At(int rank, int task) const { return rank * g_.tasks.size() + task; }
  LaneState& LaneOf(int rank, int lane) { return lanes_[rank * g_.lanes.size() + lane]; }

  void MakeReady(int rank, int t) {
    const Task& task = g_.tasks[t];
    const Lane& lane = g_.lanes[task.lane];
    if (lane.order.empty())
      LaneOf(rank, task.lane).ready.emplace(lane.fifo ? now_ : 0, -task.priority, t);
  }

  /// Gives a free lane its next task, if there is one.
  void Occupy(int rank, int lane) {
    LaneState& state = LaneOf(rank, lane);
    if (!state.is_free) return;
    const std::vector<int>& order = g_.lanes[lane].order;
    int t = -1;
    if (order.empty()) {
      if (state.ready.empty()) return;
      t = std::get<2>(state.ready.top());
      state.ready.pop();
    } else {
      if (state.next == order.size() || missing_[At(rank, order[state.next])] > 0) return;
      t = order[state.next++];
    }
    state.is_free = false;
    if (g_.tasks[t].kind != TaskKind::kCollective) {
      Begin(t, rank, UsOf(rank, t));
    } else if (++arrived_[t] == ranks_) {
      Begin(t, -1, g_.tasks[t].us);
    }
  }

  double UsOf(int rank, int t) const {
    double us = g_.tasks[t].us;
    if (g_.tasks[t].kind != TaskKind::kComputation) return us;
    if (!options_.slowdowns.empty()) us *= options_.slowdowns[rank];
    return options_.jitter == 0 ? us
                                : us * std::exp(options_.jitter * Normal(options_.seed, rank, t));
  }

  /// Calls `visit` for each rank that a running task occupies.
  template <class Visit>
  void ForRanks(int rank, const Visit& visit) {
    for (int r = rank < 0 ? 0 : rank; r < (rank < 0 ? ranks_ : rank + 1); ++r) visit(r);
  }

  void Begin(int t, int rank, double us) {
    running_.push_back({t, rank, us});
    ForRanks(rank, [&](int r) {
      timeline_.tasks[At(r, t)].begin = now_;
      timeline_.order.push_back(static_cast<int>(At(r, t)));
      busy_[r].computations += g_.tasks[t].kind == TaskKind::kComputation;
      busy_[r].collectives += g_.tasks[t].kind == TaskKind::kCollective;
    });
  }

  /// How many times as long as alone the task takes now.
  double Slowdown(const Running& running) {
    int computes = 0, communicates = 0;
    ForRanks(running.rank, [&](int r) {
      computes = std::max(computes, busy_[r].computations);
      communicates = std::max(communicates, busy_[r].collectives);
    });
    switch (g_.tasks[running.task].kind) {
      case TaskKind::kComputation:
        return communicates > 0 ? options_.contention.computation : 1;
      case TaskKind::kCollective:
        return (computes > 0 ? options_.contention.collective : 1) *
               (communicates > 1 ? options_.contention.collectives : 1);
      case TaskKind::kHost:
        return 1;
    }
    CC_CHECK(false);
  }

  /// To the next end of a task. Tasks that end within a rounding of it end with it.
  void Advance() {
    constexpr double kRounding = 1 + 1e-12;
    std::vector<double> slowdown;
    double us = std::numeric_limits<double>::infinity();
    for (const Running& running : running_) {
      slowdown.push_back(Slowdown(running));
      us = std::min(us, running.left * slowdown.back());
    }
    now_ += us;
    std::vector<Running> still;
    std::vector<Running> ended;
    for (size_t i = 0; i < running_.size(); ++i) {
      Running running = running_[i];
      const bool ends = running.left * slowdown[i] <= us * kRounding;
      running.left -= us / slowdown[i];
      (ends ? ended : still).push_back(running);
    }
    running_ = std::move(still);
    for (const Running& running : ended)
      ForRanks(running.rank, [&](int r) { End(running.task, r); });
  }

  void End(int t, int rank) {
    ++ended_;
    timeline_.tasks[At(rank, t)].end = now_;
    busy_[rank].computations -= g_.tasks[t].kind == TaskKind::kComputation;
    busy_[rank].collectives -= g_.tasks[t].kind == TaskKind::kCollective;
    LaneOf(rank, g_.tasks[t].lane).is_free = true;
    for (int next : followers_[t]) {
      if (--missing_[At(rank, next)] == 0) MakeReady(rank, next);
    }
  }

  /// Nothing runs, and tasks are left.
  absl::Status Stuck() const {
    std::string waiting;
    for (size_t lane = 0; lane < g_.lanes.size(); ++lane) {
      const std::vector<int>& order = g_.lanes[lane].order;
      const size_t next = lanes_[lane].next;
      if (next < order.size())
        absl::StrAppend(&waiting, waiting.empty() ? "" : ", ", "\"", g_.tasks[order[next]].label,
                        "\" on lane ", g_.lanes[lane].name);
    }
    return absl::FailedPreconditionError(
        absl::StrCat("simulate: ", missing_.size() - ended_, " of ", missing_.size(),
                     " tasks wait for each other", waiting.empty() ? "" : "; next are ", waiting,
                     "; want orders of lanes and dependencies without cycles"));
  }

  const TaskGraph& g_;
  const SimulationOptions& options_;
  const int ranks_;
  std::vector<LaneState> lanes_;             // [rank * lanes + lane]
  std::vector<size_t> missing_;              // [rank * tasks + task]: tasks before it
  std::vector<int> arrived_;                 // by collective: ranks
  std::vector<std::vector<int>> followers_;  // by task
  std::vector<Busy> busy_;                   // by rank
  std::vector<Running> running_;
  double now_ = 0;
  size_t ended_ = 0;
  Timeline timeline_;
};

/// The graph with an order for each lane that has collectives.
absl::StatusOr<TaskGraph> WithOrders(TaskGraph graph, const SimulationOptions& options) {
  std::vector<bool> lacks_order(graph.lanes.size());
  for (const Task& task : graph.tasks) {
    if (task.kind == TaskKind::kCollective && graph.lanes[task.lane].order.empty())
      lacks_order[task.lane] = true;
  }
  if (!absl::c_linear_search(lacks_order, true)) return graph;
  const SimulationOptions alike{.contention = options.contention};
  ASSIGN_OR_RETURN(const Timeline timeline, Events(graph, alike, 1).Run());
  for (int t : timeline.order) {
    if (lacks_order[graph.tasks[t].lane]) graph.lanes[graph.tasks[t].lane].order.push_back(t);
  }
  return graph;
}

}  // namespace

absl::StatusOr<Timeline> Simulate(const TaskGraph& graph, const SimulationOptions& options) {
  RETURN_IF_ERROR(CheckTaskGraph(graph));
  RETURN_IF_ERROR(CheckOptions(options));
  if (AreAlike(options)) return Events(graph, options, 1).Run();
  ASSIGN_OR_RETURN(const TaskGraph ordered, WithOrders(graph, options));
  return Events(ordered, options, options.ranks).Run();
}

}  // namespace coconet
