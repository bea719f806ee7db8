#include "coconet/testing/random_copies.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "coconet/ir/op_table.h"

namespace coconet {
namespace {

/// Elementwise operations that compute `value`, and some of those that take it.
Recompute Draw(const TypedGraph& program, NodeId value, std::mt19937_64& random) {
  std::set<NodeId> nodes = {value};
  std::vector<NodeId> pending = {value};
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    for (NodeId input : program.inputs(id)) {
      const bool copies = IsElementwise(program.op(input)) && !program.inputs(input).empty() &&
                          !program.type(input).shape.empty() && random() % 2 == 0;
      if (copies && nodes.insert(input).second) pending.push_back(input);
    }
  }
  Recompute drawn{{nodes.begin(), nodes.end()}, {}};
  for (NodeId user : program.users()[value]) {
    if (random() % 2 == 0) drawn.users.push_back(user);
  }
  return drawn;
}

}  // namespace

Schedule WithRandomCopies(const Schedule& schedule, int most, std::mt19937_64& random) {
  Schedule s = schedule;
  std::vector<std::vector<NodeId>> kernels;
  for (int i = 0; i < most && s.graph().size() > 0; ++i) {
    const auto value = static_cast<NodeId>(random() % s.graph().nodes.size());
    if (!IsElementwise(s.program().op(value))) continue;
    const Recompute drawn = Draw(s.program(), value, random);
    const absl::StatusOr<RecomputedSchedule> made = ApplyRecompute(s, drawn);
    if (!made.ok()) continue;  // a constant, a scalar, no user, copied before
    s = made->schedule;
    for (std::vector<NodeId>& kernel : kernels) {
      for (NodeId& id : kernel) id = made->renamed[id];
      absl::c_sort(kernel);
    }
    std::vector<NodeId> kernel = made->copies;
    if (random() % 2 == 0) {
      for (NodeId user : drawn.users) kernel.push_back(made->renamed[user]);
      absl::c_sort(kernel);
    }
    if (random() % 4 != 0 && kernel.size() > 1) kernels.push_back(std::move(kernel));
  }
  for (const std::vector<NodeId>& kernel : kernels) {
    absl::StatusOr<Schedule> fused = Apply(s, Fuse{kernel});
    if (fused.ok()) s = *std::move(fused);
  }
  return s;
}

}  // namespace coconet
