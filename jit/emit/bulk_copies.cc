#include "jit/emit/bulk_copies.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace coconet {

bool CopiesInBulk(const KernelContext& k, const KernelPhase& phase) {
  if (!k.config.bulk || !k.Waits() || !phase.on_slices || phase.gathers.empty() ||
      k.space.row_dims > 0)
    return false;
  if (!phase.stores.empty() || !phase.folds.empty() || !phase.sends.empty()) return false;
  return absl::c_all_of(phase.gathers, [&](NodeId id) {
    const NodeId slice = k.Operand(id);
    return !k.InUnit(slice) && k.table.of[slice] >= 0 && k.type(slice).shape == k.space.shape;
  });
}

std::string BulkCopiesText(KernelContext& k, const KernelPhase& planned, PhaseText& phase) {
  std::string text;
  for (NodeId id : planned.gathers) {
    const DType dtype = k.type(id).dtype;
    const std::string own = k.args.Own(k.table.of[k.Operand(id)], dtype);
    for (int buffer : k.table.push_targets.at(id)) {
      phase.bytes_per_element +=
          (1 + k.target.ranks_per_node()) * static_cast<int64_t>(SizeOf(dtype));
      absl::StrAppend(&text, "    CopyToAll<", k.StoreMode(buffer), ", kV>(grid, ",
                      k.args.Peers(buffer, dtype), ", ", own, ", c, ", k.args.At("packed"),
                      " != 0);\n");
    }
  }
  return text;
}

}  // namespace coconet
