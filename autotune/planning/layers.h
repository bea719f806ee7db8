#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "coconet/ir/graph.h"

namespace coconet {

/// The layer of each node of a program, for people: "l0" for what computes with the states
/// "l0.weight" and "l0.bias", or updates them or their moments. "" where there is none.
///
/// A layer is named as its states are, without the last part of their names. A node is of the layer
/// whose state it reads. Without one, it is of the only layer whose states depend on it; if there
/// are several, of the last of these (in the order of declarations), unless all of its operands are
/// of earlier layers, as in a forward pass: then it is of the last of its operands' layers. So a
/// gradient is of the layer whose weights it is for.
std::vector<std::string> LayersOf(const Graph& program);

/// The layers of some nodes, each once: "l0", "l0, l1", "l0 and 4 more".
std::string LayersText(const std::vector<std::string>& layers, absl::Span<const NodeId> nodes);

}  // namespace coconet
