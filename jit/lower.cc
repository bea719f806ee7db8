#include "jit/lower.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/env.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "jit/buffers.h"
#include "jit/emit.h"
#include "jit/gemms.h"
#include "jit/lower_steps.h"
#include "jit/units.h"

namespace coconet {
std::string LabelOf(const Graph& g, const Unit& unit) {
  std::vector<std::string> parts;
  bool computes = false;
  const auto add = [&](const char* part) {
    if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(part);
  };
  for (NodeId id : unit.nodes) {
    if (Is<ReduceScatter>(g, id)) add("RS");
    if (Is<AllReduce>(g, id)) add("AR");
    if (!Communicates(g, id) && (!IsStore(g, id) || unit.nodes.size() == 1)) computes = true;
  }
  if (computes) add("C");
  for (NodeId id : unit.nodes) {
    if (Is<AllGather>(g, id)) add("AG");
  }
  return parts.size() == 1 ? parts[0] : absl::StrCat("fuse(", absl::StrJoin(parts, ", "), ")");
}

CollectiveStep LibraryStep(const Units& u, const Unit& unit, const BufferTable& table, int ranks) {
  const Graph& g = *u.graph;
  const auto collective = std::find_if(unit.nodes.begin(), unit.nodes.end(), [&](NodeId id) { return Communicates(g, id); });
  CC_CHECK(collective != unit.nodes.end());
  const NodeId id = *collective;
  const NodeId operand = u.Value(g.nodes[id].inputs[0]);
  CollectiveStep step;
  step.dtype = u.types[id].dtype;
  step.in = table.of[operand];
  step.out = table.of[id];
  step.label = LabelOf(g, unit);
  if (const auto* ar = As<AllReduce>(g, id)) {
    step.kind = CollectiveStep::Kind::kAllReduce;
    step.reduce = ar->kind;
    step.count = NumElements(u.types[id].shape);
    return step;
  }
  const bool scatter = Is<ReduceScatter>(g, id);
  const TensorType& sliced = u.types[scatter ? id : operand];
  step.kind = scatter ? CollectiveStep::Kind::kReduceScatter : CollectiveStep::Kind::kAllGather;
  if (scatter) step.reduce = As<ReduceScatter>(g, id)->kind;
  step.count = SlicingOf(sliced.shape, sliced.layout.dim, ranks).slice_elements();
  return step;
}

int64_t LibraryBytes(const CollectiveStep& step, int ranks) {
  const int64_t size = static_cast<int64_t>(SizeOf(step.dtype));
  switch (step.kind) {
    case CollectiveStep::Kind::kAllReduce:
    case CollectiveStep::Kind::kBroadcast:
    case CollectiveStep::Kind::kReduce:
    case CollectiveStep::Kind::kSend: return 2 * step.count * size;
    case CollectiveStep::Kind::kReduceScatter:
    case CollectiveStep::Kind::kAllGather: return (ranks + 1) * step.count * size;
    case CollectiveStep::Kind::kAllToAll: return 2 * ranks * step.count * size;
  }
  return 0;
}

int64_t GemmBytes(const GemmStep& s) {
  const int64_t elements = s.m.Most() * s.k.Most() + s.k.Most() * s.n.Most() + s.m.Most() * s.n.Most();
  return s.batch * elements * static_cast<int64_t>(SizeOf(s.dtype));
}

std::string ProtocolOf(const Units& u, OneShot one_shot) {
  const Graph& g = *u.graph;
  std::vector<std::string> words;
  const auto add = [&](const char* word) {
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  };
  for (const Unit& unit : u.units) {
    bool all_reduce = false, scatter = false, gather = false;
    if (std::any_of(unit.nodes.begin(), unit.nodes.end(), [&](NodeId id) { return Is<MatMul>(g, id); })) continue;
    for (NodeId id : unit.nodes) {
      all_reduce = all_reduce || Is<AllReduce>(g, id);
      scatter = scatter || Is<ReduceScatter>(g, id);
      gather = gather || Is<AllGather>(g, id);
    }
    if (unit.library) add("library");
    else if (scatter && gather) add("two-shot");
    else if (scatter || gather) add("direct");
    if (all_reduce && !unit.library) add(one_shot == OneShot::kStaged ? "one-shot staged" : "one-shot");
  }
  return words.empty() ? "-" : absl::StrJoin(words, "+");
}

NodeId ProductOf(const Graph& g, const Unit& unit) {
  const auto product = std::find_if(unit.nodes.begin(), unit.nodes.end(), [&](NodeId id) { return Is<MatMul>(g, id); });
  return product == unit.nodes.end() ? -1 : *product;
}

namespace {

/// What COCONET_DUMP and COCONET_DEBUG ask to see.
void Show(const Schedule& schedule, const Config& config, const Lowered& lowered) {
  const Env& env = GetEnv();
  if (env.Dumps("schedule") || env.Dumps("plan")) {
    const std::string text = absl::StrCat(Print(schedule), "# ", TraceText(schedule.trace), "\n# ", Text(config), "\n");
    const std::string name = absl::StrCat(schedule.graph.name, "-", Fingerprint(text).substr(0, 12));
    MaybeDump("schedule", name + ".schedule", text);
    MaybeDump("plan", name + ".plan", Print(lowered.plan));
  }
  if (env.debug < 2) return;
  std::string lines = absl::StrCat("coconet: lowered ", schedule.graph.name, ": ", Describe(schedule), "; ", Text(config), ": ",
                                   lowered.plan.steps.size(), " steps\n");
  if (env.debug >= 3) {
    for (const Transformation& t : schedule.trace) absl::StrAppend(&lines, "coconet:   ", Text(t), "\n");
  }
  std::fputs(lines.c_str(), stderr);
}

}  // namespace

absl::StatusOr<Lowered> Lower(const Schedule& schedule, const Config& config, int ranks) {
  RETURN_IF_ERROR(Validate(config, schedule, {.ranks = ranks}));
  if (!schedule.graph.lists.empty()) {
    ASSIGN_OR_RETURN(Lowered list, LowerList(schedule, config, ranks));
    Show(schedule, config, list);
    return list;
  }
  ASSIGN_OR_RETURN(const Units u, CutIntoUnits(schedule, config.protocol == Protocol::kLibrary));
  BufferTable table = AssignBuffers(u, ranks, config.one_shot == OneShot::kPull || ranks == 1);
  Lowered lowered;
  lowered.plan.ranks = ranks;
  std::set<std::string> emitted;
  std::string kernels;
  for (int unit = 0; unit < static_cast<int>(u.units.size()); ++unit) {
    const Unit& current = u.units[unit];
    if (const NodeId product = ProductOf(schedule.graph, current); product >= 0) {
      for (GemmStep& gemm : GemmsOf(u, product, table, ranks)) {
        lowered.plan.bytes_per_rank += GemmBytes(gemm);
        lowered.plan.steps.push_back(std::move(gemm));
      }
      continue;
    }
    if (current.library) {
      CollectiveStep step = LibraryStep(u, u.units[unit], table, ranks);
      lowered.plan.bytes_per_rank += LibraryBytes(step, ranks);
      lowered.plan.steps.push_back(std::move(step));
      continue;
    }
    const int step = static_cast<int>(lowered.plan.steps.size());
    ASSIGN_OR_RETURN(EmittedKernel kernel, EmitKernel({u, unit, step}, config, ranks, table));
    lowered.plan.bytes_per_rank += kernel.bytes;
    lowered.plan.steps.push_back(
        KernelStep{kernel.symbol, std::move(kernel.args), config.blocks, LabelOf(schedule.graph, u.units[unit])});
    if (emitted.insert(kernel.symbol).second) absl::StrAppend(&kernels, "\n", kernel.text);
  }
  lowered.plan.buffers = std::move(table.buffers);
  if (!kernels.empty()) lowered.source = absl::StrCat("#include \"coconet/kernel.h\"\n", kernels);
  lowered.protocol = ProtocolOf(u, config.one_shot);
  Show(schedule, config, lowered);
  return lowered;
}

}  // namespace coconet
