#include "jit/expressions.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "coconet/base/status.h"
#include "jit/broadcast.h"
#include "jit/literal.h"

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

}  // namespace

bool Expressions::DependsOnOwnCollective(NodeId id) {
  id = u_.Value(id);
  if (!InUnit(id) && !u_.IsScalar(id)) return false;
  if (InUnit(id) && Communicates(g_, id)) return true;
  if (const auto it = depends_.find(id); it != depends_.end()) return it->second;
  const std::vector<NodeId>& inputs = g_.nodes[id].inputs;
  const bool depends = std::any_of(inputs.begin(), inputs.end(), [&](NodeId i) { return DependsOnOwnCollective(i); });
  return depends_[id] = depends;
}

/// Every use of `id` rounds it to its type anyway.
bool Expressions::OnlyStored(NodeId id) const {
  return std::all_of(u_.users[id].begin(), u_.users[id].end(), [&](NodeId user) {
    if (!InUnit(user)) return true;
    return Is<AllGather>(g_, user) || Is<Output>(g_, user) || (Is<Update>(g_, user) && OnlyStored(user));
  });
}

/// u8 is computed in a wider type, and wraps all the same.
std::string Expressions::InRange(NodeId id, std::string expression) const {
  return type(id).dtype == DType::kU8 ? absl::StrCat("Wrapped<u8>(", expression, ")") : expression;
}

absl::StatusOr<std::string> Expressions::Arithmetic(NodeId id, const std::vector<std::string>& operands,
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
absl::StatusOr<std::string> Expressions::Scalar(NodeId id) {
  id = u_.Value(id);
  if (const auto it = scalar_names_.find(id); it != scalar_names_.end()) return it->second;
  std::string expression;
  if (u_.IsScalar(id)) {
    std::vector<std::string> operands;
    for (NodeId input : g_.nodes[id].inputs) {
      ASSIGN_OR_RETURN(std::string operand, Scalar(input));
      operands.push_back(std::move(operand));
    }
    ASSIGN_OR_RETURN(expression, Arithmetic(id, operands, "1"));
  } else {
    CC_CHECK(table_.of[id] >= 0);
    expression = absl::StrCat("Load<1>(", args_.Own(table_.of[id], type(id).dtype), ")");
  }
  const std::string name = absl::StrCat("s", named_++);
  absl::StrAppend(&scalars_, "  const auto ", name, " = ", expression, ";\n");
  scalar_names_[id] = name;
  return name;
}

std::string Expressions::Define(Phase& phase, NodeId id, absl::string_view expression) {
  const std::string name = absl::StrCat("v", named_++);
  absl::StrAppend(&phase.values, "      const auto ", name, " = ", expression, ";\n");
  phase.names[id] = name;
  return name;
}

absl::StatusOr<std::string> Expressions::EvalLoad(Phase& phase, NodeId id) {
  const int buffer = table_.of[id];
  CC_CHECK(buffer >= 0);
  const TensorType& t = type(id);
  phase.bytes_per_element += static_cast<int64_t>(SizeOf(t.dtype));
  const std::string base = args_.Own(buffer, t.dtype);
  const bool sliced = t.layout.sliced();
  if (sliced && phase.domain == Phase::Domain::kWhole) {
    return absl::InternalError(absl::StrCat("emit: ", NodeText(g_, id), " is sliced, and read over the whole tensor"));
  }
  if (t.shape == shape_) {
    return Define(phase, id, absl::StrCat("Load<V>(", base, sliced ? " + (i - c.shift))" : " + i)"));
  }
  return EvalBroadcast(phase, id, base);
}

absl::StatusOr<std::string> Expressions::EvalBroadcast(Phase& phase, NodeId id, std::string base) {
  const StoredMap map = StoredMapOf(type(id), shape_, ranks_);
  if (map.identity) return Define(phase, id, absl::StrCat("Load<V>(", base, " + i)"));
  std::vector<Arg> words;
  for (int64_t dim : map.dims) words.push_back({Arg::Kind::kInt, -1, dim});
  for (int64_t stride : map.strides) words.push_back({Arg::Kind::kInt, -1, stride});
  const int number = named_++;
  const std::string name = absl::StrCat("map", number);
  const std::string field = args_.Member(absl::StrCat("BroadcastMap<", map.dims.size(), "> ", name), name, std::move(words));
  if (type(id).layout.sliced()) {
    base = absl::StrCat(base, " - rank * ", args_.Integer(absl::StrCat("skip", number), map.elements_a_rank));
  }
  return Define(phase, id, absl::StrCat("LoadBroadcast<V>(", base, ", i, ", field, ")"));
}

absl::StatusOr<std::string> Expressions::EvalCollective(Phase& phase, NodeId id) {
  const int64_t size = static_cast<int64_t>(SizeOf(type(id).dtype));
  const auto misplaced = [&](absl::string_view where) {
    return absl::InternalError(absl::StrCat("emit: ", NodeText(g_, id), " is used ", where));
  };
  if (Is<AllGather>(g_, id)) {
    if (phase.domain != Phase::Domain::kWhole) return misplaced("on slices, in the kernel that gathers it");
    phase.reads_gathered = true;
    phase.bytes_per_element += size;
    return Define(phase, id, absl::StrCat("Load<V>(", args_.Own(table_.GatherTargets(u_, id)[0], type(id).dtype), " + i)"));
  }
  ReduceKind kind{};
  if (const auto* rs = As<ReduceScatter>(g_, id)) {
    if (phase.domain != Phase::Domain::kSlice) return misplaced("over the whole tensor");
    kind = rs->kind;
  } else {
    if (phase.domain != Phase::Domain::kWhole) return misplaced("on slices");
    kind = As<AllReduce>(g_, id)->kind;
  }
  const NodeId operand = u_.Value(g_.nodes[id].inputs[0]);
  if (InUnit(operand) || table_.of[operand] < 0) return misplaced("on a value that is not in memory");
  phase.bytes_per_element += ranks_ * size;
  const auto source = sources_.find(operand);
  const std::string from =
      source != sources_.end() ? source->second : args_.Peers(table_.of[operand], type(operand).dtype);
  return Define(phase, id, InRange(id, absl::StrCat(LoadFrom(kind), "<V>(", from, ", i)")));
}

absl::StatusOr<std::string> Expressions::Eval(Phase& phase, NodeId id) {
  id = u_.Value(id);
  if (const auto it = phase.names.find(id); it != phase.names.end()) return it->second;
  if (InUnit(id) && Communicates(g_, id)) return EvalCollective(phase, id);
  if (type(id).shape.empty() && !DependsOnOwnCollective(id) && !InUnit(id)) {
    if (const auto* c = As<Const>(g_, id)) return Define(phase, id, absl::StrCat("Splat<V>(", Literal(c->value, c->dtype), ")"));
    ASSIGN_OR_RETURN(const std::string scalar, Scalar(id));
    return Define(phase, id, absl::StrCat("Splat<V>(Get(", scalar, ", 0))"));
  }
  if (!InUnit(id) && !u_.IsScalar(id)) return EvalLoad(phase, id);
  std::vector<std::string> operands;
  for (NodeId input : g_.nodes[id].inputs) {
    ASSIGN_OR_RETURN(std::string operand, Eval(phase, input));
    operands.push_back(std::move(operand));
  }
  ASSIGN_OR_RETURN(const std::string expression, Arithmetic(id, operands, "V"));
  return Define(phase, id, expression);
}

}  // namespace coconet
