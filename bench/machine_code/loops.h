#pragma once

#include <vector>

#include "bench/machine_code/listing.h"

namespace coconet::bench {

/// Instructions [begin, end) that run one after the other, and the blocks that may follow.
struct BasicBlock {
  int begin = 0, end = 0;
  std::vector<int> next;
  int loop = -1;  // the innermost loop that it is in
};

/// A natural loop: what runs between a block and the branches that go back to it.
struct MachineLoop {
  int head = 0;             // the block that it begins with
  int outer = -1;           // the innermost loop around it
  std::vector<int> blocks;  // ascending; those of inner loops included
  bool has_inner = false;
};

struct FlowGraph {
  std::vector<BasicBlock> blocks;
  std::vector<MachineLoop> loops;  // inner ones after those around them
};

FlowGraph FlowOf(const MachineFunction& function);

/// Accesses below so many bytes are narrow.
inline constexpr int kNarrowBytes = 4;

/// Memory that an instruction loads from or stores to.
enum class Space { kNone, kGlobal, kShared, kLocal };
struct Access {
  Space space = Space::kNone;
  bool loads = false, stores = false;
  int bytes = 0;  // a thread; 0: not in the instruction (bulk copies)
};
Access AccessOf(const Instruction& instruction);
/// Whether it accesses global memory by narrow parts.
bool IsNarrow(const Access& access);

/// Whether it waits until all bulk copies are done (cp.async.bulk.wait_group 0).
bool IsDrain(const Instruction& instruction);
/// Whether it stores a flag that other ranks wait for (st.release.sys of 4 bytes).
bool IsPublish(const Instruction& instruction);

/// The instructions of the way that a turn of the loop takes, in order, without those of inner
/// loops: of the ways that call nothing (divisions and roots call for what is rare), those with the
/// fewest narrow accesses, and of these the longest. If each way calls, the same of all ways.
std::vector<int> MainPath(const MachineFunction& function, const FlowGraph& flow, int loop);

/// What `path` loads from global memory until the first instruction that reads what one of these
/// loads wrote: what a thread has in flight.
struct InFlight {
  int loads = 0, bytes = 0;
};
InFlight LoadedBeforeUse(const MachineFunction& function, const std::vector<int>& path);

}  // namespace coconet::bench
