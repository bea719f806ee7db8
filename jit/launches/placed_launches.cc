#include "jit/launches/placed_launches.h"

#include "absl/algorithm/container.h"
#include "coconet/ir/op_table.h"
#include "coconet/schedule/prologue.h"

namespace coconet {

bool PlacedLaunches::IsScalar(NodeId id) const {
  const Op& op = graph().nodes[id].op;
  if (RoleOf(op) != Role::kConstant && !IsComputation(op)) return false;
  return type(id).shape.empty() && of[id] < 0;
}

bool PlacedLaunches::ComputesInPhases(int launch, NodeId id) const {
  if (launch < 0 || of[id] != launch) return of[id] == launch;
  const bool by_library = (*this)[launch].library && Is<MatMul>(graph(), id);
  return !by_library && !IsOfPrologue(program, (*this)[launch].nodes, id);
}

bool PlacedLaunches::IsThere(NodeId id, int launch) const {
  if (Is<Input>(graph(), id)) return true;
  const auto chain = absl::c_find_if(
      chains, [&](const Chain& c) { return c.first <= launch && launch <= c.last; });
  const int before = chain == chains.end() ? launch : chain->first;
  return of[id] >= 0 && of[id] < before;
}

RowsInUse PlacedLaunches::RowsOfProduct(NodeId product, int launch) const {
  const RowsInUse& in_use = rows[product];
  const auto* multiplies = As<MatMul>(graph(), product);
  if (multiplies == nullptr || in_use.all() ||
      in_use.dim + 2 != static_cast<int>(type(product).shape.size()) ||
      !IsThere(in_use.counts, launch))
    return {};
  const bool skips =
      (*this)[launch].library ? !multiplies->transpose_a : ComputesInPhases(launch, product);
  return skips ? in_use : RowsInUse{};
}

NodeId PlacedLaunches::CountsBeforeAllToAll(NodeId id) const {
  const int launch = of[id];
  const RowsInUse& in_use = rows[id];
  if (!Is<AllToAll>(graph(), id) || launch < 0 || !(*this)[launch].library || in_use.all() ||
      NumElements(type(id).shape) == 0)
    return -1;
  const NodeId before = CountsBefore(program, id, in_use.counts);
  const bool are_there =
      before >= 0 && IsThere(Value(before), launch) && IsThere(Value(in_use.counts), launch);
  return are_there ? Value(before) : -1;
}

std::set<NodeId> PlacedLaunches::Reads(NodeId id, int launch) const {
  std::set<NodeId> reads, scalars;
  std::vector<NodeId> pending = {id};
  while (!pending.empty()) {
    const NodeId next = pending.back();
    pending.pop_back();
    for (NodeId operand : ValueOperands(graph(), next)) {
      const NodeId value = Value(operand);
      if (IsScalar(value)) {
        if (scalars.insert(value).second) pending.push_back(value);
      } else if (!ComputesInPhases(launch, value)) {
        reads.insert(value);
      }
    }
  }
  return reads;
}

}  // namespace coconet
