#ifndef COCONET_RUNTIME_SIMT_MACHINE_DEADLOCK_H_
#define COCONET_RUNTIME_SIMT_MACHINE_DEADLOCK_H_

#include <string>

#include "runtime/simt/machine/reporter.h"
#include "runtime/simt/machine/resident_blocks.h"
#include "runtime/simt/machine/scheduler.h"
#include "runtime/simt/memory/simt_memory.h"

namespace coconet {

/// What threads wait for, and which blocks have no room, one per line: for a report of a deadlock.
std::string DescribeWaits(const SimtMemory& memory, const SimtScheduler& scheduler,
                          const ResidentBlocks& blocks, const Reporter& reporter);

}  // namespace coconet

#endif  // COCONET_RUNTIME_SIMT_MACHINE_DEADLOCK_H_
