#ifndef COCONET_JIT_EMIT_BULK_COPIES_H_
#define COCONET_JIT_EMIT_BULK_COPIES_H_

#include <string>

#include "coconet/schedule/kernel_phases.h"
#include "jit/expressions/kernel_context.h"
#include "jit/expressions/phase_text.h"

namespace coconet {

/// The phase gathers slices that are in memory, and does nothing else: the GPU copies whole parts
/// of them (Config::bulk).
bool CopiesInBulk(const KernelContext& k, const KernelPhase& phase);

/// What copies a chunk of each slice to all ranks of the node.
std::string BulkCopiesText(KernelContext& k, const KernelPhase& planned, PhaseText& phase);

}  // namespace coconet

#endif  // COCONET_JIT_EMIT_BULK_COPIES_H_
