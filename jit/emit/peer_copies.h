#pragma once

#include <string>
#include <vector>

#include "coconet/schedule/kernel_phases.h"
#include "jit/emit/rings.h"
#include "jit/expressions/kernel_context.h"
#include "jit/expressions/loads.h"
#include "jit/expressions/phase_text.h"

namespace coconet {

/// The copies that a rank makes of the operands of the kernel's AllReduces for its peers, in memory
/// for two steps or in messages to each (Config::one_shot).
class PeerCopies {
 public:
  /// Adds the buffers that are copied to, if the config asks for copies.
  PeerCopies(KernelContext& k, Loads& loads);

  bool empty() const { return copies_.empty(); }
  /// Whether AllReduces take their operands from messages (Messages in jit/device/operands.h).
  bool AreMessages() const { return k_.config.one_shot == OneShot::kLL && !empty(); }

  std::string Declarations();
  /// The text that copies all operands.
  std::string Text(const Rings& rings);

 private:
  struct Copy {
    NodeId operand;
    std::string name;  // of the Staged or Messages in the text
    int buffer;        // both halves
    int64_t stride;    // elements of a half, or words of a writer in one
  };
  void Add(NodeId operand, Loads& loads);

  KernelContext& k_;
  std::vector<Copy> copies_;
};

/// Whether the phase only gathers slices that are in memory: the GPU then copies whole parts of
/// them (Config::bulk). A kernel has at most one such phase: values that it does not compute are
/// ready before all phases. Single chunks have no flags.
bool CopiesInBulk(const KernelContext& k, const KernelPhase& phase);

/// The text that copies chunks to all ranks of the node: before all chunks, for a chunk of each
/// slice, and to await all copies.
struct BulkText {
  std::string before{}, of_chunk{}, after{};
};
BulkText BulkCopiesText(KernelContext& k, const KernelPhase& planned, PhaseText& phase);

}  // namespace coconet
