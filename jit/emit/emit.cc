#include "jit/emit/emit.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "jit/emit/emit_fold.h"
#include "jit/emit/emitter.h"
#include "jit/emit/tiled_product.h"
#include "runtime/kernel_abi.h"

namespace coconet {

constexpr int64_t kStageElements = 64;  // so that halves begin at cache lines, in every type
constexpr int64_t kMessageBytes = 4;    // of data in a word of 8

absl::Status Emitter::CheckSpace() {
  for (NodeId id : nodes()) {
    const bool is_scalar = type(id).shape.empty();
    if (const auto* send = As<Send>(g_, id)) {
      sends_next_ = sends_next_ || send->shift > 0;
      sends_previous_ = sends_previous_ || send->shift < 0;
    } else if (Communicates(g_, id) && (!is_scalar || space_.shape.empty())) {
      collective_ = true;
    }
    const NodeId sliced = Is<AllGather>(g_, id) || Is<Fold>(g_, id) ? g_.nodes[id].inputs[0] : id;
    if (type(sliced).layout.sliced()) slice_dim_ = type(sliced).layout.dim;
    by_place_ = by_place_ || type(sliced).layout.by_place();
    if (is_scalar || Is<Fold>(g_, id) || type(id).shape == space_.shape || expressions_.IsRow(id))
      continue;
    return absl::InternalError(absl::StrCat("emit: ", NodeText(g_, id), " has shape ",
                                            Text(type(id).shape), " in a kernel over ",
                                            Text(space_.shape)));
  }
  if (piece_ != nullptr && piece_->slices) {
    slice_dim_ = piece_->dim;
    cuts_ = true;
  }
  for (size_t d = space_.shape.size() - space_.row_dims; d < space_.shape.size(); ++d)
    row_length_ *= space_.shape[d].size;
  for (size_t p = 0; p < phases_.phases.size(); ++p) {
    const KernelPhase& phase = phases_.phases[p];
    cuts_ = cuts_ || phase.on_slices;
    if (!phase.gathers.empty()) last_gathering_ = static_cast<int>(p);
    rounds_ += Meets(phase);
    for (NodeId id : phase.evaluated)
      reads_gathered_ = reads_gathered_ || (Is<AllGather>(g_, id) && !phase.on_slices);
  }
  rounds_ += MeetsBeforeScalars() + MeetsFirst();
  return absl::OkStatus();
}

bool Emitter::Streams(int buffer) const {
  switch (config_.streaming) {
    case Streaming::kNone:
      return false;
    case Streaming::kShared:
      return table_.buffers[buffer].symmetric;
    case Streaming::kAll:
      return true;
  }
  return false;
}

std::vector<NodeId> Emitter::SumsOf(NodeId id) const {
  std::vector<NodeId> sums;
  for (NodeId node : nodes()) {
    if (FoldBelow(u_.program, node) == id) sums.push_back(node);
  }
  return sums;
}

bool Emitter::MeetsAllRanks(const KernelPhase& phase) const {
  return ranks_ > 1 && std::any_of(phase.folds.begin(), phase.folds.end(),
                                   [&](NodeId id) { return !SumsOf(id).empty(); });
}

/// Where the operands of the kernel's AllReduces are staged, or sent to.
void Emitter::AddStages() {
  if (config_.one_shot == OneShot::kPull || !Waits()) return;
  for (NodeId id : nodes()) {
    const NodeId fold = FoldBelow(u_.program, id);
    if (!Is<AllReduce>(g_, id) || (fold >= 0 && expressions_.InUnit(fold))) continue;
    const NodeId operand = u_.Value(g_.nodes[id].inputs[0]);
    if (absl::c_none_of(staged_, [&](const Stage& stage) { return stage.operand == operand; }))
      AddStage(operand);
  }
}

void Emitter::AddStage(NodeId operand) {
  const auto lines = [](int64_t elements) {
    return (elements + kStageElements - 1) / kStageElements * kStageElements;
  };
  const int64_t elements = NumElements(type(operand).shape),
                bytes = elements * static_cast<int64_t>(SizeOf(type(operand).dtype));
  const bool sends = config_.one_shot == OneShot::kLL;
  const std::string name = absl::StrCat(sends ? "messages" : "staged", staged_.size());
  const int64_t stride = lines(sends ? (bytes + kMessageBytes - 1) / kMessageBytes : elements);
  const int buffer =
      AddSyncBuffer(table_, absl::StrCat(sends ? "messages" : "stages", step_, ".", staged_.size()),
                    sends ? DType::kI64 : type(operand).dtype,
                    2 * stride * (sends ? target_.ranks_per_node() : 1), true, u_.each[operand]);
  expressions_.LoadAllFrom(operand, sends ? name : name + ".from");
  staged_.push_back({operand, name, buffer, stride});
  bytes_ += (sends ? 4 * (target_.ranks_per_node() - 1) : 2) *
            bytes;  // words of twice the bytes, there and here
}

std::string Emitter::StageDeclarations() {
  std::string text;
  for (const Stage& stage : staged_) {
    const DType dtype = type(stage.operand).dtype;
    const std::string own = args_.Own(table_.of[stage.operand], dtype),
                      stride = args_.Integer(absl::StrCat(stage.name, "_stride"), stage.stride);
    absl::StrAppend(&text, over_tensors_ ? "    " : "  ", "const auto ", stage.name,
                    TakesMessages() ? " = MakeMessages" : " = MakeStaged", "(sync, ", own, ", ",
                    args_.Peers(stage.buffer, TakesMessages() ? DType::kI64 : dtype), ", ", stride,
                    TakesMessages() ? ", lost" : "", ");\n");
  }
  return text;
}

std::string Emitter::StageText() {
  const std::string declarations = StageDeclarations();
  Phase copy;
  std::string sends;
  for (const Stage& stage : staged_) {
    const std::string own = args_.Own(table_.of[stage.operand], type(stage.operand).dtype);
    absl::StrAppend(&copy.elements.stores, "      Store<kCached>(", stage.name, ".to + i, Load<V>(",
                    own, " + i));\n");
    absl::StrAppend(&sends, "    SendChunk(grid, ", stage.name, ", c, ", args_.At("n"), ");\n");
  }
  const std::string chunks = ChunksText(copy, TakesMessages() ? sends : LoopText(copy));
  return over_tensors_ ? OverTensors(copy, declarations, chunks)
                       : absl::StrCat(declarations, chunks);
}

absl::Status Emitter::EmitStore(Phase& phase, NodeId id) {
  const bool stores = IsStore(g_, id);
  const NodeId value = stores ? u_.Value(StoredOperand(g_, id)) : id;
  if (stores && expressions_.InUnit(value) && Is<AllGather>(g_, value))
    return absl::OkStatus();  // pushed
  const int buffer = stores ? table_.target[id] : table_.of[id];
  if (buffer < 0 || (!stores && table_.buffers[buffer].role != BufferRole::kTemp))
    return absl::OkStatus();
  const TensorType& t = type(id);
  const std::string own = args_.Own(buffer, type(value).dtype);
  if (expressions_.IsRow(value)) {
    ASSIGN_OR_RETURN(const std::string row, expressions_.Row(phase, value));
    const std::string at = expressions_.RowOffset(id);
    absl::StrAppend(&phase.row_stores, "    if (grid.ThreadId() == 0) Store<kCached>(", own, " + ",
                    at, ", ", row, ");\n");
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::string name, expressions_.Element(phase, phase.elements, value));
  phase.bytes_per_element += static_cast<int64_t>(SizeOf(t.dtype));
  absl::StrAppend(&phase.elements.stores, "      Store<", Streams(buffer) ? "kStreamed" : "kCached",
                  ">(", own, t.layout.sliced() ? " + (i - c.shift), " : " + i, ", name, ");\n");
  return absl::OkStatus();
}

absl::Status Emitter::EmitPush(Phase& phase, NodeId gather) {
  ASSIGN_OR_RETURN(const std::string name,
                   expressions_.Element(phase, phase.elements, g_.nodes[gather].inputs[0]));
  for (int buffer : table_.PushTargets(u_, gather)) {
    phase.bytes_per_element +=
        target_.ranks_per_node() * static_cast<int64_t>(SizeOf(type(gather).dtype));
    const DType dtype = type(gather).dtype;
    if (Rings()) {
      absl::StrAppend(&phase.elements.stores, "      StoreAround<",
                      Streams(buffer) ? "kStreamed" : "kCached", ">(sync, ",
                      args_.Peers(buffer, dtype), ", i, ", name, ");\n");
      gathered_around_.push_back(buffer);
      continue;
    }
    absl::StrAppend(&phase.elements.stores, "      StorePeers<",
                    Streams(buffer) ? "kStreamed" : "kCached", ">(",
                    Multicasts() ? absl::StrCat(args_.OnAll(buffer, dtype), ", ") : "",
                    args_.Peers(buffer, dtype), ", i, ", name, ");\n");
  }
  return absl::OkStatus();
}

absl::Status Emitter::EmitSend(Phase& phase, NodeId send) {
  ASSIGN_OR_RETURN(const std::string name,
                   expressions_.Element(phase, phase.elements, g_.nodes[send].inputs[0]));
  const DType dtype = type(send).dtype;
  for (int buffer : table_.PushTargets(u_, send)) {
    phase.bytes_per_element += static_cast<int64_t>(SizeOf(dtype));
    absl::StrAppend(&phase.elements.stores, "      StoreBeside<",
                    Streams(buffer) ? "kStreamed" : "kCached", ">(", args_.OnBeside(buffer, dtype),
                    ", ", As<Send>(g_, send)->shift > 0 ? "true, " : "false, ",
                    args_.Own(buffer, dtype),
                    type(send).layout.sliced() ? ", i - c.shift, " : ", i, ", name, ");\n");
  }
  return absl::OkStatus();
}

std::string Emitter::LoopText(const Phase& phase) const {
  const bool rows = space_.row_dims > 0;
  const std::string length = args_.At("row_length");
  const std::string range =
      rows ? absl::StrCat("r * ", length, ", (r + 1) * ", length) : "c.begin, c.end";
  std::string loop;
  if (!phase.elements.stores.empty()) {
    loop = absl::StrCat("    ForEach<kV>(grid, ", range, ", ", args_.At("packed"),
                        " != 0, [&](auto lanes, Index i) {\n",
                        "      constexpr int V = decltype(lanes)::kCount;\n", phase.elements.values,
                        phase.elements.stores, "    });\n");
  }
  if (!rows) return loop;
  return absl::StrCat("    for (Index r = c.begin / ", length, "; r < c.end / ", length,
                      "; ++r) {\n", phase.row_values, loop, phase.row_stores, "    }\n");
}

std::string Emitter::ForChunksText(absl::string_view cut, absl::string_view slice,
                                   absl::string_view node) const {
  const std::string chunk = args_.At("chunk");
  const std::string text =
      absl::StrCat(over_tensors_ ? "ForListChunks(grid, " : "ForChunks(grid, ", cut, ", ",
                   piece_ == nullptr ? "" : "part, ", slice, ", ", chunk,
                   over_tensors_ ? ", first" : "", ", [&](const Chunk& ");
  if (!by_place_ || node.empty()) return absl::StrCat(text, "c) {\n");
  return absl::StrCat(text, "in_slice) {\n    const Chunk c = OfNode(in_slice, cut, ", chunk, ", ",
                      node, ");\n");
}

std::string Emitter::AwaitTilesText(const Phase& phase, absl::string_view indent) const {
  if (tiles_ == nullptr) return "";
  const KernelPhase& planned = phases_.phases[phase.number];
  const auto reads = [&](const std::vector<NodeId>& ids) {
    return absl::c_any_of(
        ids, [&](NodeId id) { return u_.Reads(id, unit_).count(tiles_->product) > 0; });
  };
  if (!reads(planned.evaluated) && !reads(planned.stores) && !reads(planned.gathers) &&
      !reads(planned.folds))
    return "";
  return absl::StrCat(indent,
                      "if (!AwaitTiles(sync, grid, p.tiles, c.begin, c.end)) return false;\n",
                      Multicasts() ? absl::StrCat(indent, "FenceAliases();\n") : "");
}

/// The loop over this block's chunks.
std::string Emitter::ChunksText(const Phase& phase, absl::string_view loop) const {
  if (phase.on_slices) {
    const bool publishes = (reads_gathered_ || !gathered_around_.empty()) && Waits() &&
                           phase.number == last_gathering_;
    const std::string publish =
        Rings() ? absl::StrCat("    PassOn(sync, grid, ", RingFlag(Place(), true), ");\n")
                : "    Publish(sync, grid, c.id);\n";
    const std::string hop = rings_.empty()
                                ? ""
                                : absl::StrCat("    if (!AwaitHop(sync, grid, ",
                                               RingFlag(Place(), false), ")) return false;\n");
    const std::string await = absl::StrCat(hop, AwaitTilesText(phase, "    "));
    const std::string each =
        absl::StrCat(ForChunksText("cut", by_place_ ? "slice" : "rank", "node"), await, loop,
                     publishes ? publish : "", "    return true;\n  })");
    const std::string chunks = await.empty() ? absl::StrCat("  ", each, ";\n")
                                             : absl::StrCat("  if (!", each, ") return;\n");
    if (!by_place_) return chunks;
    return absl::StrCat(
        "  for (int node = 0; node < p.nodes; ++node) {\n    const int slice = node * kRanks + "
        "place;\n",
        chunks, "  }\n");
  }
  const bool by_slices = piece_ != nullptr && piece_->slices;
  if (!phase.reads_gathered && !by_slices) {
    const std::string awaits = AwaitTilesText(phase, "    ");
    return absl::StrCat(awaits.empty() ? "  " : "  if (!",
                        ForChunksText(over_tensors_ ? "cut" : "Cut{1, p.n, p.n}", "0", ""), awaits,
                        loop, "    return true;\n  })", awaits.empty() ? ";\n" : ") return;\n");
  }
  const bool waits = phase.reads_gathered && Waits();
  const absl::string_view from = by_place_ ? "from % kRanks" : "from";
  const std::string here =
      Rings() ? absl::StrCat("(", from, " == ", Place(), " || AwaitHop(sync, grid, ",
                             RingFlag(from, true), "))")
              : absl::StrCat("AwaitChunk(sync, grid, ", from, ", c.id)");
  const std::string wait = absl::StrCat("      if (!", here, ") return false;\n",
                                        Multicasts() ? "      FenceAliases();\n" : "");
  const absl::string_view slices = target_.nodes > 1 ? "int(p.slices)" : "kRanks";
  return absl::StrCat(
      "  for (int k = 0; k < ", slices, "; ++k) {\n    const int from = (rank + k) % ", slices,
      ";\n", "    if (!", ForChunksText("cut", "from", "from / kRanks"), waits ? wait : "",
      AwaitTilesText(phase, "      "), loop, "      return true;\n    })) return;\n  }\n");
}

/// `work` of each tensor: `locals` first, and how its elements are cut.
std::string Emitter::OverTensors(const Phase& phase, absl::string_view locals,
                                 absl::string_view work) const {
  const bool cut = phase.on_slices || phase.reads_gathered;
  return absl::StrCat("  for (Index t = 0, first = 0; t < p.tensors; ++t) {\n",
                      Arguments::TensorLocals(),
                      cut ? "    const Cut cut{e.outer, e.row_elements, e.per};\n"
                          : "    const Cut cut{1, e.n, e.n};\n",
                      locals, work, "    first += CountChunks(cut, e.chunk)",
                      cut && by_place_ ? " * p.nodes" : "", ";\n  }\n");
}

absl::StatusOr<std::string> Emitter::PhaseText(int number) {
  const KernelPhase& planned = phases_.phases[number];
  Phase phase{.on_slices = planned.on_slices, .number = number};
  std::string before;
  expressions_.OpenSection(&before);
  tensor_scalars_ = over_tensors_ ? StageDeclarations() + RingDeclarations() : "";
  expressions_.OpenTensorSection(&tensor_scalars_);
  for (NodeId id : planned.stores) RETURN_IF_ERROR(EmitStore(phase, id));
  const bool in_bulk = CopiesInBulk(planned);
  for (NodeId id : planned.gathers) {
    if (!in_bulk) RETURN_IF_ERROR(EmitPush(phase, id));
  }
  for (NodeId id : planned.sends) RETURN_IF_ERROR(EmitSend(phase, id));
  std::vector<std::string> accumulators;
  for (NodeId id : planned.folds) {
    ASSIGN_OR_RETURN(const std::string name,
                     expressions_.Element(phase, phase.elements, g_.nodes[id].inputs[0]));
    auto [accumulator, declaration] = expressions_.Accumulator(id);
    absl::StrAppend(over_tensors_ ? &tensor_scalars_ : &before, over_tensors_ ? "    " : "  ",
                    declaration);
    absl::StrAppend(&phase.elements.stores, "      Accumulate(", accumulator, ", ", name, ");\n");
    accumulators.push_back(std::move(accumulator));
  }
  const int64_t n = NumElements(space_.shape);
  const int64_t parts = by_place_ ? target_.nodes : 1;
  const int64_t slice =
      planned.on_slices ? parts * SlicingOf(space_.shape, slice_dim_, ranks_).slice_elements() : n;
  bytes_ += phase.bytes_per_element * std::min(slice, n) / (piece_ == nullptr ? 1 : piece_->of);
  const std::string loop = in_bulk ? CopiesText(phase, planned.gathers) : LoopText(phase);
  if (number == 0) std::swap(before, first_);
  if (loop.empty()) return before;
  if (!phase.on_slices && !phase.reads_gathered && (piece_ == nullptr || !piece_->slices))
    args_.Integer("n", n);
  const std::string locals = std::move(tensor_scalars_);
  Round round = FoldText(planned, accumulators);
  if (TakesMessages())
    round.after = absl::StrCat("  if (!grid.SyncAnd(!lost)) return;\n", round.after);
  const std::string chunks = ChunksText(phase, loop);
  if (!over_tensors_) return absl::StrCat(before, chunks, round.after);
  return absl::StrCat(before, round.before,
                      OverTensors(phase, locals, absl::StrCat(chunks, round.inside)), round.after);
}

absl::StatusOr<std::string> Emitter::BodyText() {
  const std::string stage = staged_.empty() ? "" : StageText();
  const std::string first_round =
      MeetsFirst() ? absl::StrCat("  if (!Meet(sync, grid, ", round_++, ", false)) return;\n") : "";
  std::string work = PartialsText();
  for (size_t p = 0; p < phases_.phases.size(); ++p) {
    ASSIGN_OR_RETURN(const std::string text, PhaseText(static_cast<int>(p)));
    absl::StrAppend(&work, text, static_cast<int>(p) == last_gathering_ ? PassedOnText() : "");
  }
  ASSIGN_OR_RETURN(const std::string scalars, ScalarStoresText());
  absl::StrAppend(&work, scalars);
  if (!staged_.empty()) args_.Integer("n", NumElements(space_.shape));
  AddPlaceFields();
  if (over_tensors_) {
    args_.LaunchInteger("tensors", tensors_);
    args_.LaunchMember("const Each* each", "each", {{Arg::Kind::kTable, -1, 0}});
  }
  std::string body = "  const int rank = int(p.rank);\n";
  if (NeedsPlace()) absl::StrAppend(&body, "  const int place = int(p.node_rank);\n");
  absl::StrAppend(&body, args_.LocalsText(), first_);
  if (cuts_ && !over_tensors_)
    absl::StrAppend(&body, "  const Cut cut{p.outer, p.row_elements, p.per};\n");
  if (piece_ != nullptr) absl::StrAppend(&body, "  const Part part{p.part_begin, p.part_end};\n");
  const bool streams = config_.streaming != Streaming::kNone;
  if (Synchronizes()) {
    absl::StrAppend(
        &body, "  const auto sync = MakeSync<kRanks>(grid, p.control, p.flags, p.epochs, p.row, ",
        target_.nodes > 1 ? "int(p.node_rank)" : "rank", ", int(p.step), ", rounds_, ", ",
        streams ? "kStreamed" : "kCached", ");\n", first_round,
        TakesMessages() ? "  bool lost = false;\n" : "", stage);
  }
  if (Sends()) {
    absl::StrAppend(&body, "  constexpr Routes routes{", sends_next_ ? "true" : "false", ", ",
                    sends_previous_ ? "true" : "false", "};\n",
                    "  OpenSends(sync, grid, routes);\n");
  }
  // Who takes messages needs nobody's memory but its own.
  if (Waits() && !TakesMessages())
    absl::StrAppend(&body, "  if (!Enter(sync, grid)) return;\n",
                    Multicasts() ? "  FenceAliases();\n" : "");
  if (Sends()) absl::StrAppend(&body, "  if (!AwaitReceivers(sync, grid, routes)) return;\n");
  absl::StrAppend(&body, work, Sends() ? "  if (!CloseSends(sync, grid, routes)) return;\n" : "");
  if (Waits()) {
    absl::StrAppend(&body, staged_.empty() ? "  Exit(sync, grid);\n" : "  Leave(sync, grid);\n");
  } else {
    absl::StrAppend(&body, Synchronizes() ? "  Leave(sync, grid);\n" : "",
                    streams ? "  StreamFence();\n" : "");
  }
  return args_.WithTensorLocals(body);
}

absl::StatusOr<EmittedKernel> Emitter::Emit() {
  RETURN_IF_ERROR(CheckSpace());
  if (NeedsPlace()) args_.CallOwnIndex("place");
  AddStages();
  AddRings();
  ASSIGN_OR_RETURN(const std::string body, BodyText());
  EmittedKernel kernel = FinishedKernel(target_.ranks_per_node(), config_.vec, args_, body, bytes_);
  kernel.chunks = chunks_;
  kernel.totals = expressions_.has_totals();
  kernel.rounds = rounds_ > 0;
  return kernel;
}

EmittedKernel FinishedKernel(int ranks, int vec, const Arguments& args, const std::string& body,
                             int64_t bytes) {
  EmittedKernel kernel;
  kernel.args = args.Words();
  kernel.tensor_args = args.TensorWords();
  const std::string text =
      absl::StrCat("namespace @name@_n {\nusing namespace coconet;\nconstexpr int kRanks = ", ranks,
                   ";\nconstexpr int kV = ", vec, ";\n", args.StructText(), "CC_KERNEL(@name@) {\n",
                   body, "}\n}  // namespace @name@_n\n");
  kernel.symbol = absl::StrCat("k_", Fingerprint(text).substr(0, 16));
  kernel.text = absl::StrReplaceAll(text, {{"@name@", kernel.symbol}});
  kernel.bytes = bytes;
  return kernel;
}

absl::StatusOr<EmittedKernel> EmitKernel(const KernelPlace& at, const Config& config,
                                         const Target& target, BufferTable& table) {
  if (IsStridedFold(at.units, at.unit))
    return EmitStridedFold(at.units, at.unit, config, target.ranks, table);
  return Emitter(at, config, target, table).Emit();
}

}  // namespace coconet
