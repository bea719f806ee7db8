#include "coconet/schedule/launches.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include "absl/algorithm/container.h"
#include "coconet/ir/lists.h"
#include "coconet/ir/op_table.h"
#include "coconet/schedule/kernel_phases.h"

namespace coconet {
namespace {

/// By node: its index in `kernels`, -1: in none.
std::vector<int> KernelOf(NodeId nodes, const Kernels& kernels) {
  std::vector<int> kernel(nodes, -1);
  for (size_t k = 0; k < kernels.size(); ++k) {
    for (NodeId id : kernels[k]) kernel[id] = static_cast<int>(k);
  }
  return kernel;
}

/// Finds what belongs to no launch.
class Recomputed {
 public:
  Recomputed(const TypedGraph& program, const std::vector<int>& kernel)
      : p_(program), kernel_(kernel), recomputed_(program.size()), updated_(program.size()) {}

  /// By node.
  std::vector<bool> Find() {
    const Graph& g = p_.graph();
    for (NodeId id = 0; id < p_.size(); ++id) Place(id);
    // Two states may each take the other's value before the step: then both new values must be
    // there before either is stored.
    for (NodeId id = 0; id < p_.size(); ++id) {
      if (As<Update>(g, id)) updated_[p_.inputs(id)[0]] = true;
    }
    std::vector<NodeId> stored;
    for (NodeId id = 0; id < p_.size(); ++id) {
      const NodeId value = p_.value(id);
      if (!As<Update>(g, id) || p_.inputs(value).empty() || !recomputed_[value]) continue;
      if (TakesAnother(value, p_.inputs(id)[0])) stored.push_back(value);
    }
    for (NodeId value : stored) recomputed_[value] = false;
    return recomputed_;
  }

  /// The same, except that long computations on scalars which several operations take are launches,
  /// too. Programs with lists keep none: what is in memory there differs from tensor to tensor.
  std::vector<bool> FindAllButLong() {
    Find();
    if (absl::c_linear_search(p_.each(), true)) return recomputed_;
    std::vector<int> uses(p_.size()), work(p_.size());
    for (NodeId id = 0; id < p_.size(); ++id) {
      for (NodeId operand : ValueOperands(p_.graph(), id)) ++uses[p_.value(operand)];
    }
    for (NodeId id = 0; id < p_.size(); ++id) {
      if (!recomputed_[id] || p_.inputs(id).empty()) continue;
      int all = 1;
      for (NodeId input : p_.inputs(id)) all = std::min(all + work[p_.value(input)], kMostWork + 1);
      recomputed_[id] = all <= kMostWork || uses[id] < 2;
      work[id] = recomputed_[id] ? all : 0;
    }
    return recomputed_;
  }

 private:
  /// Operations on scalars, those taken twice counted twice, above which several kernels do not
  /// repeat them.
  static constexpr int kMostWork = 64;

  void Place(NodeId id) {
    const Graph& g = p_.graph();
    const bool is_source = p_.inputs(id).empty();
    recomputed_[id] = is_source || (IsComputation(p_.op(id)) && p_.type(id).shape.empty());
    if (!Communicates(g, id)) return;
    const NodeId fold = FoldBelow(p_, id);
    if (fold >= 0 && kernel_[id] >= 0 && kernel_[fold] == kernel_[id])
      return;  // what it sums up is in no memory
    const NodeId operand = p_.value(p_.inputs(id)[0]);
    recomputed_[operand] = RoleOf(p_.op(operand)) == Role::kDeclaration;
  }

  /// Whether the value takes, through recomputed nodes, that of another state than `state` that is
  /// updated, too.
  bool TakesAnother(NodeId value, NodeId state) {
    seen_.resize(p_.size(), -1);
    std::vector<NodeId> stack = {value};
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      if (id != state && updated_[id]) return true;
      if (!recomputed_[id]) continue;
      for (NodeId input : p_.inputs(id)) {
        const NodeId next = p_.value(input);
        if (seen_[next] == value) continue;
        seen_[next] = value;
        stack.push_back(next);
      }
    }
    return false;
  }

  const TypedGraph& p_;
  const std::vector<int>& kernel_;
  std::vector<bool> recomputed_, updated_;
  std::vector<NodeId> seen_;  // by node: the value whose search came here last
};

/// Visits what launches read.
class Reader {
 public:
  Reader(const TypedGraph& program, const Launches& launches)
      : p_(program), launches_(launches), seen_(program.size(), -1) {}

  /// Calls `visit` once for each input, state and value of a launch, its own included, that the
  /// launch's values are read or recomputed from.
  template <class Visit>
  void ForEach(int launch, const Visit& visit) {
    for (NodeId id : launches_[launch].nodes) Push(ValueOperands(p_.graph(), id), launch);
    while (!stack_.empty()) {
      const NodeId id = stack_.back();
      stack_.pop_back();
      const Graph& g = p_.graph();
      if (launches_.of[id] >= 0 || As<State>(g, id) || As<Input>(g, id))
        visit(id);
      else
        Push(p_.inputs(id), launch);
    }
  }

 private:
  void Push(absl::Span<const NodeId> operands, int launch) {
    for (NodeId operand : operands) {
      const NodeId value = p_.value(operand);
      if (seen_[value] == launch) continue;
      seen_[value] = launch;
      stack_.push_back(value);
    }
  }

  const TypedGraph& p_;
  const Launches& launches_;
  std::vector<int> seen_;  // by node: the last launch whose search came here
  std::vector<NodeId> stack_;
};

void SortOnce(std::vector<int>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

void FindDependencies(const TypedGraph& program, Launches& launches) {
  const Graph& g = program.graph();
  Reader reader(program, launches);
  std::vector<std::vector<int>> readers(program.size());  // of states
  for (int launch = 0; launch < launches.size(); ++launch) {
    std::vector<int>& after = launches.list[launch].after;
    reader.ForEach(launch, [&](NodeId id) {
      if (As<State>(g, id)) readers[id].push_back(launch);
      if (launches.of[id] >= 0 && launches.of[id] != launch) after.push_back(launches.of[id]);
    });
  }
  for (NodeId id = 0; id < program.size(); ++id) {
    if (!As<Update>(g, id)) continue;
    std::vector<int>& after = launches.list[launches.of[id]].after;
    for (int before : readers[program.inputs(id)[0]]) {
      if (before != launches.of[id]) after.push_back(before);
    }
  }
  for (Launch& launch : launches.list) SortOnce(launch.after);
}

/// Orders launches by first node, and fills in `of`.
void NumberLaunches(NodeId nodes, Launches& launches) {
  std::sort(launches.list.begin(), launches.list.end(),
            [](const Launch& a, const Launch& b) { return a.nodes[0] < b.nodes[0]; });
  launches.of.assign(nodes, -1);
  for (int launch = 0; launch < launches.size(); ++launch) {
    for (NodeId id : launches[launch].nodes) launches.of[id] = launch;
  }
}

/// By launch: those that come after it.
std::vector<std::vector<int>> Followers(const std::vector<Launch>& launches) {
  std::vector<std::vector<int>> followers(launches.size());
  for (size_t to = 0; to < launches.size(); ++to) {
    for (int from : launches[to].after) followers[from].push_back(static_cast<int>(to));
  }
  return followers;
}

/// By launch: reached from `start` over the edges; `start` itself only through a cycle.
template <class Edges>
std::vector<bool> Reached(size_t launches, const Edges& edges, int start) {
  std::vector<bool> reached(launches);
  std::vector<int> stack = {start};
  while (!stack.empty()) {
    const int launch = stack.back();
    stack.pop_back();
    for (int next : edges(launch)) {
      if (reached[next]) continue;
      reached[next] = true;
      stack.push_back(next);
    }
  }
  return reached;
}

/// Bytes of a value with the sizes of all tensors of a list.
int64_t BytesOf(const Graph& g, const TensorType& type, bool each) {
  int64_t bytes = 0;
  for (int tensor = 0; tensor < (each ? TensorCount(g) : 1); ++tensor) {
    int64_t elements = 1;
    for (const Dim& dim : type.shape) {
      const Dim own = OfTensor(dim, g.lists, tensor);
      if (own.bound()) elements *= own.size;
    }
    bytes += elements * static_cast<int64_t>(SizeOf(type.dtype));
  }
  return bytes;
}

}  // namespace

bool IsStore(const Graph& g, NodeId id) { return Is<Update>(g, id) || Is<Output>(g, id); }

NodeId StoredOperand(const Graph& g, NodeId store) { return g.nodes[store].inputs.back(); }

bool Communicates(const Graph& g, NodeId id) { return Communicates(g.nodes[id].op); }

bool IsKernelWork(const Graph& g, NodeId id) { return IsKernelWork(g.nodes[id].op); }

bool JoinsKernels(const Graph& g, NodeId id) {
  return IsKernelWork(g, id) || RoleOf(g.nodes[id].op) == Role::kSend;
}

absl::Span<const NodeId> ValueOperands(const Graph& g, NodeId id) {
  const absl::Span<const NodeId> inputs = g.nodes[id].inputs;
  return As<Update>(g, id) ? inputs.subspan(1) : inputs;
}

std::vector<int> LevelsOf(const TypedGraph& program,
                          const std::function<bool(NodeId value, NodeId id)>& later) {
  const Graph& g = program.graph();
  std::vector<int> earliest(g.nodes.size(), 0);
  for (NodeId id = 0; id < g.size(); ++id) {
    for (NodeId operand : ValueOperands(g, id)) {
      const NodeId value = program.value(operand);
      earliest[id] = std::max(earliest[id], earliest[value] + (later(value, id) ? 1 : 0));
    }
  }
  constexpr int kUnused = std::numeric_limits<int>::max();
  std::vector<int> level(g.nodes.size(), kUnused);
  for (NodeId id = g.size() - 1; id >= 0; --id) {
    if (level[id] == kUnused) level[id] = earliest[id];
    for (NodeId operand : ValueOperands(g, id)) {
      const NodeId value = program.value(operand);
      level[value] = std::min(level[value], level[id] - (later(value, id) ? 1 : 0));
    }
  }
  return level;
}

std::vector<int> Levels(const TypedGraph& program) {
  const Graph& g = program.graph();
  // What takes a fold to a scalar waits for all elements, as what takes a collective's result does.
  return LevelsOf(program, [&](NodeId value, NodeId id) {
    const auto* fold = As<Fold>(g, value);
    return Communicates(g, id) || (fold != nullptr && fold->dims.empty());
  });
}

namespace {

Launches LaunchesBut(const TypedGraph& program, const Kernels& kernels,
                     const std::vector<int>& kernel, const std::vector<bool>& recomputed) {
  Launches launches;
  for (const std::vector<NodeId>& nodes : kernels) launches.list.push_back({nodes, {}});
  for (NodeId id = 0; id < program.size(); ++id) {
    if (kernel[id] < 0 && !recomputed[id]) launches.list.push_back({{id}, {}});
  }
  NumberLaunches(program.size(), launches);
  FindDependencies(program, launches);
  return launches;
}

}  // namespace

Launches FindLaunches(const TypedGraph& program, const Kernels& kernels) {
  const std::vector<int> kernel = KernelOf(program.size(), kernels);
  const std::vector<bool> all = Recomputed(program, kernel).Find(),
                          most = Recomputed(program, kernel).FindAllButLong();
  if (most != all) {
    Launches launches = LaunchesBut(program, kernels, kernel, most);
    // A kernel that both takes such a scalar and computes what it is of cannot wait for it.
    if (static_cast<int>(InOrder(launches.list).size()) == launches.size()) return launches;
  }
  return LaunchesBut(program, kernels, kernel, all);
}

Launches Joined(const Launches& launches, const std::vector<int>& into) {
  Launches joined;
  std::vector<std::vector<NodeId>> nodes(launches.size());
  for (int launch = 0; launch < launches.size(); ++launch) {
    std::vector<NodeId>& all = nodes[into[launch]];
    all.insert(all.end(), launches[launch].nodes.begin(), launches[launch].nodes.end());
  }
  for (std::vector<NodeId>& of_launch : nodes) {
    if (of_launch.empty()) continue;
    std::sort(of_launch.begin(), of_launch.end());
    joined.list.push_back({std::move(of_launch), {}});
  }
  NumberLaunches(static_cast<NodeId>(launches.of.size()), joined);
  for (const Launch& launch : launches.list) {
    const int to = joined.of[launch.nodes[0]];
    for (int before : launch.after) {
      const int from = joined.of[launches[before].nodes[0]];
      if (from != to) joined.list[to].after.push_back(from);
    }
  }
  for (Launch& launch : joined.list) SortOnce(launch.after);
  return joined;
}

std::vector<int> InOrder(const std::vector<Launch>& launches, const std::vector<int>& rank) {
  const std::vector<std::vector<int>> followers = Followers(launches);
  std::vector<size_t> missing;
  using Ready = std::pair<int, int>;  // rank, launch
  std::priority_queue<Ready, std::vector<Ready>, std::greater<Ready>> ready;
  for (size_t launch = 0; launch < launches.size(); ++launch) {
    missing.push_back(launches[launch].after.size());
    if (missing[launch] == 0) ready.emplace(rank[launch], launch);
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int launch = ready.top().second;
    ready.pop();
    order.push_back(launch);
    for (int next : followers[launch]) {
      if (--missing[next] == 0) ready.emplace(rank[next], next);
    }
  }
  return order;
}

std::vector<int> InOrder(const std::vector<Launch>& launches) {
  return InOrder(launches, std::vector<int>(launches.size()));
}

std::vector<int> RanksByLevel(const Graph& g, const Launches& launches,
                              const std::vector<int>& levels) {
  std::vector<int> ranks;
  for (const Launch& launch : launches.list) {
    int level = levels[launch.nodes[0]];
    bool communicates = false;
    for (NodeId id : launch.nodes) {
      level = std::min(level, levels[id]);
      communicates |= Communicates(g, id);
    }
    ranks.push_back(2 * level + (communicates ? 0 : 1));
  }
  return ranks;
}

std::vector<bool> BeforeOrAfter(const std::vector<Launch>& launches, int of) {
  const auto after = [&](int launch) -> const std::vector<int>& { return launches[launch].after; };
  const std::vector<std::vector<int>> followers = Followers(launches);
  const auto before = [&](int launch) -> const std::vector<int>& { return followers[launch]; };
  std::vector<bool> bound = Reached(launches.size(), after, of);
  const std::vector<bool> later = Reached(launches.size(), before, of);
  for (size_t launch = 0; launch < bound.size(); ++launch)
    bound[launch] = bound[launch] || later[launch];
  bound[of] = true;
  return bound;
}

std::vector<int> LaunchesWithin(const std::vector<Launch>& launches, int inside) {
  const auto after = [&](int launch) -> const std::vector<int>& { return launches[launch].after; };
  const std::vector<std::vector<int>> followers = Followers(launches);
  const auto before = [&](int launch) -> const std::vector<int>& { return followers[launch]; };
  const std::vector<bool> earlier = Reached(launches.size(), after, inside);
  const std::vector<bool> later = Reached(launches.size(), before, inside);
  std::vector<int> within;
  for (int launch = 0; launch < static_cast<int>(launches.size()); ++launch) {
    if (earlier[launch] && later[launch] && launch != inside) within.push_back(launch);
  }
  return within;
}

std::vector<Traffic> TrafficOf(const TypedGraph& program, const Launches& launches) {
  const Graph& g = program.graph();
  const auto bytes = [&](NodeId id) { return BytesOf(g, program.type(id), program.each()[id]); };
  std::vector<Traffic> traffic(launches.size());
  std::vector<bool> taken(program.size()), kept(program.size());
  Reader reader(program, launches);
  for (int launch = 0; launch < launches.size(); ++launch) {
    reader.ForEach(launch, [&](NodeId id) {
      if (launches.of[id] == launch) return;
      traffic[launch].read += bytes(id);
      taken[id] = true;
    });
    for (NodeId id : launches[launch].nodes) {
      if (As<Update>(g, id) && launches.of[program.value(id)] == launch)
        kept[program.value(id)] = true;
    }
  }
  for (NodeId id = 0; id < program.size(); ++id) {
    const int launch = launches.of[id];
    const bool stores = As<Update>(g, id) || As<Output>(g, id) || (taken[id] && !kept[id]);
    if (launch >= 0 && stores) traffic[launch].written += bytes(id);
  }
  return traffic;
}

}  // namespace coconet
