#include "jit/lower/library_call.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "jit/storage/arguments.h"

namespace coconet {
namespace {

using Kind = CollectiveStep::Kind;

int64_t Stored(const TensorType& type, int ranks) {
  return type.layout.sliced() ? SlicingOf(type, ranks).slice_elements() : NumElements(type.shape);
}

/// The words of the dialect's Blocks: the part of a tensor that the layout `kept` gives a rank, in
/// blocks that `cut` gives.
std::vector<Arg> BlockWords(const Shape& shape, const Layout& kept, const Layout& cut, int ranks) {
  const int low = std::min(kept.dim, cut.dim), high = std::max(kept.dim, cut.dim);
  int64_t outer = 1, middle = 1, inner = 1;
  for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
    if (d < low) outer *= shape[d].size;
    if (d > low && d < high) middle *= shape[d].size;
    if (d > high) inner *= shape[d].size;
  }
  std::vector<Arg> words;
  const auto add = [&](int64_t value) { words.push_back({Arg::Kind::kInt, -1, value}); };
  for (int64_t value : {outer, middle, inner}) add(value);
  for (int d : {low, high}) {
    const Slicing slicing = SlicingOf(shape, d == kept.dim ? kept : cut, ranks).slicing;
    for (int64_t value : {slicing.extent, slicing.per, slicing.shift}) add(value);
  }
  add(kept.dim == low);
  return words;
}

/// The kernel that moves between `storage`, the rank's part along `kept`, and `blocks`, one for
/// each rank's part along `cut`.
EmittedKernel BlocksKernel(const TensorType& type, const Layout& kept, const Layout& cut, bool pack,
                           int storage, int blocks, const Config& config, int ranks) {
  Arguments args;
  args.Member("Index rank", "rank", {{Arg::Kind::kRank, -1, 0}});
  const std::string shape =
      args.Member("Blocks shape", "shape", BlockWords(type.shape, kept, cut, ranks));
  const TensorSlicing s = SlicingOf(type.shape, kept.dim > cut.dim ? kept : cut, ranks);
  const bool packed = s.inner * s.slicing.extent % config.vec == 0 &&
                      s.inner * s.slicing.per % config.vec == 0 &&
                      s.inner * s.slicing.shift % config.vec == 0;
  const std::string whole = args.Integer("packed", packed);
  const std::string own = args.Own(storage, type.dtype), other = args.Own(blocks, type.dtype);
  const std::string body =
      absl::StrCat("  const int rank = int(p.rank);\n", args.LocalsText(), "  MoveBlocks<kV, ",
                   pack ? "true" : "false", ">(grid, ", own, ", ", other, ", ", shape,
                   ", kRanks, rank, ", whole, " != 0);\n");
  return KernelOf(ranks, config.vec, args, body,
                  2 * Stored(type, ranks) * static_cast<int64_t>(SizeOf(type.dtype)));
}

Group GroupOf(Span span) {
  switch (span) {
    case Span::kAll:
      return Group::kStage;
    case Span::kNode:
      return Group::kNode;
    case Span::kAcross:
      return Group::kAcross;
  }
  CC_CHECK(false);
}

/// The step of a whole collective, without its buffers and their elements.
CollectiveStep StepOf(const Op& op) {
  CollectiveStep step;
  step.group = GroupOf(SpanOf(op));
  const auto reduce = [&](Kind kind, ReduceKind by) {
    step.kind = kind;
    step.reduce = by;
  };
  std::visit(Match{[&](const AllReduce& o) { reduce(Kind::kAllReduce, o.kind); },
                   [&](const ReduceScatter& o) { reduce(Kind::kReduceScatter, o.kind); },
                   [&](const AllGather&) { step.kind = Kind::kAllGather; },
                   [&](const AllToAll&) { step.kind = Kind::kAllToAll; },
                   [&](const Broadcast& o) {
                     step.kind = Kind::kBroadcast;
                     step.root = o.root;
                   },
                   [&](const ReduceTo& o) {
                     reduce(Kind::kReduce, o.kind);
                     step.root = o.root;
                   },
                   [&](const Send& o) {
                     step.kind = Kind::kSend;
                     step.shift = o.shift;
                   },
                   [](const MovesNothing auto&) { CC_CHECK(false); }},
             op);
  return step;
}

LibraryCall AllToAllOf(const Units& u, NodeId id, const Config& config, int ranks,
                       BufferTable& table) {
  const NodeId operand = u.Value(u.graph().nodes[id].inputs[0]);
  const TensorType& type = u.type(id);
  const Layout &from = u.type(operand).layout, &to = type.layout;
  int64_t block = 1;
  for (int d = 0; d < static_cast<int>(type.shape.size()); ++d) {
    block *= d == from.dim ? SlicingOf(type.shape, from, ranks).slicing.per
             : d == to.dim ? SlicingOf(type.shape, to, ranks).slicing.per
                           : type.shape[d].size;
  }
  const auto add = [&](absl::string_view name) {
    return AddBuffer(table,
                     {absl::StrCat(name, id), BufferRole::kTemp, type.dtype,
                      std::max<int64_t>(1, ranks * block)},
                     u.each[id]);
  };
  CollectiveStep step = StepOf(u.graph().nodes[id].op);
  step.dtype = type.dtype;
  step.in = add("leaving");
  step.out = add("arriving");
  step.count = block;
  LibraryCall call{{step}};
  call.before =
      BlocksKernel(type, from, to, /*pack=*/true, table.of[operand], step.in, config, ranks);
  call.after = BlocksKernel(type, to, from, /*pack=*/false, table.of[id], step.out, config, ranks);
  return call;
}

/// The part of a collective that moves a piece.
std::vector<CollectiveStep> StepsOf(CollectiveStep step, const TensorType& operand,
                                    const TensorType& result, const Piece& piece, int ranks) {
  const int64_t unit = piece.unit(result.shape), begin = piece.begin * unit;
  const bool scatters = step.kind == Kind::kReduceScatter, gathers = step.kind == Kind::kAllGather;
  if (operand.layout.sliced() || scatters) {
    step.in_offset = step.out_offset = begin;
    step.count = (piece.end - piece.begin) * unit;
    if (scatters || gathers) step.stride = piece.per * unit;
    return {step};
  }
  std::vector<CollectiveStep> steps;
  for (const Range& range : piece.Whole(ranks)) {
    step.in_offset = step.out_offset = range.begin * unit;
    step.count = range.size() * unit;
    steps.push_back(step);
  }
  return steps;
}

/// `steps` are those for the first node's part of a tensor; returns those for the parts of all
/// nodes. `part`: elements of one rank's part.
std::vector<CollectiveStep> OfEveryNode(const std::vector<CollectiveStep>& steps, int64_t part,
                                        const Target& target) {
  std::vector<CollectiveStep> all;
  for (int64_t node = 0; node < target.nodes; ++node) {
    for (CollectiveStep step : steps) {
      // The operand of a scatter and the result of a gather have the parts of all ranks of a node.
      step.in_offset +=
          node * part * (step.kind == Kind::kReduceScatter ? target.ranks_per_node() : 1);
      step.out_offset +=
          node * part * (step.kind == Kind::kAllGather ? target.ranks_per_node() : 1);
      all.push_back(step);
    }
  }
  return all;
}

}  // namespace

LibraryCall LibraryCallOf(const Units& u, const Unit& unit, const Config& config,
                          const Target& target, const Piece* piece, BufferTable& table) {
  const int ranks = target.ranks;
  const Graph& g = u.graph();
  const auto collective = std::find_if(unit.nodes.begin(), unit.nodes.end(),
                                       [&](NodeId id) { return Communicates(g, id); });
  CC_CHECK(collective != unit.nodes.end());
  const NodeId id = *collective;
  if (Is<AllToAll>(g, id)) return AllToAllOf(u, id, config, ranks, table);
  const NodeId operand = u.Value(g.nodes[id].inputs[0]);
  CollectiveStep step = StepOf(g.nodes[id].op);
  step.dtype = u.type(id).dtype;
  step.in = table.of[operand];
  step.out = table.of[id];
  step.count = Stored(u.type(Is<AllGather>(g, id) ? operand : id), ranks);
  std::vector<CollectiveStep> steps = {step};
  if (piece != nullptr) steps = StepsOf(step, u.type(operand), u.type(id), *piece, ranks);
  if (step.group == Group::kNode) return {OfEveryNode(steps, step.count, target)};
  // A reduction across nodes is of one range of memory, or of a piece of each node's part; scatters
  // and gathers are of one part per node.
  if (step.group == Group::kAcross && step.kind == Kind::kAllReduce) {
    if (piece != nullptr) return {OfEveryNode(steps, step.count, target)};
    steps[0].count *= target.nodes;
  }
  return {steps};
}

int64_t LibraryBytes(const CollectiveStep& step, const Target& target) {
  const int64_t size = static_cast<int64_t>(SizeOf(step.dtype));
  Plan plan;
  plan.ranks = target.ranks;
  plan.nodes = target.nodes;
  const int ranks = SizeOf(plan, step.group);
  switch (step.kind) {
    case Kind::kAllReduce:
    case Kind::kBroadcast:
    case Kind::kReduce:
    case Kind::kSend:
      return 2 * step.count * size;
    case Kind::kReduceScatter:
    case Kind::kAllGather:
      return (ranks + 1) * step.count * size;
    case Kind::kAllToAll:
      return 2 * ranks * step.count * size;
  }
  CC_CHECK(false);
}

}  // namespace coconet
