#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "jit/emit/emitter.h"

namespace coconet {

bool Emitter::CopiesInBulk(const KernelPhase& phase) const {
  if (!config_.bulk || !Waits() || !phase.on_slices || phase.gathers.empty() || space_.row_dims > 0)
    return false;
  if (!phase.stores.empty() || !phase.folds.empty() || !phase.sends.empty()) return false;
  return absl::c_all_of(phase.gathers, [&](NodeId id) {
    const NodeId slice = u_.Value(g_.nodes[id].inputs[0]);
    return !expressions_.InUnit(slice) && table_.of[slice] >= 0 &&
           type(slice).shape == space_.shape;
  });
}

std::string Emitter::CopiesText(Phase& phase, const std::vector<NodeId>& gathers) {
  std::string text;
  for (NodeId id : gathers) {
    const DType dtype = type(id).dtype;
    const std::string own = args_.Own(table_.of[u_.Value(g_.nodes[id].inputs[0])], dtype);
    for (int buffer : table_.PushTargets(u_, id)) {
      phase.bytes_per_element +=
          (1 + target_.ranks_per_node()) * static_cast<int64_t>(SizeOf(dtype));
      absl::StrAppend(&text, "    CopyToAll<", Streams(buffer) ? "kStreamed" : "kCached",
                      ", kV>(grid, ", args_.Peers(buffer, dtype), ", ", own, ", c, ",
                      args_.At("packed"), " != 0);\n");
    }
  }
  return text;
}

}  // namespace coconet
