#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "autotune/measure/arena.h"
#include "autotune/session/binding.h"
#include "autotune/session/session_state.h"

namespace coconet {

/// The memory behind a buffer of the plan: the caller's, or, without a binding, the Session's.
struct Backing {
  const Binding* binding = nullptr;
  bool in_place = false;           // the caller's memory itself; else it is copied
  std::shared_ptr<Memory> memory;  // if in_place
  int64_t serial = 0;              // of a DeviceBuffer; 0: other memory
};

/// Collective. The backing of each buffer of the program's plan. InvalidArgument, on all ranks, if
/// a binding of one rank is wrong, or if ranks bind different tensors to DeviceBuffers. Memory is
/// used in place on all ranks or on none; warns of copied tensors.
absl::StatusOr<std::vector<Backing>> AgreeOnBackings(const CompiledProgram& program,
                                                     absl::Span<const Binding> bindings);

/// What other plans of a program need of the memory that they share with its own.
struct SharedNeeds {
  std::vector<MemoryNeed> tensors;       // by buffer of its own plan
  std::array<MemoryNeed, 2> areas = {};  // of temporaries (AreasOf)
};

struct BoundMemory {
  std::vector<std::shared_ptr<Memory>> buffers;  // of the plan; null for sync buffers
  std::array<std::shared_ptr<Memory>, 2> areas;  // of temporaries; null: none need any
};

/// Collective. The bound memory, and memory of the Session for everything else, which suffices for
/// `others`, too.
absl::StatusOr<BoundMemory> MemoryFor(const CompiledProgram& program,
                                      const std::vector<Backing>& backing,
                                      const SharedNeeds& others);

}  // namespace coconet
