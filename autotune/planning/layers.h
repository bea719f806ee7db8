#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "coconet/ir/graph.h"

namespace coconet {

/// The layer of each node of a program, for people: "l0" for what computes with the states
/// "l0.weight" and "l0.bias", or updates them or their moments. "" where there is none.
///
/// The name of a layer is that of its states without their last part; layers are in the order of
/// declarations. A node that reads states belongs to the last of their layers. Any other node
/// belongs to the last layer whose states depend on it, if that is the only one, or if an operand
/// belongs to that layer or a later one: the gradient of a weight belongs to the weight's layer.
/// Else it belongs to the last layer of its operands, as a value of a forward pass.
std::vector<std::string> LayersOf(const Graph& program);

/// The layers of some nodes, each once: "l0", "l0, l1", "l0 and 4 more".
std::string LayersText(const std::vector<std::string>& layers, absl::Span<const NodeId> nodes);

}  // namespace coconet
