#ifndef COCONET_JIT_LOWER_LABELS_H_
#define COCONET_JIT_LOWER_LABELS_H_

#include <string>

#include "jit/config/config.h"
#include "jit/config/units.h"

namespace coconet {

/// What a unit does, in words, e.g. "fuse(RS, C, AG)", "C", "AR".
std::string LabelOf(const Graph& g, const Unit& unit);

/// How the units communicate: Lowered::protocol.
std::string ProtocolOf(const Units& u, const Config& config);

}  // namespace coconet

#endif  // COCONET_JIT_LOWER_LABELS_H_
