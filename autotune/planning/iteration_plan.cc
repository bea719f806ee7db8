#include "autotune/planning/iteration_plan.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <queue>

#include "absl/algorithm/container.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

double TotalUs(const TwoLanes::Lanes& lanes) {
  double us = 0;
  for (const std::vector<TwoLanes::Step>& lane : lanes) {
    for (const TwoLanes::Step& step : lane) us += step.us;
  }
  return us;
}

}  // namespace

IterationPlan::IterationPlan(const PlanGraph& graph, const std::vector<std::vector<int>>& kernels)
    : graph_(&graph), groups_(graph.size()), group_of_(graph.size()), lanes_(graph.contention()) {
  for (int item = 0; item < graph.size(); ++item) {
    groups_[item].is_collective = graph.IsCollective(item);
    SetItems(item, {item});
  }
  for (const std::vector<int>& kernel : kernels) {
    if (kernel.size() < 2 || !graph.Fits(kernel)) continue;
    for (int item : kernel) {
      if (item != kernel[0]) SetItems(item, {});
    }
    SetItems(kernel[0], kernel);
  }
  // Kernels that wait for each other are taken apart.
  for (std::vector<int> stuck = Sort(); !stuck.empty(); stuck = Sort()) {
    for (int group : stuck) {
      const std::vector<int> items = groups_[group].items;
      for (int item : items) {
        if (items.size() > 1) SetItems(item, {item});
      }
    }
    std::erase_if(free_, [&](int group) { return !groups_[group].items.empty(); });
  }
  for (int lane : {0, 1}) Renumber(lane, 0);
  Accept();
}

std::vector<int> IterationPlan::Sort() {
  std::vector<int> rank(graph_->size());
  const std::vector<int>& of_schedule = graph_->schedule().order();
  for (size_t i = 0; i < of_schedule.size(); ++i) rank[of_schedule[i]] = static_cast<int>(i);
  using Ready = std::pair<int, int>;  // rank of its first item, group
  std::priority_queue<Ready, std::vector<Ready>, std::greater<Ready>> ready;
  std::vector<size_t> missing(groups_.size());
  const auto add = [&](int group) { ready.emplace(rank[groups_[group].items[0]], group); };
  for (int group = 0; group < static_cast<int>(groups_.size()); ++group) {
    if (groups_[group].items.empty()) continue;
    missing[group] = After(group).size();
    if (missing[group] == 0) add(group);
  }
  order_ = {};
  while (!ready.empty()) {
    const int group = ready.top().second;
    ready.pop();
    order_[groups_[group].is_collective ? 1 : 0].push_back(group);
    for (int after : Before(group)) {
      if (--missing[after] == 0) add(after);
    }
  }
  std::vector<int> stuck;
  for (int group = 0; group < static_cast<int>(groups_.size()); ++group) {
    if (missing[group] > 0) stuck.push_back(group);
  }
  return stuck;
}

std::vector<int> IterationPlan::After(int group) const {
  std::vector<int> after;
  for (int item : groups_[group].items) {
    for (int before : (*graph_)[item].after) {
      if (group_of_[before] != group) after.push_back(group_of_[before]);
    }
  }
  absl::c_sort(after);
  after.erase(std::unique(after.begin(), after.end()), after.end());
  return after;
}

std::vector<int> IterationPlan::Before(int group) const {
  std::vector<int> before;
  for (int item : groups_[group].items) {
    for (int after : graph_->before(item)) {
      if (group_of_[after] != group) before.push_back(group_of_[after]);
    }
  }
  absl::c_sort(before);
  before.erase(std::unique(before.begin(), before.end()), before.end());
  return before;
}

// ---- What edits are made of --------------------------------------------------------------------

int IterationPlan::NewGroup() {
  if (free_.empty()) {
    free_.push_back(static_cast<int>(groups_.size()));
    groups_.emplace_back();
  }
  const int group = free_.back();
  free_.pop_back();
  return group;
}

void IterationPlan::Touch(int group) {
  edits_.push_back({.lane = -1, .order = {}, .group = group, .before = groups_[group]});
}

void IterationPlan::SetItems(int group, std::vector<int> items) {
  for (int item : items) group_of_[item] = group;
  groups_[group].items = std::move(items);
  if (groups_[group].items.empty()) {
    free_.push_back(group);
    return;
  }
  groups_[group].us = graph_->UsOf(groups_[group].items);
  groups_[group].waits =
      absl::c_any_of(groups_[group].items, [&](int item) { return graph_->waits(item); });
}

void IterationPlan::Renumber(int lane, int from) {
  for (int i = from; i < static_cast<int>(order_[lane].size()); ++i) {
    groups_[order_[lane][i]].position = i;
    groups_[order_[lane][i]].lane = lane;
  }
}

void IterationPlan::MarkChanged(int lane, int from, int to) {
  const int kept = static_cast<int>(order_[lane].size()) - to;
  change_.first[lane] = std::min(change_.first[lane], from);
  change_.kept[lane] = std::min(change_.kept[lane], kept);
}

void IterationPlan::Replace(int lane, int from, int count, std::vector<int> by) {
  std::vector<int>& order = order_[lane];
  const int size = static_cast<int>(by.size());
  std::vector<int> old(order.begin() + from, order.begin() + from + count);
  const int common = std::min(count, size);
  std::copy(by.begin(), by.begin() + common, order.begin() + from);
  if (size < count) order.erase(order.begin() + from + size, order.begin() + from + count);
  if (size > count) order.insert(order.begin() + from + count, by.begin() + count, by.end());
  if (size == count)
    for (int i = from; i < from + size; ++i) {
      groups_[order[i]].position = i;
      groups_[order[i]].lane = lane;
    }
  else
    Renumber(lane, from);
  edits_.push_back(
      {.lane = lane, .from = from, .count = size, .order = std::move(old), .before = {}});
  MarkChanged(lane, from, from + size);
}

void IterationPlan::Undo() {
  while (!edits_.empty()) {
    Edit edit = std::move(edits_.back());
    edits_.pop_back();
    if (edit.lane >= 0) {
      std::vector<int>& order = order_[edit.lane];
      order.erase(order.begin() + edit.from, order.begin() + edit.from + edit.count);
      order.insert(order.begin() + edit.from, edit.order.begin(), edit.order.end());
      Renumber(edit.lane, edit.from);
      continue;
    }
    const bool was_free = edit.before.items.empty(), is_free = groups_[edit.group].items.empty();
    if (was_free && !is_free) free_.push_back(edit.group);
    if (!was_free && is_free)
      free_.erase(std::prev(std::find(free_.rbegin(), free_.rend(), edit.group).base()));
    const int position = groups_[edit.group].position, lane = groups_[edit.group].lane;
    groups_[edit.group] = std::move(edit.before);
    // Orders are taken back on their own.
    groups_[edit.group].position = position;
    groups_[edit.group].lane = lane;
    for (int item : groups_[edit.group].items) group_of_[item] = edit.group;
  }
  ForgetChanges();
}

// ---- Edits -------------------------------------------------------------------------------------

bool IterationPlan::Merge(int a, int b) {
  if (a == b || groups_[a].lane != groups_[b].lane) return false;
  if (groups_[a].is_collective != groups_[b].is_collective) return false;
  if (groups_[a].position > groups_[b].position) std::swap(a, b);
  return groups_[a].is_collective ? MergeBuckets(a, b) : MergeKernels(a, b);
}

bool IterationPlan::MergeBuckets(int first, int second) {
  const PlanGraph& g = *graph_;
  if (g.bucket(groups_[first].items[0]) != g.bucket(groups_[second].items[0])) return false;
  std::vector<int> items = groups_[first].items;
  items.insert(items.end(), groups_[second].items.begin(), groups_[second].items.end());
  const int lane = groups_[first].lane, from = groups_[first].position;
  const int to = groups_[second].position;
  Touch(first);
  Touch(second);
  SetItems(first, {});
  SetItems(second, std::move(items));
  Replace(lane, from, to - from + 1,
          {order_[lane].begin() + from + 1, order_[lane].begin() + to + 1});
  return true;
}

bool IterationPlan::MergeKernels(int first, int second) {
  std::vector<int> items = groups_[first].items;
  items.insert(items.end(), groups_[second].items.begin(), groups_[second].items.end());
  if (!graph_->Fits(items)) return false;
  const int from = groups_[first].position, to = groups_[second].position;
  // What between the two comes after the first, also by way of collectives.
  std::vector<int> earlier, later;
  std::vector<int> follows(groups_.size(), -1);  // by group: 1: yes, 0: no, -1: not known
  const auto find = [&](const auto& self, int group) -> bool {
    if (group == first) return true;
    if (!groups_[group].is_collective && groups_[group].position < from) return false;
    if (follows[group] >= 0) return follows[group] > 0;
    follows[group] = 0;
    for (int item : groups_[group].items) {
      for (int before : (*graph_)[item].after) {
        if (group_of_[before] == group || !self(self, group_of_[before])) continue;
        follows[group] = 1;
        return true;
      }
    }
    return false;
  };
  for (int position = from + 1; position < to; ++position) {
    const int group = order_[0][position];
    (find(find, group) ? later : earlier).push_back(group);
  }
  for (int before : After(second)) {
    if (before != first && find(find, before)) return false;  // a cycle
  }
  Touch(first);
  Touch(second);
  SetItems(first, {});
  SetItems(second, std::move(items));
  earlier.push_back(second);
  earlier.insert(earlier.end(), later.begin(), later.end());
  Replace(0, from, to - from + 1, std::move(earlier));
  return true;
}

bool IterationPlan::Detach(int group, std::vector<int> items) {
  if (items.empty() || items.size() >= groups_[group].items.size()) return false;
  absl::c_sort(items);
  std::vector<int> rest;
  for (int item : groups_[group].items) {
    if (!absl::c_binary_search(items, item)) rest.push_back(item);
  }
  if (!groups_[group].is_collective && (!graph_->Fits(items) || !graph_->Fits(rest))) return false;
  // Whether one part depends on the other, directly: a kernel contains what lies between.
  const auto depends = [&](const std::vector<int>& on, const std::vector<int>& part) {
    return absl::c_any_of(part, [&](int item) {
      return absl::c_any_of((*graph_)[item].after,
                            [&](int before) { return absl::c_linear_search(on, before); });
    });
  };
  const bool behind = depends(rest, items);
  if (behind && depends(items, rest)) return false;
  const int lane = groups_[group].lane, position = groups_[group].position;
  const int detached = NewGroup();
  Touch(detached);
  Touch(group);
  groups_[detached].is_collective = groups_[group].is_collective;
  SetItems(group, std::move(rest));
  SetItems(detached, std::move(items));
  Replace(lane, position, 1,
          behind ? std::vector<int>{group, detached} : std::vector<int>{detached, group});
  return true;
}

bool IterationPlan::Move(int group, int position) {
  const int lane = groups_[group].lane, at = groups_[group].position;
  if (position < 0 || position >= static_cast<int>(order_[lane].size()) || position == at)
    return false;
  const bool is_earlier = position < at;
  for (int other : is_earlier ? After(group) : Before(group)) {
    if (groups_[other].lane != lane) continue;
    const int there = groups_[other].position;
    if (is_earlier ? there >= position : there <= position) return false;
  }
  std::vector<int> order(order_[lane].begin() + std::min(at, position),
                         order_[lane].begin() + std::max(at, position) + 1);
  if (is_earlier)
    std::rotate(order.begin(), order.end() - 1, order.end());
  else
    std::rotate(order.begin(), order.begin() + 1, order.end());
  const int count = static_cast<int>(order.size());
  Replace(lane, std::min(at, position), count, std::move(order));
  return true;
}

bool IterationPlan::SetLane(int bucket, int lane) {
  if (!groups_[bucket].is_collective || groups_[bucket].lane == lane) return false;
  int position = 0;
  for (int before : After(bucket)) {
    if (groups_[before].lane == lane) position = std::max(position, groups_[before].position + 1);
  }
  for (int after : Before(bucket)) {
    if (groups_[after].lane == lane && groups_[after].position < position) return false;
  }
  Replace(1 - lane, groups_[bucket].position, 1, {});
  Replace(lane, position, 0, {bucket});
  Renumber(lane, position);
  change_ = {};  // what needs the bucket needs a step of another lane now
  return true;
}

void IterationPlan::Reorder(int lane, std::vector<int> order) {
  const int count = static_cast<int>(order_[lane].size());
  Replace(lane, 0, count, std::move(order));
}

// ---- Times -------------------------------------------------------------------------------------

TwoLanes::Step IterationPlan::StepOf(int group, bool& waits_for_later) const {
  const Group& g = groups_[group];
  TwoLanes::Step step{.us = g.us, .is_collective = g.is_collective};
  if (!g.waits && !g.is_collective) return step;  // edits keep lane 0 in order
  for (int item : g.items) {
    for (int before : (*graph_)[item].after) {
      const Group& other = groups_[group_of_[before]];
      if (&other == &g) continue;
      if (other.lane != g.lane)
        step.needs = std::max(step.needs, other.position + 1);
      else
        waits_for_later |= other.position > g.position;
    }
  }
  return step;
}

bool IterationPlan::FillSteps(TwoLanes::Lanes& steps) const {
  bool waits_for_later = false;
  for (int lane : {0, 1}) {
    steps[lane].clear();
    for (int group : order_[lane]) steps[lane].push_back(StepOf(group, waits_for_later));
  }
  return !waits_for_later;
}

void IterationPlan::ForgetChanges() {
  const std::array<int, 2> sizes = {static_cast<int>(order_[0].size()),
                                    static_cast<int>(order_[1].size())};
  change_ = {sizes, sizes};
}

double IterationPlan::Us() {
  if (!FillSteps(tried_)) return std::numeric_limits<double>::infinity();
  tried_work_ = TotalUs(tried_);
  return lanes_.Try(tried_, change_);
}

double IterationPlan::Accept() {
  const bool has_order = FillSteps(steps_);
  const double us = lanes_.Run(steps_, change_);
  CC_CHECK(has_order && std::isfinite(us));
  work_ = TotalUs(steps_);
  edits_.clear();
  ForgetChanges();
  return us;
}

std::vector<int> IterationPlan::CriticalGroups() const {
  int lane = 0, position = -1;
  double end = -1;
  for (int l : {0, 1}) {
    const int last = static_cast<int>(order_[l].size()) - 1;
    if (last < 0 || lanes_.Of(l, last).end <= end) continue;
    lane = l;
    position = last;
    end = lanes_.Of(l, last).end;
  }
  std::vector<int> groups;
  while (position >= 0) {
    groups.push_back(order_[lane][position]);
    const int needed = steps_[lane][position].needs - 1;
    const double in_front = position > 0 ? lanes_.Of(lane, position - 1).end : -1;
    const double other = needed >= 0 ? lanes_.Of(1 - lane, needed).end : -1;
    if (other > in_front) {
      lane = 1 - lane;
      position = needed;
    } else {
      --position;
    }
  }
  absl::c_reverse(groups);
  return groups;
}

}  // namespace coconet
