#ifndef COCONET_JIT_LOWER_LIBRARY_CALL_H_
#define COCONET_JIT_LOWER_LIBRARY_CALL_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "jit/config/config.h"
#include "jit/config/pieces.h"
#include "jit/config/target.h"
#include "jit/config/units.h"
#include "jit/emit/emit.h"
#include "jit/storage/buffers.h"
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

#endif  // COCONET_JIT_LOWER_LIBRARY_CALL_H_
