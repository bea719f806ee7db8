#pragma once

#include <map>
#include <vector>

#include "jit/config/target.h"
#include "jit/launches/placed_launches.h"
#include "runtime/plan.h"

namespace coconet {

/// Which buffer holds which value.
struct BufferTable {
  std::vector<Buffer> buffers;
  std::vector<bool> each;  // by buffer: each tensor of a list has one
  /// node -> buffer that holds its value for readers in other launches (an input's, a state's, the
  /// target of a store made where the value is computed, a temporary); -1: in no buffer.
  std::vector<int> of;
  /// Update or Output -> the buffer it writes; -1 for other nodes.
  std::vector<int> target;
  /// AllGather or Send -> the buffers that a kernel with it fills: those of the stores in its
  /// launch, else its own.
  std::map<NodeId, std::vector<int>> push_targets;
};

/// Whether the launch is a view that keeps all elements in their order, and whose result has the
/// buffer of its operand: nothing runs then.
bool IsInPlace(const PlacedLaunches& u, int launch, const BufferTable& table);

/// Buffers of inputs, states and outputs in the order of their declaration, then of temporaries, in
/// the order of the launches that compute them; a temporary and its reshapes, which are launches of
/// their own, share one. A tensor that is not sliced is padded so that every contiguous slicing of
/// it fits. `pull`: kernels load the operands of AllReduces where they are, so these must be
/// symmetric.
BufferTable AssignBuffers(const PlacedLaunches& u, const Target& target, bool pull);

/// Adds a buffer and returns its number. `each`: per tensor of a list.
int AddBuffer(BufferTable& table, Buffer buffer, bool each);

/// Adds a buffer that one kernel of the plan keeps from run to run, zero before the first, and
/// returns its number.
int AddSyncBuffer(BufferTable& table, std::string name, DType dtype, int64_t elements,
                  bool symmetric, bool each = false);

}  // namespace coconet
