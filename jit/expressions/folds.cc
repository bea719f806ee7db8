#include "jit/expressions/folds.h"

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "jit/expressions/operations.h"
#include "jit/storage/literal.h"

namespace coconet {

absl::string_view FoldKindText(FoldKind kind) {
  switch (kind) {
    case FoldKind::kSum:
    case FoldKind::kMean:
      return "SumOf";
    case FoldKind::kMax:
      return "MaxOf";
    case FoldKind::kMin:
      return "MinOf";
  }
  CC_CHECK(false);
}

Number FirstOfFold(FoldKind kind, DType dtype) {
  switch (kind) {
    case FoldKind::kSum:
    case FoldKind::kMean:
      return 0;
    case FoldKind::kMax:
      return Least(dtype);
    case FoldKind::kMin:
      return Greatest(dtype);
  }
  CC_CHECK(false);
}

std::pair<std::string, std::string> Accumulator(KernelContext& k, NodeId id) {
  const FoldKind kind = As<Fold>(k.g, id)->kind;
  const DType dtype = k.type(id).dtype;
  const std::string name = absl::StrCat("acc", k.named++);
  return {name, absl::StrCat("auto ", name, " = MakeAccumulator<", FoldKindText(kind), ", kV>(",
                             Literal(FirstOfFold(kind, dtype), dtype), ");\n")};
}

DType PartialType(DType dtype) {
  if (IsFloat(dtype)) return DType::kF64;
  return dtype == DType::kU32 || dtype == DType::kU64 ? DType::kU64 : DType::kI64;
}

std::string FromTotal(KernelContext& k, NodeId id, absl::string_view total) {
  const std::string compute = absl::StrCat("Compute<", KernelType(k.type(id).dtype), ">");
  if (As<Fold>(k.g, id)->kind != FoldKind::kMean)
    return InRange(k.type(id).dtype, absl::StrCat("Folded<", compute, ">(", total, ")"));
  const int64_t results = NumElements(k.type(id).shape),
                elements = NumElements(k.type(k.g.nodes[id].inputs[0]).shape);
  const std::string count =
      k.args.Integer(absl::StrCat("count", k.named++), results == 0 ? 0 : elements / results);
  return absl::StrCat("Averaged<", compute, ">(", total, ", ", count, ")");
}

std::string TotalOf(KernelContext& k, ReduceKind kind, DType dtype, absl::string_view statements,
                    absl::string_view result) {
  const FoldKind fold = WithinRank(kind);
  const std::string tensors = k.args.LaunchInteger("tensors", k.u.tensors);
  k.args.LaunchMember("const Each* each", "each", {{Arg::Kind::kTable, -1, 0}});
  return absl::StrCat("TotalOf<", FoldKindText(fold), ">(grid, ", tensors, ", ",
                      Literal(FirstOfFold(fold, dtype), dtype), ", [&](Index t) {\n",
                      Arguments::TensorLocals(), statements, "    return ", result, ";\n  })");
}

}  // namespace coconet
