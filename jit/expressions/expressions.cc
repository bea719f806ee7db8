#include "jit/expressions/expressions.h"

#include <deque>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "jit/expressions/element_loop.h"
#include "jit/expressions/folds.h"
#include "jit/expressions/operations.h"
#include "jit/storage/literal.h"

namespace coconet {

bool IsCostly(const Graph& g, NodeId id) {
  const auto* op = As<Pointwise>(g, id);
  return op != nullptr && Info(op->fn).float_only && Info(op->fn).ulps > 1;
}

Expressions::Expressions(KernelContext& k, Loads& loads)
    : k_(k),
      loads_(loads),
      updates_scalars_(k.space.shape.empty() &&
                       absl::c_any_of(k.members, [&](NodeId id) { return Is<Update>(k.g, id); })) {}

absl::StatusOr<std::string> Expressions::Element(PhaseText& phase, PassText& pass, NodeId id) {
  return Write(&phase, {Form::kElement, k_.u.Value(id), &pass});
}

absl::StatusOr<std::string> Expressions::Row(PhaseText& phase, NodeId id) {
  return Write(&phase, {Form::kRow, k_.u.Value(id)});
}

absl::StatusOr<std::string> Expressions::Scalar(NodeId id) {
  return Write(nullptr, {Form::kScalar, k_.u.Value(id)});
}

absl::StatusOr<std::string> Expressions::Write(PhaseText* phase, Wanted wanted) {
  const Wanted root{wanted.form, wanted.id, wanted.pass};
  std::deque<Wanted> open;  // elements stay where they are
  open.push_back(std::move(wanted));
  while (!open.empty()) {
    Wanted& last = open.back();
    if (!last.begun && NameOf(phase, last) != nullptr) {
      open.pop_back();
      continue;
    }
    if (!last.begun) Begin(phase, last);
    if (last.next < last.operands.size()) {
      open.push_back(OperandOf(last));
      continue;
    }
    RETURN_IF_ERROR(Finish(phase, last));
    open.pop_back();
  }
  return *NameOf(phase, root);
}

const std::string* Expressions::NameOf(PhaseText* phase, const Wanted& wanted) {
  const std::map<NodeId, std::string>& names = wanted.form == Form::kElement ? wanted.pass->names
                                               : wanted.form == Form::kRow   ? phase->row_names
                                               : IsTensorScalar(wanted.id)   ? tensor_names_
                                                                             : scalar_names_;
  const auto name = names.find(wanted.id);
  return name == names.end() ? nullptr : &name->second;
}

void Expressions::Begin(PhaseText* phase, Wanted& wanted) {
  wanted.begun = true;
  const NodeId id = wanted.id;
  wanted.source = wanted.form == Form::kElement ? SourceOfElement(*phase, id)
                  : wanted.form == Form::kRow   ? SourceOfRow(*phase, id)
                                                : SourceOfScalar(id);
  switch (wanted.source) {
    case Source::kScalar:
    case Source::kRow:
      wanted.operands = {id};
      return;
    case Source::kView:
    case Source::kOperands:
      wanted.operands = ElementOperands(k_, id);
      return;
    case Source::kRowFold:
      wanted.operands = k_.g.nodes[id].inputs;
      return;
    case Source::kTotal:
      wanted.operands = k_.g.nodes[id].inputs;
      wanted.outer_section = std::exchange(tensor_section_, &wanted.body);
      wanted.outer_names = std::exchange(tensor_names_, {});
      return;
    case Source::kConstant:
    case Source::kMemory:
    case Source::kTile:
    case Source::kCollective:
    case Source::kGiven:
    case Source::kGivenTotal:
    case Source::kUnknown:
      return;
  }
}

/// The next value that `wanted` is computed from.
Expressions::Wanted Expressions::OperandOf(Wanted& wanted) {
  const NodeId operand = k_.u.Value(wanted.operands[wanted.next++]);
  if (wanted.source == Source::kScalar) return {Form::kScalar, operand};
  if (wanted.source == Source::kRow) return {Form::kRow, operand};
  if (wanted.source == Source::kRowFold) return {Form::kElement, operand, &wanted.loop};
  return {wanted.form, operand, wanted.pass};
}

absl::Status Expressions::Finish(PhaseText* phase, Wanted& wanted) {
  ASSIGN_OR_RETURN(std::string expression, TextOf(phase, wanted));
  // A section of scalars of the launch is run once, by all threads of each block.
  if (wanted.form == Form::kScalar && wanted.source == Source::kOperands &&
      !IsTensorScalar(wanted.id) && IsCostly(k_.g, wanted.id))
    expression = absl::StrCat("grid.OfBlock([&] { return ", expression, "; })");
  Define(phase, wanted, expression);
  return absl::OkStatus();
}

absl::StatusOr<std::string> Expressions::TextOf(PhaseText* phase, Wanted& wanted) {
  const NodeId id = wanted.id;
  const bool is_element = wanted.form == Form::kElement;
  switch (wanted.source) {
    case Source::kConstant:
    case Source::kOperands:
      return OperationOf(phase, wanted);
    case Source::kScalar:
    case Source::kRow: {
      const Form form = wanted.source == Source::kRow ? Form::kRow : Form::kScalar;
      const std::string name = *NameOf(phase, {form, id});
      return is_element ? absl::StrCat("Splat<V>(Get(", name, ", 0))") : name;
    }
    case Source::kMemory:
      if (is_element) return loads_.Element(*phase, *wanted.pass, id);
      return wanted.form == Form::kRow ? loads_.Row(id) : loads_.Scalar(id);
    case Source::kTile:
      return absl::StrCat("FromRaw<", KernelType(k_.type(id).dtype), ", V>(made)");
    case Source::kCollective:
      return loads_.Collective(*phase, *wanted.pass, id);
    case Source::kView:
      return ViewOf(phase, wanted);
    case Source::kRowFold:
      return RowFold(phase, wanted);
    case Source::kGiven:
      return tensor_sources_[id];
    case Source::kGivenTotal:
      has_totals_ = true;
      return InRange(k_.type(id).dtype, TotalOf(k_, As<AllReduce>(k_.g, id)->kind,
                                                k_.type(id).dtype, "", totals_[id]));
    case Source::kTotal:
      return TotalOfTensors(wanted);
    case Source::kUnknown:
      return absl::InternalError(
          absl::StrCat("emit: ", NodeText(k_.g, id), " is needed before it is known"));
  }
  CC_CHECK(false);
}

absl::StatusOr<std::string> Expressions::OperationOf(PhaseText* phase, const Wanted& wanted) {
  std::vector<std::string> operands;
  for (NodeId operand : wanted.operands)
    operands.push_back(*NameOf(phase, {wanted.form, k_.u.Value(operand), wanted.pass}));
  if (wanted.form == Form::kElement) return OperationText(k_, wanted.id, operands, "V", "i");
  return OperationText(k_, wanted.id, operands, "1", wanted.form == Form::kRow ? "r" : "0");
}

absl::StatusOr<std::string> Expressions::ViewOf(PhaseText* phase, const Wanted& wanted) {
  std::map<NodeId, std::string> computed;
  for (NodeId operand : wanted.operands) {
    const NodeId value = k_.u.Value(operand);
    computed[value] = *NameOf(phase, {Form::kElement, value, wanted.pass});
  }
  return loads_.View(*phase, *wanted.pass, wanted.id, computed);
}

/// Loops over the row's elements before they are looped over for what depends on the result.
std::string Expressions::RowFold(PhaseText* phase, Wanted& wanted) {
  const std::string element =
      *NameOf(phase, {Form::kElement, k_.u.Value(wanted.operands[0]), &wanted.loop});
  const auto [name, declaration] = Accumulator(k_, wanted.id);
  const std::string length = k_.args.At("row_length");
  absl::StrAppend(&wanted.loop.stores, "      Accumulate(", name, ", ", element, ");\n");
  absl::StrAppend(&phase->row_values, "    ", declaration,
                  ElementLoopText(k_, absl::StrCat("r * ", length, ", (r + 1) * ", length),
                                  k_.PacksFitText(), wanted.loop));
  return FromTotal(k_, wanted.id, absl::StrCat("Total(grid, ", name, ")"));
}

/// The operand was computed within a function of the tensor.
std::string Expressions::TotalOfTensors(Wanted& wanted) {
  const std::string operand = *NameOf(nullptr, {Form::kScalar, k_.u.Value(wanted.operands[0])});
  tensor_section_ = wanted.outer_section;
  tensor_names_ = std::move(wanted.outer_names);
  has_totals_ = true;
  const DType dtype = k_.type(wanted.id).dtype;
  return InRange(dtype, TotalOf(k_, As<Total>(k_.g, wanted.id)->kind, dtype, wanted.body, operand));
}

void Expressions::Define(PhaseText* phase, const Wanted& wanted, const std::string& expression) {
  const int number = k_.named++;
  const auto define = [&](absl::string_view letter, absl::string_view indent, std::string* section,
                          std::map<NodeId, std::string>* names) {
    const std::string name = absl::StrCat(letter, number);
    absl::StrAppend(section, indent, "const auto ", name, " = ", expression, ";\n");
    (*names)[wanted.id] = name;
  };
  switch (wanted.form) {
    case Form::kElement:
      return define("v", "      ", &wanted.pass->values, &wanted.pass->names);
    case Form::kRow:
      return define("r", "    ", &phase->row_values, &phase->row_names);
    case Form::kScalar:
      return IsTensorScalar(wanted.id) ? define("s", "    ", tensor_section_, &tensor_names_)
                                       : define("s", "  ", section_, &scalar_names_);
  }
}

bool Expressions::IsStoredBefore(const PhaseText& phase, NodeId id) const {
  return k_.IsStoredBefore(phase.number, id) && k_.table.of[id] >= 0;
}

Expressions::Source Expressions::SourceOfElement(const PhaseText& phase, NodeId id) {
  const bool is_known = k_.type(id).shape.empty() && !k_.IsMember(id) && !updates_scalars_ &&
                        !DependsOnOwnCollective(id);
  if (IsScalarValue(id) || (Is<Total>(k_.g, id) && k_.u.tensors > 0) || is_known)
    return Is<Const>(k_.g, id) ? Source::kConstant : Source::kScalar;
  if (k_.IsRow(id)) return Source::kRow;
  if (IsStoredBefore(phase, id)) return Source::kMemory;
  if (id == k_.tiled) return Source::kTile;
  if (k_.IsMember(id) && Communicates(k_.g, id)) return Source::kCollective;
  if (!k_.IsMember(id) && !k_.u.IsScalar(id)) return Source::kMemory;
  return TakesOtherPlaces(k_.g.nodes[id].op) ? Source::kView : Source::kOperands;
}

Expressions::Source Expressions::SourceOfRow(const PhaseText& phase, NodeId id) const {
  if (IsScalarValue(id)) return Source::kScalar;
  if ((!k_.IsMember(id) && !k_.u.IsScalar(id)) || IsStoredBefore(phase, id)) return Source::kMemory;
  return Is<Fold>(k_.g, id) ? Source::kRowFold : Source::kOperands;
}

Expressions::Source Expressions::SourceOfScalar(NodeId id) const {
  if (tensor_sources_.contains(id)) return Source::kGiven;
  if (totals_.contains(id)) return Source::kGivenTotal;
  if (Is<Total>(k_.g, id) && k_.u.tensors > 0 && (k_.u.IsScalar(id) || k_.IsMember(id)))
    return Source::kTotal;
  if (k_.u.IsScalar(id)) return Source::kOperands;
  return k_.IsMember(id) || k_.table.of[id] < 0 ? Source::kUnknown : Source::kMemory;
}

bool Expressions::DependsOnOwnCollective(NodeId id) {
  std::vector<NodeId> open = {id};
  while (!open.empty()) {
    const NodeId last = open.back();
    const bool is_recomputed = k_.IsMember(last) || k_.u.IsScalar(last);
    bool depends = k_.IsMember(last) && Communicates(k_.g, last), is_ready = true;
    if (is_recomputed && !depends && !depends_.contains(last)) {
      for (NodeId input : k_.g.nodes[last].inputs) {
        const NodeId operand = k_.u.Value(input);
        const auto known = depends_.find(operand);
        depends = depends || (known != depends_.end() && known->second);
        if (known != depends_.end()) continue;
        open.push_back(operand);
        is_ready = false;
      }
    }
    if (!is_ready) continue;
    depends_.try_emplace(last, depends);
    open.pop_back();
  }
  return depends_[id];
}

}  // namespace coconet
