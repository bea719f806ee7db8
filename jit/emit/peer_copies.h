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
  /// Adds the buffers that are copied to, where the config asks for copies.
  PeerCopies(KernelContext& k, Loads& loads);

  bool empty() const { return copies_.empty(); }
  /// AllReduces take their operands from messages (Messages in jit/device/operands.h).
  bool AreMessages() const { return k_.config.one_shot == OneShot::kLL && !empty(); }

  std::string Declarations();
  /// What copies all operands.
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

/// The phase gathers slices that are in memory, and does nothing else: the GPU copies whole parts
/// of them (Config::bulk). A kernel has one such phase at most: what it does not compute is ready
/// before all phases. No flag tells of single chunks.
bool CopiesInBulk(const KernelContext& k, const KernelPhase& phase);

/// What copies chunks to all ranks of the node: what comes before all chunks, what begins to copy a
/// chunk of each slice, and what awaits all copies.
struct BulkText {
  std::string before{}, of_chunk{}, after{};
};
BulkText BulkCopiesText(KernelContext& k, const KernelPhase& planned, PhaseText& phase);

}  // namespace coconet
