#include "autotune/cost/work.h"

#include <algorithm>
#include <vector>

#include "absl/algorithm/container.h"
#include "autotune/cost/kernel_work.h"
#include "coconet/base/status.h"
#include "coconet/ir/op_table.h"
#include "coconet/schedule/launches.h"
#include "jit/launches/collective_step.h"

namespace coconet {
namespace {

Work WorkOfCollectives(const TypedGraph& program, absl::Span<const NodeId> nodes, int ranks) {
  Work work{.kind = Work::Kind::kCollective};
  for (NodeId id : nodes) {
    if (!Communicates(program.graph(), id)) continue;
    const TensorType &operand = program.type(program.inputs(id)[0]), &result = program.type(id);
    work.dtype = operand.dtype;
    const CollectiveStep step = StepOf(program.op(id));
    work.collective = step.kind;
    work.group = step.group;
    const bool gathers = step.kind == CollectiveStep::Kind::kAllGather;
    work.bytes += BytesOnRank(gathers ? result : operand, ranks);
    ++work.tensors;
  }
  return work;
}

/// Rows and columns of the matrices that a rank has of a tensor, and their number.
struct Matrices {
  int64_t rows = 1, columns = 1, count = 1;
};
Matrices MatricesOf(const TensorType& type, int ranks) {
  Matrices all;
  const int dims = static_cast<int>(type.shape.size());
  for (int d = 0; d < dims; ++d) {
    const bool is_cut = type.layout.cut() && type.layout.dim == d;
    int64_t extent = type.shape[d].size;
    if (is_cut) extent = std::min(extent, SlicingOf(type, ranks).slicing.per);
    (d == dims - 1 ? all.columns : d == dims - 2 ? all.rows : all.count) *= extent;
  }
  return all;
}

/// As jit/storage/gemms.cc cuts a product into steps: leading dimensions become rows where all
/// matrices of the first operand meet one of the second.
Work WorkOfProduct(const TypedGraph& program, NodeId id, int ranks) {
  const auto& op = *As<MatMul>(program.graph(), id);
  const TensorType &of_a = program.type(program.inputs(id)[0]),
                   &of_b = program.type(program.inputs(id)[1]), &of_c = program.type(id);
  const Matrices a = MatricesOf(of_a, ranks), b = MatricesOf(of_b, ranks),
                 c = MatricesOf(of_c, ranks);
  Work work{.kind = Work::Kind::kProduct, .dtype = of_c.dtype};
  work.transpose_a = op.transpose_a;
  work.transpose_b = op.transpose_b;
  work.k = op.transpose_a ? a.rows : a.columns;
  work.n = c.columns;
  const bool folds_lead = b.count == 1 && !op.transpose_a;
  work.m = folds_lead ? c.rows * c.count : c.rows;
  work.batch = folds_lead ? 1 : c.count;
  for (NodeId operand : program.inputs(id))
    work.bytes_read += BytesOnRank(program.type(operand), ranks);
  work.bytes_written = BytesOnRank(of_c, ranks);
  return work;
}

Work WorkOfOpaque(const TypedGraph& program, NodeId id, int ranks) {
  const auto& op = *As<Opaque>(program.graph(), id);
  Work work{.kind = Work::Kind::kOpaque, .dtype = op.dtype};
  work.flops = op.flops;
  work.link_bytes = work.bytes = op.link_bytes;
  for (NodeId input : program.inputs(id))
    work.bytes_read += BytesOnRank(program.type(input), ranks);
  work.bytes_written = BytesOnRank(program.type(id), ranks);
  return work;
}

}  // namespace

absl::string_view Name(Effort effort) {
  switch (effort) {
    case Effort::kPass:
      return "pass";
    case Effort::kLoad:
      return "load";
    case Effort::kSpread:
      return "spread";
    case Effort::kScattered:
      return "scattered";
    case Effort::kStore:
      return "store";
    case Effort::kSimple:
      return "simple";
    case Effort::kExtremum:
      return "extremum";
    case Effort::kDivision:
      return "division";
    case Effort::kRoot:
      return "root";
    case Effort::kExp:
      return "exp";
    case Effort::kTanh:
      return "tanh";
    case Effort::kErf:
      return "erf";
    case Effort::kLibrary:
      return "library";
    case Effort::kNarrow:
      return "narrow";
    case Effort::kF16:
      return "f16";
    case Effort::kWiden:
      return "widen";
    case Effort::kByteLoad:
      return "byte_load";
    case Effort::kByteStore:
      return "byte_store";
    case Effort::kChain:
      return "chain";
    case Effort::kDrain:
      return "drain";
    case Effort::kQuotient:
      return "quotient";
    case Effort::kJump:
      return "jump";
    case Effort::kConversion:
      return "conversion";
    case Effort::kIndices:
      return "indices";
    case Effort::kRandom:
      return "random";
    case Effort::kSum:
      return "sum";
    case Effort::kGreatest:
      return "greatest";
    case Effort::kTotal:
      return "total";
    case Effort::kAlone:
      return "alone";
    case Effort::kRow:
      return "row";
    case Effort::kStridedFold:
      return "strided_fold";
    case Effort::kScatter:
      return "scatter";
    case Effort::kMultiply:
      return "multiply";
  }
  CC_CHECK(false);
}

Work WorkOf(const TypedGraph& program, absl::Span<const NodeId> nodes, const Target& target) {
  const Graph& g = program.graph();
  const auto stores = [&](NodeId id) { return RoleOf(program.op(id)) == Role::kStore; };
  const auto moves = [&](NodeId id) { return Communicates(g, id); };
  const auto opaque =
      absl::c_find_if(nodes, [&](NodeId id) { return As<Opaque>(g, id) != nullptr; });
  if (opaque != nodes.end()) return WorkOfOpaque(program, *opaque, target.ranks);
  if (absl::c_any_of(nodes, moves) &&
      absl::c_all_of(nodes, [&](NodeId id) { return moves(id) || stores(id); }))
    return WorkOfCollectives(program, nodes, target.ranks);
  const auto product =
      absl::c_find_if(nodes, [&](NodeId id) { return As<MatMul>(g, id) != nullptr; });
  if (product != nodes.end() &&
      absl::c_all_of(nodes, [&](NodeId id) { return id == *product || stores(id); }))
    return WorkOfProduct(program, *product, target.ranks);
  return WorkOfKernel(program, {nodes.begin(), nodes.end()}, target.ranks);
}

}  // namespace coconet
