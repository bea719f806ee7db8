#include <algorithm>
#include <vector>

#include "absl/algorithm/container.h"
#include "coconet/base/status.h"
#include "coconet/schedule/rewrites.h"

namespace coconet {
namespace {

bool IsIn(const std::vector<std::vector<NodeId>>& groups, NodeId id) {
  return absl::c_any_of(groups,
                        [&](const auto& group) { return absl::c_linear_search(group, id); });
}

/// Whether the launches can run with each bucket as one of them.
bool HasOrder(const Schedule& s) {
  const Launches& launches = s.launches();
  std::vector<int> into(launches.size());
  for (int launch = 0; launch < launches.size(); ++launch) into[launch] = launch;
  for (const std::vector<NodeId>& bucket : s.buckets()) {
    for (NodeId id : bucket) into[launches.of[id]] = launches.of[bucket[0]];
  }
  const Launches joined = Joined(launches, into);
  return static_cast<int>(InOrder(joined.list).size()) == joined.size();
}

}  // namespace

absl::Status CheckBucket(const Schedule& s, const Bucket& bucket) {
  const Graph& g = s.graph();
  const std::vector<NodeId>& nodes = bucket.nodes;
  if (nodes.size() < 2) return Refused(bucket, "want two AllReduces or more");
  if (!g.lists.empty()) return Refused(bucket, "the program has lists of tensors");
  for (size_t i = 0; i < nodes.size(); ++i) {
    const NodeId id = nodes[i];
    if (i > 0 && nodes[i - 1] >= id) return Refused(bucket, "want each node once, ascending");
    if (As<AllReduce>(g, id) == nullptr)
      return Refused(bucket, NodeText(g, id), " is not an AllReduce");
    if (IsIn(s.kernels(), id)) return Refused(bucket, NodeText(g, id), " is in a kernel");
    if (IsIn(s.overlaps(), id)) return Refused(bucket, NodeText(g, id), " is in an overlap");
    if (IsIn(s.buckets(), id)) return Refused(bucket, NodeText(g, id), " is in another bucket");
    if (g.nodes[id].op != g.nodes[nodes[0]].op || s.type(id).dtype != s.type(nodes[0]).dtype) {
      return Refused(bucket, NodeText(g, nodes[0]), " and ", NodeText(g, id),
                     " are not of one kind and dtype");
    }
  }
  const Launches& launches = s.launches();
  for (NodeId id : nodes) {
    const std::vector<bool> bound = BeforeOrAfter(launches.list, launches.of[id]);
    for (NodeId other : nodes) {
      if (other == id || !bound[launches.of[other]]) continue;
      return Refused(bucket, NodeText(g, std::max(id, other)), " needs what ",
                     NodeText(g, std::min(id, other)), " reduces");
    }
  }
  if (HasOrder(s.WithBucket(bucket))) return absl::OkStatus();
  return Refused(bucket, "it and another bucket would wait for each other");
}

absl::Status CheckOrder(const Schedule& s, const Order& order) {
  const Launches& launches = s.launches();
  std::vector<bool> issued(launches.size());
  for (NodeId id : order.nodes) {
    const int launch = launches.of[id];
    if (launch < 0 || launches[launch].nodes[0] != id)
      return Refused(order, NodeText(s.graph(), id), " is not the first operation of a launch");
    if (issued[launch]) return Refused(order, NodeText(s.graph(), id), " is there twice");
    for (int before : launches[launch].after) {
      if (issued[before]) continue;
      return Refused(order, NodeText(s.graph(), id), " comes before ",
                     NodeText(s.graph(), launches[before].nodes[0]), ", which it needs");
    }
    issued[launch] = true;
  }
  const auto missing = absl::c_find(issued, false);
  if (missing == issued.end()) return absl::OkStatus();
  return Refused(order,
                 NodeText(s.graph(), launches[std::distance(issued.begin(), missing)].nodes[0]),
                 " is missing; want all launches");
}

absl::Status CheckNotInBucket(const Schedule& s, const Overlap& overlap) {
  for (NodeId id : overlap.nodes) {
    if (IsIn(s.buckets(), id)) return Refused(overlap, NodeText(s.graph(), id), " is in a bucket");
  }
  return absl::OkStatus();
}

}  // namespace coconet
