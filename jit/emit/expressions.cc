#include "jit/emit/expressions.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "coconet/base/status.h"
#include "coconet/ir/operand_index.h"
#include "coconet/ir/philox.h"
#include "jit/storage/literal.h"

namespace coconet {

absl::string_view LoadFrom(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kSum:
      return "LoadSum";
    case ReduceKind::kMax:
      return "LoadMax";
    case ReduceKind::kMin:
      return "LoadMin";
  }
  return "";
}

bool Expressions::DependsOnOwnCollective(NodeId id) {
  id = u_.Value(id);
  if (!InUnit(id) && !u_.IsScalar(id)) return false;
  if (InUnit(id) && Communicates(g_, id)) return true;
  if (const auto it = depends_.find(id); it != depends_.end()) return it->second;
  const std::vector<NodeId>& inputs = g_.nodes[id].inputs;
  const bool depends = std::any_of(inputs.begin(), inputs.end(),
                                   [&](NodeId i) { return DependsOnOwnCollective(i); });
  return depends_[id] = depends;
}

/// A kernel whose elements are scalars overwrites some: then only the thread that stores one loads
/// it. Others, which need it for nothing, might do so later.
bool Expressions::UpdatesScalars() const {
  if (!k_.space.shape.empty()) return false;
  for (NodeId id = 0; id < g_.size(); ++id) {
    if (InUnit(id) && Is<Update>(g_, id)) return true;
  }
  return false;
}

/// Every use of `id` rounds it to its type anyway.
bool Expressions::OnlyStored(NodeId id) const {
  return std::all_of(u_.program.users()[id].begin(), u_.program.users()[id].end(),
                     [&](NodeId user) {
                       if (!InUnit(user)) return true;
                       return Is<AllGather>(g_, user) || Is<Send>(g_, user) ||
                              Is<Output>(g_, user) || (Is<Update>(g_, user) && OnlyStored(user));
                     });
}

/// u8 is computed in a wider type, and wraps all the same.
std::string Expressions::InRange(NodeId id, std::string expression) const {
  return type(id).dtype == DType::kU8 ? absl::StrCat("Wrapped<u8>(", expression, ")") : expression;
}

absl::StatusOr<std::string> Expressions::Arithmetic(NodeId id,
                                                    const std::vector<std::string>& operands,
                                                    absl::string_view lanes,
                                                    absl::string_view index) {
  if (const auto* c = As<Const>(g_, id))
    return absl::StrCat("Splat<", lanes, ">(", Literal(c->value, c->dtype), ")");
  if (const auto* w = As<WorldSize>(g_, id))
    return absl::StrCat("Splat<", lanes, ">(", Literal(k_.target.ranks, w->dtype), ")");
  if (const auto* cast = As<Cast>(g_, id)) {
    const bool narrow = cast->dtype == DType::kF16 || cast->dtype == DType::kBF16;
    if (narrow && OnlyStored(id)) return absl::StrCat("ConvertLanes<float>(", operands[0], ")");
    return absl::StrCat("CastTo<", KernelType(cast->dtype), ">(", operands[0], ")");
  }
  if (Is<Dropout>(g_, id)) return DroppedText(id, operands, lanes, index);
  if (const auto* round = As<StochasticRound>(g_, id)) {
    return absl::StrCat("RoundedByWords<", lanes, ">(", operands[0], ", ", index, ", Get(",
                        operands[1], ", 0), ", round->stream, "ll)");
  }
  if (Is<Shard>(g_, id) || Is<Total>(g_, id)) return operands[0];
  const auto* fn = As<Pointwise>(g_, id);
  if (fn == nullptr)
    return absl::InternalError(absl::StrCat("emit: ", NodeText(g_, id), " is not arithmetic"));
  std::vector<std::pair<std::string, std::string>> holes;
  for (size_t i = 0; i < operands.size(); ++i) holes.push_back({absl::StrCat("$", i), operands[i]});
  const std::string expression = absl::StrReplaceAll(Info(fn->fn).kernel_expr, holes);
  return Info(fn->fn).result == PwResult::kSame ? InRange(id, expression) : expression;
}

std::string Expressions::DroppedText(NodeId id, const std::vector<std::string>& operands,
                                     absl::string_view lanes, absl::string_view index) {
  const auto& op = *As<Dropout>(g_, id);
  return absl::StrCat("Dropped<", lanes, ">(", operands[0], ", ", index, ", Get(", operands[1],
                      ", 0), ", op.stream, "ll, ", DropoutThreshold(op.rate), "u, ",
                      Literal(1 / (1 - op.rate), type(id).dtype), ")");
}

std::string Expressions::Define(Pass& pass, NodeId id, absl::string_view expression) {
  const std::string name = absl::StrCat("v", named_++);
  absl::StrAppend(&pass.values, "      const auto ", name, " = ", expression, ";\n");
  pass.names[id] = name;
  return name;
}

std::string Expressions::MapField(const StoredMap& map, const TensorType& stored,
                                  std::string* base) {
  std::vector<Arg> words;
  for (int64_t dim : map.dims) words.push_back({Arg::Kind::kInt, -1, dim});
  for (int64_t stride : map.strides) words.push_back({Arg::Kind::kInt, -1, stride});
  const int number = named_++;
  const std::string name = absl::StrCat("map", number);
  const std::string field = args_.Member(absl::StrCat("BroadcastMap<", map.dims.size(), "> ", name),
                                         name, std::move(words));
  if (stored.layout.sliced()) {
    const bool by_place = stored.layout.by_place();
    absl::StrAppend(base, by_place ? " - slice * " : " - rank * ",
                    args_.Integer(absl::StrCat("skip", number), map.elements_a_rank));
    const int64_t part =
        SlicingOf(stored.shape, stored.layout.dim, k_.target.ranks).slice_elements();
    if (by_place)
      absl::StrAppend(base, " + node * ", args_.Integer(absl::StrCat("part", number), part));
  }
  if (map.offset != 0)
    absl::StrAppend(base, " + ", args_.Integer(absl::StrCat("begin", number), map.offset));
  return field;
}

void Expressions::Count(Phase& phase, absl::string_view what, NodeId id, int copies) const {
  if (phase.loaded.insert(std::string(what)).second)
    phase.bytes_per_element += copies * static_cast<int64_t>(SizeOf(type(id).dtype));
}

absl::StatusOr<std::string> Expressions::Load(Phase& phase, Pass& pass, NodeId id) {
  const int buffer = table_.of[id];
  CC_CHECK(buffer >= 0);
  const TensorType& t = type(id);
  const std::string base = args_.Own(buffer, t.dtype);
  Count(phase, base, id);
  const bool sliced = t.layout.sliced();
  if (sliced && !phase.on_slices) {
    return absl::InternalError(
        absl::StrCat("emit: ", NodeText(g_, id), " is sliced, and read over the whole tensor"));
  }
  if (t.shape == k_.space.shape) {
    return Define(pass, id, absl::StrCat("Load<V>(", base, sliced ? " + (i - c.shift))" : " + i)"));
  }
  return LoadMapped(pass, id, StoredMapOf(t, k_.space.shape, k_.target.ranks), base);
}

absl::StatusOr<std::string> Expressions::LoadMapped(Pass& pass, NodeId id, const StoredMap& map,
                                                    std::string base) {
  if (map.identity) return Define(pass, id, absl::StrCat("Load<V>(", base, " + i)"));
  const NodeId stored = IsView(g_.nodes[id].op) && InUnit(id) ? g_.nodes[id].inputs[0] : id;
  const std::string field = MapField(map, type(stored), &base);
  return Define(pass, id, absl::StrCat("LoadBroadcast<V>(", base, ", i, ", field, ")"));
}

absl::StatusOr<std::string> Expressions::Collective(Phase& phase, Pass& pass, NodeId id) {
  const auto misplaced = [&](absl::string_view where) {
    return absl::InternalError(absl::StrCat("emit: ", NodeText(g_, id), " is used ", where));
  };
  if (Is<AllGather>(g_, id)) {
    if (phase.on_slices) return misplaced("on slices, in the kernel that gathers it");
    phase.reads_gathered = true;
    Count(phase, NodeText(g_, id), id);
    return Define(pass, id,
                  absl::StrCat("Load<V>(", args_.Own(table_.PushTargets(u_, id)[0], type(id).dtype),
                               " + i)"));
  }
  ReduceKind kind{};
  if (const auto* rs = As<ReduceScatter>(g_, id)) {
    if (!phase.on_slices) return misplaced("over the whole tensor");
    kind = rs->kind;
  } else {
    if (phase.on_slices) return misplaced("on slices");
    kind = As<AllReduce>(g_, id)->kind;
  }
  const NodeId operand = u_.Value(g_.nodes[id].inputs[0]);
  if (InUnit(operand) || table_.of[operand] < 0)
    return misplaced("on a value that is not in memory");
  Count(phase, NodeText(g_, id), id, k_.target.ranks_per_node());
  if (const auto ring = rings_.find(id); ring != rings_.end()) {
    return Define(pass, id,
                  InRange(id, absl::StrCat(LoadFrom(kind), "<V>(", ring->second, ", i)")));
  }
  const auto source = sources_.find(operand);
  const std::string from = source != sources_.end()
                               ? source->second
                               : args_.Peers(table_.of[operand], type(operand).dtype);
  const DType dtype = type(operand).dtype;
  const bool switched = dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
  const bool by_switch =
      k_.multicast && switched && kind == ReduceKind::kSum && Is<ReduceScatter>(g_, id);
  const std::string all =
      by_switch ? absl::StrCat(args_.OnAll(table_.of[operand], dtype), ", ") : "";
  return Define(pass, id, InRange(id, absl::StrCat(LoadFrom(kind), "<V>(", all, from, ", i)")));
}

absl::StatusOr<std::string> Expressions::Element(Phase& phase, Pass& pass, NodeId id) {
  id = u_.Value(id);
  if (const auto it = pass.names.find(id); it != pass.names.end()) return it->second;
  const bool is_known =
      type(id).shape.empty() && !DependsOnOwnCollective(id) && !InUnit(id) && !UpdatesScalars();
  if (IsScalarValue(id) || (Is<Total>(g_, id) && u_.tensors > 0) || is_known) {
    if (const auto* c = As<Const>(g_, id))
      return Define(pass, id, absl::StrCat("Splat<V>(", Literal(c->value, c->dtype), ")"));
    ASSIGN_OR_RETURN(const std::string scalar, Scalar(id));
    return Define(pass, id, absl::StrCat("Splat<V>(Get(", scalar, ", 0))"));
  }
  if (IsRow(id)) {
    ASSIGN_OR_RETURN(const std::string row, Row(phase, id));
    return Define(pass, id, absl::StrCat("Splat<V>(Get(", row, ", 0))"));
  }
  const int stored = k_.phases.StoredIn(id);
  if (stored >= 0 && stored < phase.number && table_.of[id] >= 0) return Load(phase, pass, id);
  if (InUnit(id) && Communicates(g_, id)) return Collective(phase, pass, id);
  if (!InUnit(id) && !u_.IsScalar(id)) return Load(phase, pass, id);
  const std::vector<NodeId>& inputs = g_.nodes[id].inputs;
  if (IsView(g_.nodes[id].op)) {
    const NodeId operand = u_.Value(inputs[0]);
    CC_CHECK(table_.of[operand] >= 0);
    Count(phase, NodeText(g_, id), id);
    return LoadMapped(pass, id, ViewMapOf(g_.nodes[id].op, type(operand).shape, type(id).shape),
                      args_.Own(table_.of[operand], type(operand).dtype));
  }
  std::vector<std::string> operands;
  for (NodeId input : inputs) {
    ASSIGN_OR_RETURN(std::string operand, Element(phase, pass, input));
    operands.push_back(std::move(operand));
  }
  ASSIGN_OR_RETURN(const std::string expression, Arithmetic(id, operands, "V", "i"));
  return Define(pass, id, expression);
}

}  // namespace coconet
