#include "jit/emit.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "jit/arguments.h"
#include "jit/expressions.h"
#include "runtime/kernel_abi.h"

namespace coconet {
namespace {

constexpr int64_t kStageElements = 64;  // so that halves begin at cache lines, in every type

/// Builds the text of one kernel. Used once.
class Emitter {
 public:
  Emitter(const Units& u, int unit, const Config& config, int ranks, int step, BufferTable& table)
      : u_(u), g_(*u.graph), unit_(unit), config_(config), ranks_(ranks), step_(step), table_(table) {}

  absl::StatusOr<EmittedKernel> Emit();

 private:
  const TensorType& type(NodeId id) const { return u_.types[id]; }

  absl::Status FindShape();
  absl::Status EmitStores();
  absl::Status EmitStore(NodeId value, const TensorType& type, int buffer);
  absl::Status EmitPush(NodeId gather);
  bool Streams(int buffer) const;
  bool Waits() const { return collective_ && ranks_ > 1; }
  bool Stages() const { return !staged_.empty(); }

  void AddStages();
  std::string LoopText(const Phase& phase) const;
  std::string StageText();
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
  Phase a_{.domain = Phase::Domain::kSlice}, b_{.domain = Phase::Domain::kWhole};
  struct Stage {
    NodeId operand;
    std::string name;  // of the Staged in the text
    int buffer;        // both halves
    int64_t stride;    // elements of a half
  };
  std::vector<Stage> staged_;
  Arguments args_;
  Expressions expressions_{u_, unit_, ranks_, shape_, table_, args_};
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

absl::Status Emitter::EmitStore(NodeId value, const TensorType& t, int buffer) {
  Phase& phase = t.layout.sliced() ? a_ : b_;
  ASSIGN_OR_RETURN(const std::string name, expressions_.Eval(phase, value));
  phase.bytes_per_element += static_cast<int64_t>(SizeOf(t.dtype));
  absl::StrAppend(&phase.stores, "      Store<", Streams(buffer) ? "kStreamed" : "kCached", ">(", args_.Own(buffer, type(value).dtype),
                  t.layout.sliced() ? " + (i - c.shift), " : " + i, ", name, ");\n");
  return absl::OkStatus();
}

absl::Status Emitter::EmitPush(NodeId gather) {
  ASSIGN_OR_RETURN(const std::string name, expressions_.Eval(a_, g_.nodes[gather].inputs[0]));
  for (int buffer : table_.GatherTargets(u_, gather)) {
    a_.bytes_per_element += ranks_ * static_cast<int64_t>(SizeOf(type(gather).dtype));
    absl::StrAppend(&a_.stores, "      StorePeers<", Streams(buffer) ? "kStreamed" : "kCached", ">(",
                    args_.Peers(buffer, type(gather).dtype), ", i, ", name, ");\n");
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
      if (expressions_.InUnit(value) && Is<AllGather>(g_, value)) continue;  // pushed
      RETURN_IF_ERROR(EmitStore(value, type(id), table_.target[id]));
    } else if (table_.of[id] >= 0 && table_.buffers[table_.of[id]].role == BufferRole::kTemp) {
      RETURN_IF_ERROR(EmitStore(id, type(id), table_.of[id]));
    }
  }
  return absl::OkStatus();
}

/// Where the operands of the kernel's AllReduces are staged.
void Emitter::AddStages() {
  if (config_.one_shot != OneShot::kStaged || !Waits()) return;
  for (NodeId id : u_.units[unit_].nodes) {
    if (!Is<AllReduce>(g_, id)) continue;
    const NodeId operand = u_.Value(g_.nodes[id].inputs[0]);
    const auto same = [&](const Stage& stage) { return stage.operand == operand; };
    if (std::any_of(staged_.begin(), staged_.end(), same)) continue;
    const std::string name = absl::StrCat("staged", staged_.size());
    const int64_t stride = (NumElements(type(operand).shape) + kStageElements - 1) / kStageElements * kStageElements;
    const int buffer = AddSyncBuffer(table_, absl::StrCat("stages", step_, ".", staged_.size()), type(operand).dtype,
                                     2 * stride, true);
    expressions_.LoadAllFrom(operand, name + ".from");
    staged_.push_back({operand, name, buffer, stride});
    b_.bytes_per_element += 2 * static_cast<int64_t>(SizeOf(type(operand).dtype));
  }
}

std::string Emitter::StageText() {
  std::string text, stores;
  for (const Stage& stage : staged_) {
    const DType dtype = type(stage.operand).dtype;
    const std::string own = args_.Own(table_.of[stage.operand], dtype);
    absl::StrAppend(&text, "  const auto ", stage.name, " = MakeStaged(sync, ", own, ", ",
                    args_.Peers(stage.buffer, dtype), ", ", args_.Integer(absl::StrCat(stage.name, "_stride"), stage.stride), ");\n");
    absl::StrAppend(&stores, "      Store<kCached>(", stage.name, ".to + i, Load<V>(", own, " + i));\n");
  }
  return absl::StrCat(text, "  ForChunks(grid, Cut{1, p.n, p.n}, 0, p.chunk, [&](const Chunk& c) {\n",
                      LoopText({.domain = Phase::Domain::kWhole, .stores = stores}), "    return true;\n  });\n");
}

std::string Emitter::LoopText(const Phase& phase) const {
  return absl::StrCat("    ForEach<kV>(grid, c.begin, c.end, p.packed != 0, [&](auto lanes, Index i) {\n",
                      "      constexpr int V = decltype(lanes)::kCount;\n", phase.values, phase.stores, "    });\n");
}

std::string Emitter::PhaseAText() {
  if (a_.stores.empty()) return "";
  const absl::string_view publish = b_.reads_gathered && Waits() ? "    Publish(sync, grid, c.id);\n" : "";
  return absl::StrCat("  ForChunks(grid, cut, rank, p.chunk, [&](const Chunk& c) {\n", LoopText(a_), publish,
                      "    return true;\n  });\n");
}

std::string Emitter::PhaseBText() {
  if (b_.stores.empty()) return "";
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
  const bool cuts = !a_.stores.empty() || b_.reads_gathered;
  const TensorSlicing cut = SlicingOf(shape_, slice_dim_, ranks_);
  const int64_t row_elements = cut.slicing.extent * cut.inner, per = cut.slicing.per * cut.inner;
  // Packs begin at multiples of their size; those of an unaligned row or slice would straddle it.
  const bool rows_fit = cut.outer == 1 || row_elements % config_.vec == 0, slices_fit = ranks_ == 1 || per % config_.vec == 0;
  args_.Integer("packed", !cuts || (rows_fit && slices_fit));
  if (cuts) {
    args_.Integer("outer", cut.outer);
    args_.Integer("row_elements", row_elements);
    args_.Integer("per", per);
  }
  if (!Waits()) return;
  const int64_t chunks = b_.reads_gathered ? cut.outer * ((per + config_.chunk - 1) / config_.chunk) : 0;
  const int64_t row = FlagSlots::Row(config_.blocks, chunks);
  const int flags = AddSyncBuffer(table_, absl::StrCat("flags", step_), DType::kI32, ranks_ * row, true);
  const int epochs = AddSyncBuffer(table_, absl::StrCat("epochs", step_), DType::kI32, config_.blocks, false);
  args_.Member("unsigned* flags[kRanks]", "flags", {{Arg::Kind::kPeers, flags, 0}});
  args_.Member("unsigned* epochs", "epochs", {{Arg::Kind::kOwn, epochs, 0}});
  args_.Member("Control* control", "control", {{Arg::Kind::kControl, -1, 0}});
  args_.Integer("row", row);
  args_.Integer("step", step_);
}

std::string Emitter::BodyText() {
  const std::string stage = Stages() ? StageText() : "";  // before the arguments that it uses are written
  std::string body = absl::StrCat("  const int rank = int(p.rank);\n", args_.LocalsText(), expressions_.scalars());
  if (!a_.stores.empty() || b_.reads_gathered) absl::StrAppend(&body, "  const Cut cut{p.outer, p.row_elements, p.per};\n");
  const bool streams = config_.streaming != Streaming::kNone;
  if (Waits()) {
    absl::StrAppend(&body, "  const auto sync = MakeSync<kRanks>(grid, p.control, p.flags, p.epochs, p.row, rank, int(p.step), ",
                    streams ? "kStreamed" : "kCached", ");\n", stage, "  if (!Enter(sync, grid)) return;\n");
  }
  absl::StrAppend(&body, PhaseAText(), PhaseBText());
  if (Waits()) {
    absl::StrAppend(&body, Stages() ? "  Leave(sync, grid);\n" : "  Exit(sync, grid);\n");
  } else if (streams) {
    absl::StrAppend(&body, "  StreamFence();\n");
  }
  return body;
}

absl::StatusOr<EmittedKernel> Emitter::Emit() {
  RETURN_IF_ERROR(FindShape());
  AddStages();
  RETURN_IF_ERROR(EmitStores());
  if (!b_.stores.empty() && !b_.reads_gathered) args_.Integer("n", NumElements(shape_));
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
  const int64_t slice = a_.stores.empty() ? 0 : SlicingOf(shape_, slice_dim_, ranks_).slice_elements();
  kernel.bytes = a_.bytes_per_element * std::min(slice, n) + b_.bytes_per_element * n;
  return kernel;
}

}  // namespace

absl::StatusOr<EmittedKernel> EmitKernel(const Units& u, int unit, const Config& config, int ranks, int step,
                                         BufferTable& table) {
  return Emitter(u, unit, config, ranks, step, table).Emit();
}

}  // namespace coconet
