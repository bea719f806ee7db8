#include "jit/lower/lower.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "coconet/base/env.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "coconet/schedule/describe.h"
#include "jit/config/launch_shapes.h"
#include "jit/config/units.h"
#include "jit/emit/emit.h"
#include "jit/emit/tiled_product.h"
#include "jit/lower/library_call.h"
#include "jit/lower/lower_steps.h"
#include "jit/storage/buffers.h"
#include "jit/storage/gemms.h"

namespace coconet {
std::string LabelOf(const Graph& g, const Unit& unit) {
  std::vector<std::string> parts;
  bool computes = false;
  const auto add = [&](const char* part, Span span = Span::kAll) {
    const std::string text = span == Span::kAll ? part : absl::StrCat(part, "(", Name(span), ")");
    if (std::find(parts.begin(), parts.end(), text) == parts.end()) parts.push_back(text);
  };
  for (NodeId id : unit.nodes) {
    if (Is<ReduceScatter>(g, id)) add("RS", SpanOf(g.nodes[id].op));
    if (Is<AllReduce>(g, id)) add("AR", SpanOf(g.nodes[id].op));
    if (Is<Broadcast>(g, id)) add("broadcast");
    if (Is<ReduceTo>(g, id)) add("reduce");
    if (Is<AllToAll>(g, id)) add("A2A");
    if (!Communicates(g, id) && (!IsStore(g, id) || unit.nodes.size() == 1)) computes = true;
  }
  if (computes) add("C");
  for (NodeId id : unit.nodes) {
    if (Is<AllGather>(g, id)) add("AG", SpanOf(g.nodes[id].op));
  }
  if (absl::c_any_of(unit.nodes, [&](NodeId id) { return Is<Send>(g, id); })) add("send");
  return parts.size() == 1 ? parts[0] : absl::StrCat("fuse(", absl::StrJoin(parts, ", "), ")");
}

int64_t LibraryBytes(const CollectiveStep& step, int ranks) {
  const int64_t size = static_cast<int64_t>(SizeOf(step.dtype));
  switch (step.kind) {
    case CollectiveStep::Kind::kAllReduce:
    case CollectiveStep::Kind::kBroadcast:
    case CollectiveStep::Kind::kReduce:
    case CollectiveStep::Kind::kSend:
      return 2 * step.count * size;
    case CollectiveStep::Kind::kReduceScatter:
    case CollectiveStep::Kind::kAllGather:
      return (ranks + 1) * step.count * size;
    case CollectiveStep::Kind::kAllToAll:
      return 2 * ranks * step.count * size;
  }
  return 0;
}

std::string ProtocolOf(const Units& u, const Config& config) {
  const Graph& g = u.graph();
  std::vector<std::string> words;
  const auto add = [&](const char* word) {
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  };
  for (const Unit& unit : u.units) {
    bool all_reduce = false, scatter = false, gather = false;
    if (std::any_of(unit.nodes.begin(), unit.nodes.end(),
                    [&](NodeId id) { return Is<MatMul>(g, id); }))
      continue;
    for (NodeId id : unit.nodes) {
      all_reduce = all_reduce || Is<AllReduce>(g, id);
      scatter = scatter || Is<ReduceScatter>(g, id);
      gather = gather || Is<AllGather>(g, id) || Is<Send>(g, id);
    }
    if (unit.library)
      add("library");
    else if (config.ring && (scatter || gather))
      add("ring");
    else if (scatter && gather)
      add("two-shot");
    else if (scatter || gather)
      add("direct");
    if (all_reduce && !unit.library)
      add(config.one_shot == OneShot::kStaged ? "one-shot staged"
          : config.one_shot == OneShot::kLL   ? "one-shot ll"
                                              : "one-shot");
  }
  return words.empty() ? "-" : absl::StrJoin(words, "+");
}

NodeId ProductOf(const Graph& g, const Unit& unit) {
  const auto product = std::find_if(unit.nodes.begin(), unit.nodes.end(),
                                    [&](NodeId id) { return Is<MatMul>(g, id); });
  return product == unit.nodes.end() ? -1 : *product;
}

namespace {

/// One Lower on its way.
class Lowering {
 public:
  Lowering(const Schedule& schedule, const Config& config, const Target& target)
      : schedule_(schedule), config_(config), target_(target) {}

  absl::StatusOr<Lowered> Run();

 private:
  /// All of a unit, or one piece of it; or all of one that takes tiles.
  absl::Status AddUnit(int unit, const Piece* piece, const TiledProduct* tiles = nullptr);
  absl::Status AddChain(const Units::Chain& chain);
  absl::Status AddTiledChain(const Units::Chain& chain);
  absl::StatusOr<TiledProduct> AddTiledProduct(int unit);
  bool TakesTiles(const Unit& unit) const { return !unit.library && LaneOf(unit) == 1; }
  /// The last step so far on a lane; -1: none.
  int LastStepOn(int lane) const;
  void WaitFor(int step) { after_ = step >= 0 ? std::vector<int>{step} : std::vector<int>{}; }
  /// Of a unit of the chain that is added.
  int LaneOf(const Unit& unit) const;
  template <class AnyStep>
  void Add(AnyStep step, int64_t bytes) {
    lowered_.plan.bytes_per_rank += bytes;
    step.lane = lane_;
    step.after = after_;
    lowered_.plan.steps.emplace_back(std::move(step));
  }
  void AddKernel(EmittedKernel kernel, int blocks, std::string label,
                 const TiledProduct* tiles = nullptr);
  /// Blocks of a kernel that lays out a library collective's operands: on a host the lane's thread
  /// does it.
  int BlocksToMove() const { return config_.threads == 1 ? 1 : ConfigHere().blocks; }
  /// Beside a product kernels have a block on each multiprocessor that it leaves.
  Config ConfigHere() const {
    Config here = config_;
    if (lane_ == 1 && beside_ > 0) here.blocks = beside_;
    return here;
  }
  /// The step of the product's first piece; -1: it is the one that will be added now.
  int FirstPieceOf(NodeId product) {
    const auto [first, is_new] =
        first_piece_.try_emplace(product, static_cast<int>(lowered_.plan.steps.size()));
    return is_new ? -1 : first->second;
  }

  const Schedule& schedule_;
  const Config& config_;
  const Target target_;
  Units u_;
  BufferTable table_;
  Lowered lowered_;
  std::set<std::string> emitted_;
  std::string kernels_;
  int lane_ = 0;            // of the steps that are added
  std::vector<int> after_;  // what these wait for
  int beside_ =
      0;  // Config::beside, while a chain is added whose collectives run beside its products
  int last_beside_ = -1;               // the last step on lane 1
  std::map<NodeId, int> first_piece_;  // of products in overlaps: their first step
};

/// What COCONET_DUMP and COCONET_DEBUG ask to see.
void Show(const Schedule& schedule, const Config& config, const Lowered& lowered) {
  const Env& env = GetEnv();
  if (env.Dumps("schedule") || env.Dumps("plan")) {
    const std::string text = absl::StrCat(Print(schedule), "# ", TraceText(schedule.trace()),
                                          "\n# ", Text(config), "\n");
    const std::string name =
        absl::StrCat(schedule.graph().name, "-", Fingerprint(text).substr(0, 12));
    MaybeDump("schedule", name + ".schedule", text);
    MaybeDump("plan", name + ".plan", Print(lowered.plan));
  }
  if (env.debug < 2) return;
  std::string lines =
      absl::StrCat("coconet: lowered ", schedule.graph().name, ": ", Describe(schedule), "; ",
                   Text(config), ": ", lowered.plan.steps.size(), " steps\n");
  if (env.debug >= 3) {
    for (const Transformation& t : schedule.trace())
      absl::StrAppend(&lines, "coconet:   ", Text(t), "\n");
  }
  std::fputs(lines.c_str(), stderr);
}

void Lowering::AddKernel(EmittedKernel kernel, int blocks, std::string label,
                         const TiledProduct* tiles) {
  if (emitted_.insert(kernel.symbol).second) absl::StrAppend(&kernels_, "\n", kernel.text);
  KernelStep step{std::move(kernel.symbol), std::move(kernel.args), blocks, std::move(label)};
  step.threads = config_.threads;
  if (tiles != nullptr) step.awaits = tiles->step;
  Add(std::move(step), kernel.bytes);
}

absl::Status Lowering::AddUnit(int number, const Piece* piece, const TiledProduct* tiles) {
  const Unit& unit = u_.units[number];
  const Graph& g = schedule_.graph();
  const std::string label = LabelOf(g, unit);
  if (const NodeId product = ProductOf(g, unit); product >= 0) {
    for (GemmStep& gemm : GemmsOf(u_, product, table_, target_.ranks, config_.gemm, piece)) {
      // Pieces are of rows: each takes all of b, which no launch of the chain writes.
      if (piece != nullptr) gemm.weights_of = FirstPieceOf(product);
      gemm.beside = beside_;
      const int64_t bytes = GemmBytes(gemm);
      Add(std::move(gemm), bytes);
    }
  } else if (unit.library) {
    LibraryCall call = LibraryCallOf(u_, unit, config_, target_, piece, table_);
    if (call.before.has_value())
      AddKernel(*std::move(call.before), BlocksToMove(), absl::StrCat("pack ", label));
    for (CollectiveStep& step : call.steps) {
      step.label = label;
      const int64_t bytes = LibraryBytes(step, SizeOf(lowered_.plan, step.group));
      Add(std::move(step), bytes);
    }
    if (call.after.has_value())
      AddKernel(*std::move(call.after), BlocksToMove(), absl::StrCat("unpack ", label));
  } else {
    const int step = static_cast<int>(lowered_.plan.steps.size());
    ASSIGN_OR_RETURN(
        EmittedKernel kernel,
        EmitKernel({.units = u_, .unit = number, .step = step, .piece = piece, .tiles = tiles},
                   ConfigHere(), target_, table_));
    AddKernel(std::move(kernel), ConfigHere().blocks, label, tiles);
  }
  return absl::OkStatus();
}

int Lowering::LaneOf(const Unit& unit) const {
  if (ProductOf(schedule_.graph(), unit) >= 0) return 0;
  const bool communicates =
      absl::c_any_of(unit.nodes, [&](NodeId id) { return Communicates(schedule_.graph(), id); });
  return unit.library || (communicates && beside_ > 0) ? 1 : 0;
}

/// Piece k of a launch comes when piece k + 1 of the launch before it has begun. What communicates
/// beside the rest is on a lane of its own; steps wait for those of the other lane that the same
/// piece needs.
absl::Status Lowering::AddChain(const Units::Chain& chain) {
  if (config_.tiles > 0) return AddTiledChain(chain);
  ASSIGN_OR_RETURN(const std::vector<Piece> pieces,
                   PiecesOf(schedule_, chain.overlap, target_.ranks, config_.pieces));
  const int count = static_cast<int>(pieces.size()), units = chain.last - chain.first + 1;
  const auto in_chain = absl::MakeSpan(u_.units).subspan(chain.first, units);
  if (absl::c_any_of(in_chain,
                     [&](const Unit& unit) { return ProductOf(schedule_.graph(), unit) >= 0; }))
    beside_ = config_.beside;
  const auto last_step = [&] { return static_cast<int>(lowered_.plan.steps.size()) - 1; };
  const int before = last_step();
  std::vector<std::array<int, kLanes>> last(count);  // step of each piece on each lane
  for (auto& lanes : last) lanes = {before, last_beside_};
  for (int time = 0; time < count + units - 1; ++time) {
    // Of one time the last launches first: what they wait for is done, and the collectives behind
    // them get something to move.
    for (int unit = units - 1; unit >= 0; --unit) {
      const int k = time - unit;
      if (k < 0 || k >= count) continue;
      lane_ = LaneOf(in_chain[unit]);
      const int other = last[k][1 - lane_];
      after_ = other >= 0 ? std::vector<int>{other} : std::vector<int>{};
      const int steps = last_step();
      RETURN_IF_ERROR(AddUnit(chain.first + unit, &pieces[k]));
      if (last_step() == steps) continue;  // nothing of the piece there
      last[k][lane_] = last_step();
      if (lane_ == 1) last_beside_ = last_step();
    }
  }
  lane_ = beside_ = 0;
  after_ = last_beside_ >= 0 ? std::vector<int>{last_beside_} : std::vector<int>{};
  return absl::OkStatus();
}

int Lowering::LastStepOn(int lane) const {
  int step = static_cast<int>(lowered_.plan.steps.size()) - 1;
  while (step >= 0 && coconet::LaneOf(lowered_.plan.steps[step]) != lane) --step;
  return step;
}

absl::StatusOr<TiledProduct> Lowering::AddTiledProduct(int unit) {
  const int step = static_cast<int>(lowered_.plan.steps.size());
  ASSIGN_OR_RETURN(
      const TiledProduct tiles,
      MakeTiledProduct({u_, ProductOf(schedule_.graph(), u_.units[unit]), unit + 1, step}, config_,
                       target_, table_));
  ASSIGN_OR_RETURN(EmittedKernel kernel, EmitTiledProduct(u_, tiles, config_, target_, table_));
  AddKernel(std::move(kernel), config_.blocks, "MM");
  std::get<KernelStep>(lowered_.plan.steps.back()).threads =
      kTileThreads;  // a host has one a block
  return tiles;
}

/// The kernel that takes a product's tiles goes on from where the product does, on the other lane.
/// The other launches follow one another.
absl::Status Lowering::AddTiledChain(const Units::Chain& chain) {
  beside_ = config_.beside;
  for (int unit = chain.first; unit <= chain.last; ++unit) {
    lane_ = LaneOf(u_.units[unit]);
    const bool signals = lane_ == 0 && unit < chain.last &&
                         ProductOf(schedule_.graph(), u_.units[unit]) >= 0 &&
                         TakesTiles(u_.units[unit + 1]);
    const int before = LastStepOn(0);
    WaitFor(LastStepOn(1 - lane_));
    if (!signals) {
      RETURN_IF_ERROR(AddUnit(unit, nullptr));
      continue;
    }
    ASSIGN_OR_RETURN(const TiledProduct tiles, AddTiledProduct(unit));
    lane_ = 1;
    WaitFor(before);
    RETURN_IF_ERROR(AddUnit(++unit, nullptr, &tiles));
  }
  lane_ = beside_ = 0;
  last_beside_ = LastStepOn(1);
  WaitFor(last_beside_);
  return absl::OkStatus();
}

absl::StatusOr<Lowered> Lowering::Run() {
  ASSIGN_OR_RETURN(u_, CutIntoUnits(schedule_, LeftToLibrary(config_.protocol, target_.nodes)));
  table_ = AssignBuffers(u_, target_, config_.one_shot == OneShot::kPull || target_.ranks == 1);
  lowered_.plan.ranks = target_.ranks;
  lowered_.plan.nodes = target_.nodes;
  lowered_.plan.stages = target_.stages;
  for (int unit = 0; unit < static_cast<int>(u_.units.size()); ++unit) {
    const auto chain =
        absl::c_find_if(u_.chains, [&](const Units::Chain& c) { return c.first == unit; });
    if (chain != u_.chains.end()) {
      RETURN_IF_ERROR(AddChain(*chain));
      unit = chain->last;
      continue;
    }
    RETURN_IF_ERROR(AddUnit(unit, nullptr));
    after_.clear();
  }
  lowered_.plan.buffers = std::move(table_.buffers);
  if (!kernels_.empty())
    lowered_.source = absl::StrCat("#include \"coconet/kernel.h\"\n", kernels_);
  lowered_.protocol = ProtocolOf(u_, config_);
  return std::move(lowered_);
}

}  // namespace

absl::StatusOr<Lowered> Lower(const Schedule& schedule, const Config& config,
                              const Target& target) {
  RETURN_IF_ERROR(Validate(
      config, schedule,
      {.ranks = target.ranks, .nodes = target.nodes, .stages_apart = target.stages_apart}));
  absl::StatusOr<Lowered> lowered = schedule.graph().lists.empty()
                                        ? Lowering(schedule, config, target).Run()
                                        : LowerList(schedule, config, target);
  if (lowered.ok()) Show(schedule, config, *lowered);
  return lowered;
}

}  // namespace coconet
