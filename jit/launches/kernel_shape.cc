#include "jit/launches/kernel_shape.h"

#include "absl/algorithm/container.h"
#include "coconet/ir/op_table.h"
#include "coconet/schedule/launches.h"
#include "coconet/schedule/prologue.h"

namespace coconet {

KernelShape::KernelShape(const TypedGraph& program, const std::vector<NodeId>& kernel)
    : program(program),
      prologue(PrologueOf(program, kernel)),
      members(WithoutPrologue(program, kernel)),
      space(SpaceOf(program, members)),
      phases(PhasesOf(program, members)),
      tiled(TiledProductOf(program, members)),
      awaited(TiledProductOf(program, prologue)) {
  for (size_t d = space.shape.size() - space.row_dims; d < space.shape.size(); ++d)
    row_length *= space.shape[d].size;
  const Graph& g = program.graph();
  for (NodeId id : members) {
    const bool folds = As<Fold>(g, id) != nullptr;
    if (folds && strided_fold < 0 && !FoldsAll(program, id) && !FoldsRows(program, id))
      strided_fold = id;
    const bool takes_slices = folds || As<AllGather>(g, id) != nullptr;
    const Layout& layout = program.type(takes_slices ? program.inputs(id)[0] : id).layout;
    if (layout.sliced()) slices = layout;
  }
}

bool KernelShape::IsMember(NodeId id) const { return absl::c_binary_search(members, id); }

bool KernelShape::IsRow(NodeId id) const {
  if (space.row_dims == 0) return false;
  if (IsMember(id) && FoldsRows(program, id)) return true;
  return program.type(id).shape == space.rows() && program.type(id).shape != space.shape;
}

bool KernelShape::IsStoredBefore(int phase, NodeId id) const {
  const int stored = phases.StoredIn(id);
  return stored >= 0 && stored < phase;
}

bool KernelShape::IsLoaded(int phase, NodeId id) const {
  return IsStoredBefore(phase, id) || (!IsMember(id) && !program.IsRecomputed(id)) ||
         RoleOf(program.op(id)) == Role::kDeclaration || Communicates(program.op(id));
}

}  // namespace coconet
