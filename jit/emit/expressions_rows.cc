#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "jit/emit/expressions.h"
#include "jit/storage/literal.h"

namespace coconet {
namespace {

double LeastOf(DType dtype) {
  if (IsFloat(dtype)) return -std::numeric_limits<double>::infinity();
  return dtype == DType::kU8 ? 0 : -MaxFinite(dtype) - 1;
}

}  // namespace

absl::string_view FoldKindText(FoldKind kind) {
  if (kind == FoldKind::kMax) return "MaxOf";
  return kind == FoldKind::kMin ? "MinOf" : "SumOf";
}

double FirstOfFold(FoldKind kind, DType dtype) {
  if (kind == FoldKind::kMax) return LeastOf(dtype);
  if (kind != FoldKind::kMin) return 0;
  return IsFloat(dtype) ? std::numeric_limits<double>::infinity() : MaxFinite(dtype);
}

std::pair<std::string, std::string> Expressions::Accumulator(NodeId id) {
  const auto& fold = *As<Fold>(g_, id);
  const std::string name = absl::StrCat("acc", named_++);
  return {name,
          absl::StrCat("auto ", name, " = MakeAccumulator<", FoldKindText(fold.kind), ", kV>(",
                       Literal(FirstOfFold(fold.kind, type(id).dtype), type(id).dtype), ");\n")};
}

std::string Expressions::FromTotal(NodeId id, absl::string_view total) {
  const auto& fold = *As<Fold>(g_, id);
  const std::string compute = absl::StrCat("Compute<", KernelType(type(id).dtype), ">");
  if (fold.kind != FoldKind::kMean)
    return InRange(id, absl::StrCat("Folded<", compute, ">(", total, ")"));
  const int64_t results = NumElements(type(id).shape),
                elements = NumElements(type(g_.nodes[id].inputs[0]).shape);
  const std::string count =
      args_.Integer(absl::StrCat("count", named_++), results == 0 ? 0 : elements / results);
  return absl::StrCat("Averaged<", compute, ">(", total, ", ", count, ")");
}

bool Expressions::IsRow(NodeId id) const {
  if (k_.space.row_dims == 0) return false;
  if (InUnit(id) && FoldsRows(u_.program, id)) return true;
  return type(id).shape == k_.space.rows() && type(id).shape != k_.space.shape;
}

std::string Expressions::RowOffset(NodeId id) {
  const StoredMap map = StoredMapOf(type(id), k_.space.rows(), k_.target.ranks);
  std::string base = "0";
  const std::string field = MapField(map, type(id), &base);
  return absl::StrCat(base, " + BroadcastMap<", map.dims.size(), ">::Offset(", field, ", r)");
}

/// Loops over the row's elements before they are looped over for what depends on the result.
absl::StatusOr<std::string> Expressions::FoldRow(Phase& phase, NodeId id) {
  Pass pass;
  ASSIGN_OR_RETURN(const std::string element, Element(phase, pass, g_.nodes[id].inputs[0]));
  const auto [name, declaration] = Accumulator(id);
  const std::string length = args_.At("row_length");
  absl::StrAppend(&phase.row_values, "    ", declaration, "    ForEach<kV>(grid, r * ", length,
                  ", (r + 1) * ", length, ", ", args_.At("packed"),
                  " != 0, [&](auto lanes, Index i) {\n",
                  "      constexpr int V = decltype(lanes)::kCount;\n", pass.values,
                  "      Accumulate(", name, ", ", element, ");\n    });\n");
  return FromTotal(id, absl::StrCat("Total(grid, ", name, ")"));
}

absl::StatusOr<std::string> Expressions::Row(Phase& phase, NodeId id) {
  id = u_.Value(id);
  if (const auto it = phase.row_names.find(id); it != phase.row_names.end()) return it->second;
  std::string expression;
  const int stored = k_.phases.StoredIn(id);
  const bool from_memory = (!InUnit(id) && !u_.IsScalar(id)) ||
                           (stored >= 0 && stored < phase.number && table_.of[id] >= 0);
  if (IsScalarValue(id)) {
    ASSIGN_OR_RETURN(expression, Scalar(id));
  } else if (from_memory) {
    std::string base = args_.Own(table_.of[id], type(id).dtype);
    const StoredMap map = StoredMapOf(type(id), k_.space.rows(), k_.target.ranks);
    const std::string field = MapField(map, type(id), &base);
    expression = absl::StrCat("LoadBroadcast<1>(", base, ", r, ", field, ")");
  } else if (Is<Fold>(g_, id)) {
    ASSIGN_OR_RETURN(expression, FoldRow(phase, id));
  } else {
    std::vector<std::string> operands;
    for (NodeId input : g_.nodes[id].inputs) {
      ASSIGN_OR_RETURN(std::string operand, Row(phase, input));
      operands.push_back(std::move(operand));
    }
    ASSIGN_OR_RETURN(expression, Arithmetic(id, operands, "1", "r"));
  }
  const std::string name = absl::StrCat("r", named_++);
  absl::StrAppend(&phase.row_values, "    const auto ", name, " = ", expression, ";\n");
  phase.row_names[id] = name;
  return name;
}

}  // namespace coconet
