#include "jit/emit.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "jit/arguments.h"
#include "jit/emit_fold.h"
#include "jit/expressions.h"
#include "jit/literal.h"
#include "runtime/kernel_abi.h"

namespace coconet {
namespace {

constexpr int64_t kStageElements = 64;  // so that halves begin at cache lines, in every type

/// Builds the text of one kernel. Used once.
class Emitter {
 public:
  Emitter(const Units& u, int unit, const Config& config, const Target& target, int step, const Piece* piece,
          BufferTable& table)
      : u_(u), g_(*u.graph), unit_(unit), config_(config), target_(target), ranks_(target.ranks), step_(step), piece_(piece), table_(table),
        space_(SpaceOf(g_, u.types, u.units[unit].nodes)), phases_(PhasesOf(g_, u.types, u.units[unit].nodes)) {}

  absl::StatusOr<EmittedKernel> Emit();

 private:
  const TensorType& type(NodeId id) const { return u_.types[id]; }
  const std::vector<NodeId>& nodes() const { return u_.units[unit_].nodes; }

  absl::Status CheckSpace();
  bool Streams(int buffer) const;
  /// Ranks wait for each other before and after the kernel's work.
  bool Waits() const { return collective_ && ranks_ > 1; }
  bool Synchronizes() const { return Waits() || rounds_ > 0; }
  /// AllReduces of the kernel that take fold `id`.
  std::vector<NodeId> SumsOf(NodeId id) const;
  bool MeetsAllRanks(const KernelPhase& phase) const;
  bool Meets(const KernelPhase& phase) const { return !phase.folds.empty() && (config_.blocks > 1 || MeetsAllRanks(phase)); }

  void AddStages();
  std::string StageText();
  absl::StatusOr<std::string> PhaseText(int number);
  absl::Status EmitStore(Phase& phase, NodeId id);
  absl::Status EmitPush(Phase& phase, NodeId gather);
  std::string LoopText(const Phase& phase) const;
  std::string ChunksText(const Phase& phase, absl::string_view loop) const;
  std::string FoldText(const KernelPhase& phase, const std::vector<std::string>& accumulators);
  absl::StatusOr<std::string> ScalarStoresText();
  void AddPlaceFields();
  absl::StatusOr<std::string> BodyText();

  const Units& u_;
  const Graph& g_;
  const int unit_;
  const Config& config_;
  const Target target_;
  const int ranks_;
  const int step_;
  const Piece* const piece_;  // null: all
  BufferTable& table_;
  const IterationSpace space_;
  const KernelPhases phases_;

  int slice_dim_ = Layout::kFlat;
  bool collective_ = false;     // loads from or stores to peers
  bool cuts_ = false;           // has work on slices
  bool reads_gathered_ = false;
  int last_gathering_ = -1;     // phase
  int rounds_ = 0;              // phases with folds that blocks or ranks meet for
  int round_ = 0;               // of them written so far
  int64_t row_length_ = 1, bytes_ = 0;
  std::string first_;           // scalars that are known before anybody is waited for
  struct Stage {
    NodeId operand;
    std::string name;  // of the Staged in the text
    int buffer;        // both halves
    int64_t stride;    // elements of a half
  };
  std::vector<Stage> staged_;
  Arguments args_;
  Expressions expressions_{{u_, unit_, ranks_, space_, phases_, table_}, args_};
};

absl::Status Emitter::CheckSpace() {
  for (NodeId id : nodes()) {
    const bool is_scalar = type(id).shape.empty();
    if (Communicates(g_, id) && (!is_scalar || space_.shape.empty())) collective_ = true;
    const NodeId sliced = Is<AllGather>(g_, id) || Is<Fold>(g_, id) ? g_.nodes[id].inputs[0] : id;
    if (type(sliced).layout.sliced()) slice_dim_ = type(sliced).layout.dim;
    if (is_scalar || Is<Fold>(g_, id) || type(id).shape == space_.shape || expressions_.IsRow(id)) continue;
    return absl::InternalError(absl::StrCat("emit: ", NodeText(g_, id), " has shape ", Text(type(id).shape),
                                            " in a kernel over ", Text(space_.shape)));
  }
  if (piece_ != nullptr && piece_->slices) {
    slice_dim_ = piece_->dim;
    cuts_ = true;
  }
  for (size_t d = space_.shape.size() - space_.row_dims; d < space_.shape.size(); ++d) row_length_ *= space_.shape[d].size;
  for (size_t p = 0; p < phases_.phases.size(); ++p) {
    const KernelPhase& phase = phases_.phases[p];
    cuts_ = cuts_ || phase.on_slices;
    if (!phase.gathers.empty()) last_gathering_ = static_cast<int>(p);
    rounds_ += Meets(phase);
    for (NodeId id : phase.evaluated) reads_gathered_ = reads_gathered_ || (Is<AllGather>(g_, id) && !phase.on_slices);
  }
  return absl::OkStatus();
}

bool Emitter::Streams(int buffer) const {
  switch (config_.streaming) {
    case Streaming::kNone: return false;
    case Streaming::kShared: return table_.buffers[buffer].symmetric;
    case Streaming::kAll: return true;
  }
  return false;
}

std::vector<NodeId> Emitter::SumsOf(NodeId id) const {
  std::vector<NodeId> sums;
  for (NodeId node : nodes()) {
    if (Is<AllReduce>(g_, node) && u_.Value(g_.nodes[node].inputs[0]) == id) sums.push_back(node);
  }
  return sums;
}

bool Emitter::MeetsAllRanks(const KernelPhase& phase) const {
  return ranks_ > 1 && std::any_of(phase.folds.begin(), phase.folds.end(), [&](NodeId id) { return !SumsOf(id).empty(); });
}

/// Where the operands of the kernel's AllReduces are staged.
void Emitter::AddStages() {
  if (config_.one_shot != OneShot::kStaged || !Waits()) return;
  for (NodeId id : nodes()) {
    if (!Is<AllReduce>(g_, id) || expressions_.InUnit(u_.Value(g_.nodes[id].inputs[0]))) continue;
    const NodeId operand = u_.Value(g_.nodes[id].inputs[0]);
    const auto same = [&](const Stage& stage) { return stage.operand == operand; };
    if (std::any_of(staged_.begin(), staged_.end(), same)) continue;
    const std::string name = absl::StrCat("staged", staged_.size());
    const int64_t stride = (NumElements(type(operand).shape) + kStageElements - 1) / kStageElements * kStageElements;
    const int buffer = AddSyncBuffer(table_, absl::StrCat("stages", step_, ".", staged_.size()), type(operand).dtype,
                                     2 * stride, true);
    expressions_.LoadAllFrom(operand, name + ".from");
    staged_.push_back({operand, name, buffer, stride});
    bytes_ += 2 * static_cast<int64_t>(SizeOf(type(operand).dtype)) * NumElements(space_.shape);
  }
}

std::string Emitter::StageText() {
  std::string text;
  Phase copy;
  for (const Stage& stage : staged_) {
    const DType dtype = type(stage.operand).dtype;
    const std::string own = args_.Own(table_.of[stage.operand], dtype);
    absl::StrAppend(&text, "  const auto ", stage.name, " = MakeStaged(sync, ", own, ", ",
                    args_.Peers(stage.buffer, dtype), ", ", args_.Integer(absl::StrCat(stage.name, "_stride"), stage.stride), ");\n");
    absl::StrAppend(&copy.elements.stores, "      Store<kCached>(", stage.name, ".to + i, Load<V>(", own, " + i));\n");
  }
  return absl::StrCat(text, "  ForChunks(grid, Cut{1, p.n, p.n}, 0, p.chunk, [&](const Chunk& c) {\n",
                      LoopText(copy), "    return true;\n  });\n");
}

absl::Status Emitter::EmitStore(Phase& phase, NodeId id) {
  const bool stores = IsStore(g_, id);
  const NodeId value = stores ? u_.Value(StoredOperand(g_, id)) : id;
  if (stores && expressions_.InUnit(value) && Is<AllGather>(g_, value)) return absl::OkStatus();  // pushed
  const int buffer = stores ? table_.target[id] : table_.of[id];
  if (buffer < 0 || (!stores && table_.buffers[buffer].role != BufferRole::kTemp)) return absl::OkStatus();
  const TensorType& t = type(id);
  const std::string own = args_.Own(buffer, type(value).dtype);
  if (expressions_.IsRow(value)) {
    ASSIGN_OR_RETURN(const std::string row, expressions_.Row(phase, value));
    const std::string at = expressions_.RowOffset(id);
    absl::StrAppend(&phase.row_stores, "    if (grid.ThreadId() == 0) Store<kCached>(", own, " + ", at, ", ", row, ");\n");
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::string name, expressions_.Element(phase, phase.elements, value));
  phase.bytes_per_element += static_cast<int64_t>(SizeOf(t.dtype));
  absl::StrAppend(&phase.elements.stores, "      Store<", Streams(buffer) ? "kStreamed" : "kCached", ">(", own,
                  t.layout.sliced() ? " + (i - c.shift), " : " + i, ", name, ");\n");
  return absl::OkStatus();
}

absl::Status Emitter::EmitPush(Phase& phase, NodeId gather) {
  ASSIGN_OR_RETURN(const std::string name, expressions_.Element(phase, phase.elements, g_.nodes[gather].inputs[0]));
  for (int buffer : table_.GatherTargets(u_, gather)) {
    phase.bytes_per_element += ranks_ * static_cast<int64_t>(SizeOf(type(gather).dtype));
    absl::StrAppend(&phase.elements.stores, "      StorePeers<", Streams(buffer) ? "kStreamed" : "kCached", ">(",
                    args_.Peers(buffer, type(gather).dtype), ", i, ", name, ");\n");
  }
  return absl::OkStatus();
}

std::string Emitter::LoopText(const Phase& phase) const {
  const bool rows = space_.row_dims > 0;
  const std::string range = rows ? "r * p.row_length, (r + 1) * p.row_length" : "c.begin, c.end";
  std::string loop;
  if (!phase.elements.stores.empty()) {
    loop = absl::StrCat("    ForEach<kV>(grid, ", range, ", p.packed != 0, [&](auto lanes, Index i) {\n",
                        "      constexpr int V = decltype(lanes)::kCount;\n", phase.elements.values, phase.elements.stores,
                        "    });\n");
  }
  if (!rows) return loop;
  return absl::StrCat("    for (Index r = c.begin / p.row_length; r < c.end / p.row_length; ++r) {\n", phase.row_values, loop,
                      phase.row_stores, "    }\n");
}

/// The loop over this block's chunks.
std::string Emitter::ChunksText(const Phase& phase, absl::string_view loop) const {
  const absl::string_view part = piece_ == nullptr ? "" : "part, ";
  if (phase.on_slices) {
    const bool publishes = reads_gathered_ && Waits() && phase.number == last_gathering_;
    return absl::StrCat("  ForChunks(grid, cut, ", part, "rank, p.chunk, [&](const Chunk& c) {\n", loop,
                        publishes ? "    Publish(sync, grid, c.id);\n" : "", "    return true;\n  });\n");
  }
  const bool by_slices = piece_ != nullptr && piece_->slices;
  if (!phase.reads_gathered && !by_slices) {
    return absl::StrCat("  ForChunks(grid, Cut{1, p.n, p.n}, ", part, "0, p.chunk, [&](const Chunk& c) {\n", loop,
                        "    return true;\n  });\n");
  }
  const bool waits = phase.reads_gathered && Waits();
  const absl::string_view wait = waits ? "      if (!AwaitChunk(sync, grid, from, c.id)) return false;\n" : "";
  const absl::string_view slices = target_.nodes > 1 ? "int(p.slices)" : "kRanks";
  return absl::StrCat("  for (int k = 0; k < ", slices, "; ++k) {\n    const int from = (rank + k) % ", slices, ";\n",
                      "    if (!ForChunks(grid, cut, ", part, "from, p.chunk, [&](const Chunk& c) {\n", wait, loop,
                      "      return true;\n    })) return;\n  }\n");
}

absl::StatusOr<std::string> Emitter::PhaseText(int number) {
  const KernelPhase& planned = phases_.phases[number];
  Phase phase{.on_slices = planned.on_slices, .number = number};
  std::string before;
  expressions_.OpenSection(&before);
  for (NodeId id : planned.stores) RETURN_IF_ERROR(EmitStore(phase, id));
  for (NodeId id : planned.gathers) RETURN_IF_ERROR(EmitPush(phase, id));
  std::vector<std::string> accumulators;
  for (NodeId id : planned.folds) {
    ASSIGN_OR_RETURN(const std::string name, expressions_.Element(phase, phase.elements, g_.nodes[id].inputs[0]));
    auto [accumulator, declaration] = expressions_.Accumulator(id);
    absl::StrAppend(&before, "  ", declaration);
    absl::StrAppend(&phase.elements.stores, "      Accumulate(", accumulator, ", ", name, ");\n");
    accumulators.push_back(std::move(accumulator));
  }
  const int64_t n = NumElements(space_.shape);
  const int64_t slice = planned.on_slices ? SlicingOf(space_.shape, slice_dim_, ranks_).slice_elements() : n;
  bytes_ += phase.bytes_per_element * std::min(slice, n) / (piece_ == nullptr ? 1 : piece_->of);
  const std::string loop = LoopText(phase);
  if (number == 0) std::swap(before, first_);
  if (loop.empty()) return before;
  if (!phase.on_slices && !phase.reads_gathered && (piece_ == nullptr || !piece_->slices)) args_.Integer("n", n);
  return absl::StrCat(before, ChunksText(phase, loop), FoldText(planned, accumulators));
}

/// What the phase's folds add up to, on this rank and on all.
std::string Emitter::FoldText(const KernelPhase& phase, const std::vector<std::string>& accumulators) {
  std::string totals, results;
  const bool meets = Meets(phase), all = MeetsAllRanks(phase);
  for (size_t k = 0; k < phase.folds.size(); ++k) {
    const NodeId id = phase.folds[k];
    const std::string& f = accumulators[k];
    const std::vector<NodeId> sums = SumsOf(id);
    const auto define = [&](const std::string& name, const std::string& total) {
      absl::StrAppend(&results, "  const auto ", name, " = ", expressions_.FromTotal(id, total), ";\n");
    };
    expressions_.NameScalar(id, f + "_own");
    for (NodeId sum : sums) expressions_.NameScalar(sum, ranks_ > 1 ? f + "_all" : f + "_own");
    absl::StrAppend(&totals, "  const auto ", f, "_total = Total(grid, ", f, ");\n");
    if (!meets) {
      define(f + "_own", f + "_total");
      continue;
    }
    const DType word = IsFloat(type(id).dtype) ? DType::kF64 : DType::kI64;
    const int buffer = AddSyncBuffer(table_, absl::StrCat("sums", step_, ".", f), word, 2 * target_.ranks_per_node() * config_.blocks, true);
    absl::StrAppend(&totals, "  const auto ", f, "_parts = MakePartials(sync, grid, ", args_.Peers(buffer, word), ");\n",
                    "  Leave(", f, "_parts, sync, grid, ", sums.empty() ? "false, " : "true, ", KernelType(word), "(", f, "_total));\n");
    const absl::string_view kind = FoldKindText(As<Fold>(g_, id)->kind);
    define(f + "_own", absl::StrCat("Gathered<", kind, ">(", f, "_parts, sync, grid, false)"));
    if (!sums.empty()) define(f + "_all", absl::StrCat("Gathered<", kind, ">(", f, "_parts, sync, grid, true)"));
  }
  if (meets) absl::StrAppend(&totals, "  if (!Meet(sync, grid, ", round_++, ", ", all ? "true" : "false", ")) return;\n");
  return totals + results;
}

absl::StatusOr<std::string> Emitter::ScalarStoresText() {
  std::string text, stores;
  expressions_.OpenSection(&text);
  for (NodeId id : phases_.scalars) {
    const bool is_store = IsStore(g_, id);
    const int buffer = is_store ? table_.target[id] : table_.of[id];
    if (buffer < 0 || (!is_store && table_.buffers[buffer].role != BufferRole::kTemp)) continue;
    const NodeId value = is_store ? u_.Value(StoredOperand(g_, id)) : id;
    ASSIGN_OR_RETURN(const std::string name, expressions_.Scalar(value));
    absl::StrAppend(&stores, "    Store<kCached>(", args_.Own(buffer, type(value).dtype), ", ", name, ");\n");
  }
  if (stores.empty()) return text;
  return absl::StrCat(text, "  if (grid.BlockId() == 0 && grid.ThreadId() == 0) {\n", stores, "  }\n");
}

/// Words that place the kernel: this rank, its slice, the flags.
void Emitter::AddPlaceFields() {
  args_.Member("Index rank", "rank", {{Arg::Kind::kRank, -1, 0}});
  const int64_t rows = std::max<int64_t>(1, config_.chunk / std::max<int64_t>(1, row_length_));
  const int64_t chunk = space_.row_dims > 0 ? rows * std::max<int64_t>(1, row_length_) : config_.chunk;
  args_.Integer("chunk", chunk);
  const TensorSlicing cut = SlicingOf(space_.shape, slice_dim_, ranks_);
  const int64_t row_elements = cut.slicing.extent * cut.inner;
  // A kernel without slices of its own takes those of the overlap, which may be of other columns.
  const int64_t per = piece_ != nullptr && piece_->slices ? piece_->per * piece_->unit(space_.shape) : cut.slicing.per * cut.inner;
  // Packs begin at multiples of their size; those of an unaligned row or slice would straddle it.
  const bool rows_fit = (cut.outer == 1 || row_elements % config_.vec == 0) && (space_.row_dims == 0 || row_length_ % config_.vec == 0);
  const bool slices_fit = ranks_ == 1 || per % config_.vec == 0;
  const int64_t part_begin = piece_ == nullptr ? 0 : piece_->begin * piece_->unit(space_.shape);
  const bool fit = space_.row_dims > 0 ? rows_fit : !cuts_ || (rows_fit && slices_fit);
  args_.Integer("packed", fit && (space_.row_dims > 0 || part_begin % config_.vec == 0));
  if (piece_ != nullptr) {
    args_.Integer("part_begin", part_begin);
    args_.Integer("part_end", piece_->end * piece_->unit(space_.shape));
    if (piece_->slices && target_.nodes > 1) args_.Integer("slices", ranks_);
  }
  if (space_.row_dims > 0) args_.Integer("row_length", row_length_);
  if (cuts_) {
    args_.Integer("outer", cut.outer);
    args_.Integer("row_elements", row_elements);
    args_.Integer("per", per);
  }
  if (!Synchronizes()) return;
  if (target_.nodes > 1) args_.Member("Index node_rank", "node_rank", {{Arg::Kind::kNodeRank, -1, 0}});
  const int64_t chunks = reads_gathered_ ? cut.outer * ((per + chunk - 1) / chunk) : 0;
  const int64_t row = FlagSlots::Row(config_.blocks, rounds_, chunks);
  const int flags = AddSyncBuffer(table_, absl::StrCat("flags", step_), DType::kI32, target_.ranks_per_node() * row, true);
  const int epochs = AddSyncBuffer(table_, absl::StrCat("epochs", step_), DType::kI32, config_.blocks, false);
  args_.Member("unsigned* flags[kRanks]", "flags", {{Arg::Kind::kPeers, flags, 0}});
  args_.Member("unsigned* epochs", "epochs", {{Arg::Kind::kOwn, epochs, 0}});
  args_.Member("Control* control", "control", {{Arg::Kind::kControl, -1, 0}});
  args_.Integer("row", row);
  args_.Integer("step", step_);
}

absl::StatusOr<std::string> Emitter::BodyText() {
  const std::string stage = staged_.empty() ? "" : StageText();
  std::string work;
  for (size_t p = 0; p < phases_.phases.size(); ++p) {
    ASSIGN_OR_RETURN(const std::string text, PhaseText(static_cast<int>(p)));
    absl::StrAppend(&work, text);
  }
  ASSIGN_OR_RETURN(const std::string scalars, ScalarStoresText());
  absl::StrAppend(&work, scalars);
  if (!staged_.empty()) args_.Integer("n", NumElements(space_.shape));
  AddPlaceFields();
  std::string body = absl::StrCat("  const int rank = int(p.rank);\n", args_.LocalsText());
  absl::StrAppend(&body, first_);
  if (cuts_) absl::StrAppend(&body, "  const Cut cut{p.outer, p.row_elements, p.per};\n");
  if (piece_ != nullptr) absl::StrAppend(&body, "  const Part part{p.part_begin, p.part_end};\n");
  const bool streams = config_.streaming != Streaming::kNone;
  if (Synchronizes()) {
    absl::StrAppend(&body, "  const auto sync = MakeSync<kRanks>(grid, p.control, p.flags, p.epochs, p.row, ", target_.nodes > 1 ? "int(p.node_rank)" : "rank", ", int(p.step), ",
                    rounds_, ", ", streams ? "kStreamed" : "kCached", ");\n", stage);
  }
  if (Waits()) absl::StrAppend(&body, "  if (!Enter(sync, grid)) return;\n");
  absl::StrAppend(&body, work);
  if (Waits()) {
    absl::StrAppend(&body, staged_.empty() ? "  Exit(sync, grid);\n" : "  Leave(sync, grid);\n");
  } else {
    absl::StrAppend(&body, Synchronizes() ? "  Leave(sync, grid);\n" : "", streams ? "  StreamFence();\n" : "");
  }
  return body;
}

absl::StatusOr<EmittedKernel> Emitter::Emit() {
  RETURN_IF_ERROR(CheckSpace());
  AddStages();
  ASSIGN_OR_RETURN(const std::string body, BodyText());
  return FinishedKernel(target_.ranks_per_node(), config_.vec, args_, body, bytes_);
}

}  // namespace

EmittedKernel FinishedKernel(int ranks, int vec, const Arguments& args, const std::string& body, int64_t bytes) {
  EmittedKernel kernel;
  kernel.args = args.Words();
  const std::string text = absl::StrCat("namespace @name@_n {\nusing namespace coconet;\nconstexpr int kRanks = ", ranks,
                                        ";\nconstexpr int kV = ", vec, ";\n", args.StructText(),
                                        "CC_KERNEL(@name@) {\n", body, "}\n}  // namespace @name@_n\n");
  kernel.symbol = absl::StrCat("k_", Fingerprint(text).substr(0, 16));
  kernel.text = absl::StrReplaceAll(text, {{"@name@", kernel.symbol}});
  kernel.bytes = bytes;
  return kernel;
}

absl::StatusOr<EmittedKernel> EmitKernel(const Units& u, int unit, const Config& config, const Target& target, int step,
                                         const Piece* piece, BufferTable& table) {
  if (IsStridedFold(u, unit)) return EmitStridedFold(u, unit, config, target.ranks, table);
  return Emitter(u, unit, config, target, step, piece, table).Emit();
}

}  // namespace coconet
