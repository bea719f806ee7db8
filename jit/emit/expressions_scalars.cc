#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "jit/emit/expressions.h"
#include "jit/storage/literal.h"

namespace coconet {
namespace {

absl::string_view KindText(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kSum:
      return "SumOf";
    case ReduceKind::kMax:
      return "MaxOf";
    case ReduceKind::kMin:
      return "MinOf";
  }
  CC_CHECK(false);
}

FoldKind FoldOf(ReduceKind kind) {
  if (kind == ReduceKind::kMax) return FoldKind::kMax;
  return kind == ReduceKind::kMin ? FoldKind::kMin : FoldKind::kSum;
}

}  // namespace

/// Statements of a scalar go to the open section, once.
absl::StatusOr<std::string> Expressions::Scalar(NodeId id) {
  id = u_.Value(id);
  const bool of_tensor = IsTensorScalar(id);
  std::map<NodeId, std::string>& names = of_tensor ? tensor_names_ : scalar_names_;
  if (const auto it = names.find(id); it != names.end()) return it->second;
  ASSIGN_OR_RETURN(const std::string expression, ScalarText(id));
  const std::string name = absl::StrCat("s", named_++);
  absl::StrAppend(of_tensor ? tensor_section_ : section_, of_tensor ? "    " : "  ", "const auto ",
                  name, " = ", expression, ";\n");
  names[id] = name;
  return name;
}

absl::StatusOr<std::string> Expressions::ScalarText(NodeId id) {
  if (const auto given = tensor_sources_.find(id); given != tensor_sources_.end())
    return given->second;
  if (const auto given = totals_.find(id); given != totals_.end()) {
    return InRange(id, TotalOf(As<AllReduce>(g_, id)->kind, type(id).dtype, "", given->second));
  }
  if (Is<Total>(g_, id) && u_.tensors > 0 && (u_.IsScalar(id) || InUnit(id))) return TotalText(id);
  if (u_.IsScalar(id)) {
    std::vector<std::string> operands;
    for (NodeId input : g_.nodes[id].inputs) {
      ASSIGN_OR_RETURN(std::string operand, Scalar(input));
      operands.push_back(std::move(operand));
    }
    return Arithmetic(id, operands, "1", "0");
  }
  if (InUnit(id) || table_.of[id] < 0) {
    return absl::InternalError(
        absl::StrCat("emit: ", NodeText(g_, id), " is needed before it is known"));
  }
  return absl::StrCat("Load<1>(", args_.Own(table_.of[id], type(id).dtype), ")");
}

/// The operand is computed within a function of the tensor.
absl::StatusOr<std::string> Expressions::TotalText(NodeId id) {
  std::string statements;
  std::string* const outer = std::exchange(tensor_section_, &statements);
  std::map<NodeId, std::string> outer_names = std::exchange(tensor_names_, {});
  const absl::StatusOr<std::string> operand = Scalar(g_.nodes[id].inputs[0]);
  tensor_section_ = outer;
  tensor_names_ = std::move(outer_names);
  RETURN_IF_ERROR(operand.status());
  return InRange(id, TotalOf(As<Total>(g_, id)->kind, type(id).dtype, statements, *operand));
}

std::string Expressions::TotalOf(ReduceKind kind, DType dtype, absl::string_view statements,
                                 absl::string_view result) {
  has_totals_ = true;
  const std::string tensors = args_.LaunchInteger("tensors", u_.tensors);
  args_.LaunchMember("const Each* each", "each", {{Arg::Kind::kTable, -1, 0}});
  return absl::StrCat("TotalOf<", KindText(kind), ">(grid, ", tensors, ", ",
                      Literal(FirstOfFold(FoldOf(kind), dtype), dtype), ", [&](Index t) {\n",
                      Arguments::TensorLocals(), statements, "    return ", result, ";\n  })");
}

}  // namespace coconet
