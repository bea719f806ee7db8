#include "jit/emit.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "jit/arguments.h"
#include "jit/broadcast.h"
#include "jit/literal.h"
#include "runtime/kernel_abi.h"

namespace coconet {
namespace {

absl::string_view LoadFrom(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kSum: return "LoadSum";
    case ReduceKind::kMax: return "LoadMax";
    case ReduceKind::kMin: return "LoadMin";
  }
  return "";
}

enum class Domain : uint8_t { kSlice, kFull };

/// Statements of one phase's loop body, and what they name.
struct Phase {
  Domain domain{};
  std::string statements;
  std::map<NodeId, std::string> names;
  bool reads_gathered = false;
  int64_t bytes_per_element = 0;
};

/// Builds the text of one kernel. Used once.
class Emitter {
 public:
  Emitter(const Units& u, int unit, const Config& config, int ranks, int step, BufferTable& table)
      : u_(u), g_(*u.graph), unit_(unit), config_(config), ranks_(ranks), step_(step), table_(table) {}

  absl::StatusOr<EmittedKernel> Emit();

 private:
  bool InUnit(NodeId id) const { return u_.unit_of[id] == unit_; }
  const TensorType& type(NodeId id) const { return u_.types[id]; }

  absl::Status FindShape();
  absl::Status EmitStores();
  absl::Status EmitStore(NodeId value, const TensorType& type, int buffer);
  absl::Status EmitPush(NodeId gather);
  absl::StatusOr<std::string> Eval(Phase& phase, NodeId id);
  absl::StatusOr<std::string> EvalOutside(Phase& phase, NodeId id);
  absl::StatusOr<std::string> EvalCollective(Phase& phase, NodeId id);
  absl::StatusOr<std::string> EvalArithmetic(NodeId id, const std::vector<std::string>& operands, absl::string_view lanes);
  std::string InRange(NodeId id, std::string expression) const;
  absl::StatusOr<std::string> Scalar(NodeId id);
  bool DependsOnOwnCollective(NodeId id) const;
  bool OnlyStored(NodeId id) const;

  std::string Own(NodeId typed_as, int buffer) { return args_.Own(buffer, type(typed_as).dtype); }
  std::string Peers(NodeId typed_as, int buffer) { return args_.Peers(buffer, type(typed_as).dtype); }
  bool Streams(int buffer) const;
  bool Waits() const { return collective_ && ranks_ > 1; }

  std::string Define(Phase& phase, NodeId id, absl::string_view expression);
  std::string LoopText(const Phase& phase) const;
  std::string PhaseAText();
  std::string PhaseBText();
  void AddPlaceFields();
  std::string BodyText();

  const Units& u_;
  const Graph& g_;
  const int unit_;
  const Config& config_;
  const int ranks_;
  const int step_;
  BufferTable& table_;

  Shape shape_;              // of the iteration space
  int slice_dim_ = Layout::kFlat;
  bool collective_ = false;  // loads from or stores to peers
  Phase a_{Domain::kSlice, {}, {}, false, 0}, b_{Domain::kFull, {}, {}, false, 0};
  std::string scalars_;      // statements before the phases
  std::map<NodeId, std::string> scalar_names_;
  Arguments args_;
  int named_ = 0;            // values, scalars and maps named so far
};

absl::Status Emitter::FindShape() {
  for (NodeId id : u_.units[unit_].nodes) {
    if (Communicates(g_, id)) collective_ = true;
    const TensorType& t = type(id);
    const NodeId sliced = Is<AllGather>(g_, id) ? g_.nodes[id].inputs[0] : id;
    if (type(sliced).layout.sliced()) slice_dim_ = type(sliced).layout.dim;
    if (t.shape.empty() || t.shape == shape_) continue;
    if (!shape_.empty()) {
      return absl::InternalError(absl::StrCat("emit: ", NodeText(g_, id), " has shape ", Text(t.shape),
                                              " in a kernel over ", Text(shape_)));
    }
    shape_ = t.shape;
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

bool Emitter::DependsOnOwnCollective(NodeId id) const {
  id = u_.Value(id);
  if (!InUnit(id)) {
    if (!u_.IsScalar(id)) return false;
  } else if (Communicates(g_, id)) {
    return true;
  }
  const std::vector<NodeId>& inputs = g_.nodes[id].inputs;
  return std::any_of(inputs.begin(), inputs.end(), [&](NodeId i) { return DependsOnOwnCollective(i); });
}

/// Every use of `id` rounds it to its type anyway.
bool Emitter::OnlyStored(NodeId id) const {
  return std::all_of(u_.users[id].begin(), u_.users[id].end(), [&](NodeId user) {
    if (!InUnit(user)) return true;
    return Is<AllGather>(g_, user) || Is<Output>(g_, user) || (Is<Update>(g_, user) && OnlyStored(user));
  });
}

/// u8 is computed in a wider type, and wraps all the same.
std::string Emitter::InRange(NodeId id, std::string expression) const {
  return type(id).dtype == DType::kU8 ? absl::StrCat("Wrapped<u8>(", expression, ")") : expression;
}

absl::StatusOr<std::string> Emitter::EvalArithmetic(NodeId id, const std::vector<std::string>& operands,
                                                    absl::string_view lanes) {
  if (const auto* c = As<Const>(g_, id)) return absl::StrCat("Splat<", lanes, ">(", Literal(c->value, c->dtype), ")");
  if (const auto* w = As<WorldSize>(g_, id)) return absl::StrCat("Splat<", lanes, ">(", Literal(ranks_, w->dtype), ")");
  if (const auto* cast = As<Cast>(g_, id)) {
    const bool narrow = cast->dtype == DType::kF16 || cast->dtype == DType::kBF16;
    if (narrow && OnlyStored(id)) return absl::StrCat("ConvertLanes<float>(", operands[0], ")");
    return absl::StrCat("CastTo<", KernelType(cast->dtype), ">(", operands[0], ")");
  }
  const auto* fn = As<Pointwise>(g_, id);
  if (fn == nullptr) return absl::InternalError(absl::StrCat("emit: ", NodeText(g_, id), " is not arithmetic"));
  std::vector<std::pair<std::string, std::string>> holes;
  for (size_t i = 0; i < operands.size(); ++i) holes.push_back({absl::StrCat("$", i), operands[i]});
  const std::string expression = absl::StrReplaceAll(Info(fn->fn).kernel_expr, holes);
  return Info(fn->fn).result == PwResult::kSame ? InRange(id, expression) : expression;
}

/// A value computed once a kernel, as a pack of one.
absl::StatusOr<std::string> Emitter::Scalar(NodeId id) {
  id = u_.Value(id);
  if (const auto it = scalar_names_.find(id); it != scalar_names_.end()) return it->second;
  std::string expression;
  if (u_.IsScalar(id)) {
    std::vector<std::string> operands;
    for (NodeId input : g_.nodes[id].inputs) {
      ASSIGN_OR_RETURN(std::string operand, Scalar(input));
      operands.push_back(std::move(operand));
    }
    ASSIGN_OR_RETURN(expression, EvalArithmetic(id, operands, "1"));
  } else {
    CC_CHECK(table_.of[id] >= 0);
    expression = absl::StrCat("Load<1>(", Own(id, table_.of[id]), ")");
  }
  const std::string name = absl::StrCat("s", named_++);
  absl::StrAppend(&scalars_, "  const auto ", name, " = ", expression, ";\n");
  scalar_names_[id] = name;
  return name;
}

std::string Emitter::Define(Phase& phase, NodeId id, absl::string_view expression) {
  const std::string name = absl::StrCat("v", named_++);
  absl::StrAppend(&phase.statements, "      const auto ", name, " = ", expression, ";\n");
  phase.names[id] = name;
  return name;
}

absl::StatusOr<std::string> Emitter::EvalOutside(Phase& phase, NodeId id) {
  const int buffer = table_.of[id];
  CC_CHECK(buffer >= 0);
  const TensorType& t = type(id);
  phase.bytes_per_element += static_cast<int64_t>(SizeOf(t.dtype));
  std::string base = Own(id, buffer);
  const bool sliced = t.layout.sliced();
  if (sliced && phase.domain == Domain::kFull) {
    return absl::InternalError(absl::StrCat("emit: ", NodeText(g_, id), " is sliced, and read over the whole tensor"));
  }
  if (t.shape == shape_) {
    return Define(phase, id, absl::StrCat("Load<V>(", base, sliced ? " + (i - c.shift))" : " + i)"));
  }
  const Broadcast map = BroadcastOf(t, shape_, ranks_);
  if (map.identity) return Define(phase, id, absl::StrCat("Load<V>(", base, " + i)"));
  std::vector<Arg> words;
  for (int64_t dim : map.dims) words.push_back({Arg::Kind::kInt, -1, dim});
  for (int64_t stride : map.strides) words.push_back({Arg::Kind::kInt, -1, stride});
  const int number = named_++;
  const std::string name = absl::StrCat("map", number);
  const std::string field = args_.Member(absl::StrCat("BroadcastMap<", map.dims.size(), "> ", name), name, std::move(words));
  if (sliced) {
    base = absl::StrCat(base, " - rank * ", args_.Integer(absl::StrCat("skip", number), map.elements_a_rank));
  }
  return Define(phase, id, absl::StrCat("LoadBroadcast<V>(", base, ", i, ", field, ")"));
}

absl::StatusOr<std::string> Emitter::EvalCollective(Phase& phase, NodeId id) {
  const int64_t size = static_cast<int64_t>(SizeOf(type(id).dtype));
  const auto misplaced = [&](absl::string_view where) {
    return absl::InternalError(absl::StrCat("emit: ", NodeText(g_, id), " is used ", where));
  };
  if (Is<AllGather>(g_, id)) {
    if (phase.domain != Domain::kFull) return misplaced("on slices, in the kernel that gathers it");
    phase.reads_gathered = true;
    phase.bytes_per_element += size;
    return Define(phase, id, absl::StrCat("Load<V>(", Own(id, table_.GatherTargets(u_, id)[0]), " + i)"));
  }
  ReduceKind kind{};
  if (const auto* rs = As<ReduceScatter>(g_, id)) {
    if (phase.domain != Domain::kSlice) return misplaced("over the whole tensor");
    kind = rs->kind;
  } else {
    if (phase.domain != Domain::kFull) return misplaced("on slices");
    kind = As<AllReduce>(g_, id)->kind;
  }
  const NodeId operand = u_.Value(g_.nodes[id].inputs[0]);
  if (InUnit(operand) || table_.of[operand] < 0) return misplaced("on a value that is not in memory");
  phase.bytes_per_element += ranks_ * size;
  return Define(phase, id,
                InRange(id, absl::StrCat(LoadFrom(kind), "<V>(", Peers(operand, table_.of[operand]), ", i)")));
}

absl::StatusOr<std::string> Emitter::Eval(Phase& phase, NodeId id) {
  id = u_.Value(id);
  if (const auto it = phase.names.find(id); it != phase.names.end()) return it->second;
  if (InUnit(id) && Communicates(g_, id)) return EvalCollective(phase, id);
  if (type(id).shape.empty() && !DependsOnOwnCollective(id) && !InUnit(id)) {
    if (const auto* c = As<Const>(g_, id)) return Define(phase, id, absl::StrCat("Splat<V>(", Literal(c->value, c->dtype), ")"));
    ASSIGN_OR_RETURN(const std::string scalar, Scalar(id));
    return Define(phase, id, absl::StrCat("Splat<V>(Get(", scalar, ", 0))"));
  }
  if (!InUnit(id) && !u_.IsScalar(id)) return EvalOutside(phase, id);
  std::vector<std::string> operands;
  for (NodeId input : g_.nodes[id].inputs) {
    ASSIGN_OR_RETURN(std::string operand, Eval(phase, input));
    operands.push_back(std::move(operand));
  }
  ASSIGN_OR_RETURN(const std::string expression, EvalArithmetic(id, operands, "V"));
  return Define(phase, id, expression);
}

absl::Status Emitter::EmitStore(NodeId value, const TensorType& t, int buffer) {
  Phase& phase = t.layout.sliced() ? a_ : b_;
  ASSIGN_OR_RETURN(const std::string name, Eval(phase, value));
  phase.bytes_per_element += static_cast<int64_t>(SizeOf(t.dtype));
  absl::StrAppend(&phase.statements, "      Store<", Streams(buffer) ? "kStreamed" : "kCached", ">(", Own(value, buffer),
                  t.layout.sliced() ? " + (i - c.shift), " : " + i, ", name, ");\n");
  return absl::OkStatus();
}

absl::Status Emitter::EmitPush(NodeId gather) {
  ASSIGN_OR_RETURN(const std::string name, Eval(a_, g_.nodes[gather].inputs[0]));
  for (int buffer : table_.GatherTargets(u_, gather)) {
    a_.bytes_per_element += ranks_ * static_cast<int64_t>(SizeOf(type(gather).dtype));
    absl::StrAppend(&a_.statements, "      StorePeers<", Streams(buffer) ? "kStreamed" : "kCached", ">(",
                    Peers(gather, buffer), ", i, ", name, ");\n");
  }
  return absl::OkStatus();
}

/// Evaluates everything that other units or the caller will read, and stores it.
absl::Status Emitter::EmitStores() {
  for (NodeId id : u_.units[unit_].nodes) {
    if (Is<AllGather>(g_, id)) {
      RETURN_IF_ERROR(EmitPush(id));
    } else if (IsStore(g_, id)) {
      const NodeId value = u_.Value(StoredOperand(g_, id));
      if (InUnit(value) && Is<AllGather>(g_, value)) continue;  // pushed
      RETURN_IF_ERROR(EmitStore(value, type(id), table_.target[id]));
    } else if (table_.of[id] >= 0 && table_.buffers[table_.of[id]].role == BufferRole::kTemp) {
      RETURN_IF_ERROR(EmitStore(id, type(id), table_.of[id]));
    }
  }
  return absl::OkStatus();
}

std::string Emitter::LoopText(const Phase& phase) const {
  return absl::StrCat("    ForEach<kV>(grid, c.begin, c.end, p.packed != 0, [&](auto lanes, Index i) {\n",
                      "      constexpr int V = decltype(lanes)::kCount;\n", phase.statements, "    });\n");
}

std::string Emitter::PhaseAText() {
  if (a_.statements.empty()) return "";
  const absl::string_view publish = b_.reads_gathered && Waits() ? "    Publish(sync, grid, c.id);\n" : "";
  return absl::StrCat("  ForChunks(grid, cut, rank, p.chunk, [&](const Chunk& c) {\n", LoopText(a_), publish,
                      "    return true;\n  });\n");
}

std::string Emitter::PhaseBText() {
  if (b_.statements.empty()) return "";
  if (!b_.reads_gathered) {
    return absl::StrCat("  ForChunks(grid, Cut{1, p.n, p.n}, 0, p.chunk, [&](const Chunk& c) {\n",
                        LoopText(b_), "    return true;\n  });\n");
  }
  const absl::string_view wait = Waits() ? "      if (!AwaitChunk(sync, grid, from, c.id)) return false;\n" : "";
  return absl::StrCat("  for (int k = 0; k < kRanks; ++k) {\n    const int from = (rank + k) % kRanks;\n",
                      "    if (!ForChunks(grid, cut, from, p.chunk, [&](const Chunk& c) {\n", wait, LoopText(b_),
                      "      return true;\n    })) return;\n  }\n");
}

/// Words that place the kernel: this rank, its slice, the flags.
void Emitter::AddPlaceFields() {
  args_.Member("Index rank", "rank", {{Arg::Kind::kRank, -1, 0}});
  args_.Integer("chunk", config_.chunk);
  const bool cuts = !a_.statements.empty() || b_.reads_gathered;
  const TensorSlicing cut = SlicingOf(shape_, slice_dim_, ranks_);
  const int64_t row_elements = cut.slicing.extent * cut.inner, per = cut.slicing.per * cut.inner;
  // Packs of an unaligned row would straddle it.
  args_.Integer("packed", !cuts || cut.outer == 1 || row_elements % config_.vec == 0);
  if (cuts) {
    args_.Integer("outer", cut.outer);
    args_.Integer("row_elements", row_elements);
    args_.Integer("per", per);
  }
  if (!Waits()) return;
  const int64_t chunks = b_.reads_gathered ? cut.outer * ((per + config_.chunk - 1) / config_.chunk) : 0;
  const int64_t row = FlagSlots::Row(config_.blocks, chunks);
  const int flags = AddSyncBuffer(table_, absl::StrCat("flags", step_), ranks_ * row, true);
  const int epochs = AddSyncBuffer(table_, absl::StrCat("epochs", step_), config_.blocks, false);
  args_.Member("unsigned* flags[kRanks]", "flags", {{Arg::Kind::kPeers, flags, 0}});
  args_.Member("unsigned* epochs", "epochs", {{Arg::Kind::kOwn, epochs, 0}});
  args_.Member("Control* control", "control", {{Arg::Kind::kControl, -1, 0}});
  args_.Integer("row", row);
  args_.Integer("step", step_);
}

std::string Emitter::BodyText() {
  std::string body = absl::StrCat("  const int rank = int(p.rank);\n", args_.LocalsText(), scalars_);
  if (!a_.statements.empty() || b_.reads_gathered) absl::StrAppend(&body, "  const Cut cut{p.outer, p.row_elements, p.per};\n");
  const bool streams = config_.streaming != Streaming::kNone;
  if (Waits()) {
    absl::StrAppend(&body, "  const auto sync = MakeSync<kRanks>(grid, p.control, p.flags, p.epochs, p.row, rank, int(p.step), ",
                    streams ? "kStreamed" : "kCached", ");\n  if (!Enter(sync, grid)) return;\n");
  }
  absl::StrAppend(&body, PhaseAText(), PhaseBText());
  if (Waits()) {
    absl::StrAppend(&body, "  Exit(sync, grid);\n");
  } else if (streams) {
    absl::StrAppend(&body, "  StreamFence();\n");
  }
  return body;
}

absl::StatusOr<EmittedKernel> Emitter::Emit() {
  RETURN_IF_ERROR(FindShape());
  RETURN_IF_ERROR(EmitStores());
  if (!b_.statements.empty() && !b_.reads_gathered) args_.Integer("n", NumElements(shape_));
  AddPlaceFields();
  const std::string body = BodyText();
  EmittedKernel kernel;
  kernel.args = args_.Words();
  const std::string text = absl::StrCat("namespace @name@_n {\nusing namespace coconet;\nconstexpr int kRanks = ", ranks_,
                                        ";\nconstexpr int kV = ", config_.vec, ";\n", args_.StructText(),
                                        "CC_KERNEL(@name@) {\n", body, "}\n}  // namespace @name@_n\n");
  kernel.symbol = absl::StrCat("k_", Fingerprint(text).substr(0, 16));
  kernel.text = absl::StrReplaceAll(text, {{"@name@", kernel.symbol}});
  const int64_t n = NumElements(shape_);
  const int64_t slice = a_.statements.empty() ? 0 : SlicingOf(shape_, slice_dim_, ranks_).slice_elements();
  kernel.bytes = a_.bytes_per_element * std::min(slice, n) + b_.bytes_per_element * n;
  return kernel;
}

}  // namespace

absl::StatusOr<EmittedKernel> EmitKernel(const Units& u, int unit, const Config& config, int ranks, int step,
                                         BufferTable& table) {
  return Emitter(u, unit, config, ranks, step, table).Emit();
}

}  // namespace coconet
