#ifndef COCONET_JIT_LIBRARY_CALL_H_
#define COCONET_JIT_LIBRARY_CALL_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "jit/buffers.h"
#include "jit/config.h"
#include "jit/emit.h"
#include "jit/pieces.h"
#include "jit/target.h"
#include "jit/units.h"
#include "runtime/plan.h"

namespace coconet {

/// A unit's one collective, as a library does it.
struct LibraryCall {
  std::vector<CollectiveStep>
      steps;  // one; of a piece one a range; of the parts of a place one a node
  /// What brings its operand into the form that a library takes, and its result from there: kernels
  /// that an all-to-all needs.
  std::optional<EmittedKernel> before = {}, after = {};
};

/// Of all, or of one piece of an overlap. Adds the buffers that it needs beyond `table`'s.
LibraryCall LibraryCallOf(const Units& u, const Unit& unit, const Config& config,
                          const Target& target, const Piece* piece, BufferTable& table);

}  // namespace coconet

#endif  // COCONET_JIT_LIBRARY_CALL_H_
