#include "coconet/schedule/overlapped_products.h"

#include "absl/algorithm/container.h"
#include "coconet/schedule/prologue.h"

namespace coconet {

NodeId TiledMemberOf(const TypedGraph& program, const std::vector<NodeId>& kernel) {
  const NodeId product = TiledProductOf(program, kernel);
  return product >= 0 && !IsOfPrologue(program, kernel, product) ? product : -1;
}

NodeId ProductOfLaunch(const Schedule& s, NodeId first) {
  const std::vector<NodeId>& nodes = s.launch(first).nodes;
  if (absl::c_linear_search(s.kernels(), nodes)) return TiledMemberOf(s.program(), nodes);
  const bool in_tiles = As<MatMul>(s.graph(), first) != nullptr && !HasNoKernel(s.program(), first);
  return in_tiles ? first : -1;
}

bool TilesInKernel(const Schedule& s, const std::vector<NodeId>& overlap) {
  return absl::c_any_of(overlap, [&](NodeId first) {
    const std::vector<NodeId>& nodes = s.launch(first).nodes;
    return absl::c_linear_search(s.kernels(), nodes) && TiledMemberOf(s.program(), nodes) >= 0;
  });
}

bool TilesInKernels(const Schedule& s) {
  return absl::c_any_of(
      s.overlaps(), [&](const std::vector<NodeId>& overlap) { return TilesInKernel(s, overlap); });
}

bool GathersFor(const TypedGraph& program, const std::vector<NodeId>& kernel, NodeId product) {
  const auto* multiplies = As<MatMul>(program.graph(), product);
  if (multiplies == nullptr || multiplies->transpose_a) return false;
  const NodeId operand = program.value(program.inputs(product)[0]);
  if (!As<AllGather>(program.graph(), operand)) return false;
  const Layout& layout = program.type(program.inputs(operand)[0]).layout;
  return layout.sliced() && !layout.by_place() && absl::c_linear_search(kernel, operand);
}

bool FitsTilesBeside(const Schedule& s, const std::vector<NodeId>& overlap) {
  for (size_t at = 0; at + 1 < overlap.size(); ++at) {
    const std::vector<NodeId>& next = s.launch(overlap[at + 1]).nodes;
    const bool communicates =
        absl::c_any_of(next, [&](NodeId id) { return s.program().communicates(id); });
    if (communicates && ProductOfLaunch(s, overlap[at]) >= 0) return true;
    const NodeId product = ProductOfLaunch(s, overlap[at + 1]);
    if (product >= 0 && GathersFor(s.program(), s.launch(overlap[at]).nodes, product)) return true;
  }
  return false;
}

}  // namespace coconet
